//! Every family: logits equal those of a reference implementation, from both formats and on both
//! CPU and tensors. Rows do not depend on each other, and the text does not depend on drafts.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{gemma3, llama, mistral, phi3, qwen2, qwen3, qwen3_moe};
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{Drafters, ModelDrafter, Vocabulary};
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_forward::cpu::Isa;
use foretoken_forward::device::Device as On;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{CpuModel, Model, Pass, TensorModel, Want, load};
use foretoken_model::format::Format;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{KvDtype, ModelSource};
use foretoken_tests::{
    ODD, RandomFamily, assert_same, families, family, in_candle, instruction_sets, loaded, loaded_with,
    logits_in_chunks, nightly_or, shaped_model, tested_families, with_both_caches,
};
use serde_json::{Value as Json, json};

use super::invariance::{difference, exact};
use super::lossless::Hostile;

/// Largest difference of logits. The CPU stores keys and values in half precision, where a last bit
/// can decide the rounding.
pub const IN_HALVES: f32 = 1.5e-3;

/// A text longer than the sliding windows.
pub fn tokens() -> Vec<TokenId> {
    long_text(40)
}

/// A text of `count` tokens that begins as [`tokens`] does.
pub fn long_text(count: u32) -> Vec<TokenId> {
    (0..count).map(|i| 3 + i * 97 % 310).collect()
}

/// The family with room for several runs of positions.
pub fn with_long_context(mut family: RandomFamily) -> RandomFamily {
    family.config["max_position_embeddings"] = json!(1024);
    family
}

/// Returns whether the family has experts.
fn routes(family: &RandomFamily) -> bool {
    family.tensors.keys().any(|name| name.contains(".experts.") || name.contains("block_sparse_moe"))
}

fn on_tensors(source: &ModelSource, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    logits_in_chunks(&mut TensorModel::load(source, &Device::Cpu).unwrap(), tokens, &[7])
}

fn on_the_cpu(source: &ModelSource, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    logits_in_chunks(loaded(source).as_mut(), tokens, &[7])
}

/// Returns the logits of a token at a position.
type Forward = Box<dyn FnMut(&Tensor, usize) -> Tensor>;

/// Logits of candle-transformers' model of the family, token by token.
fn reference(family: &RandomFamily, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    let weights: std::collections::HashMap<_, _> = family.tensors.clone().into_iter().collect();
    let weights = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
    let config = reference_config(family);
    let mut forward: Forward = match family.label {
        "llama" => {
            let config: llama::LlamaConfig = serde_json::from_value(config).unwrap();
            let config = config.into_config(false);
            let mut cache = llama::Cache::new(true, DType::F32, &config, &Device::Cpu).unwrap();
            let model = llama::Llama::load(weights, &config).unwrap();
            Box::new(move |token, position| model.forward(token, position, &mut cache).unwrap())
        }
        "mistral" => {
            let config: mistral::Config = serde_json::from_value(config).unwrap();
            let mut model = mistral::Model::new(&config, weights).unwrap();
            let mut seen: Vec<Tensor> = Vec::new();
            // It applies windows only within one pass.
            Box::new(move |token, _| {
                seen.push(token.clone());
                model.clear_kv_cache();
                model.forward(&Tensor::cat(&seen, 1).unwrap(), 0).unwrap()
            })
        }
        "qwen2" => {
            let config: qwen2::Config = serde_json::from_value(config).unwrap();
            let mut model = qwen2::ModelForCausalLM::new(&config, weights).unwrap();
            Box::new(move |token, position| model.forward(token, position).unwrap())
        }
        "qwen3" => {
            let config: qwen3::Config = serde_json::from_value(config).unwrap();
            let mut model = qwen3::ModelForCausalLM::new(&config, weights).unwrap();
            Box::new(move |token, position| model.forward(token, position).unwrap())
        }
        "qwen3moe" => {
            let config: qwen3_moe::Config = serde_json::from_value(config).unwrap();
            let mut model = qwen3_moe::ModelForCausalLM::new(&config, weights).unwrap();
            Box::new(move |token, position| model.forward(token, position).unwrap())
        }
        "gemma3" => {
            let config: gemma3::Config = serde_json::from_value(config).unwrap();
            let mut model = gemma3::Model::new(false, &config, weights).unwrap();
            Box::new(move |token, position| model.forward(token, position).unwrap())
        }
        _ => {
            let config: phi3::Config = serde_json::from_value(config).unwrap();
            let mut model = phi3::Model::new(&config, weights).unwrap();
            Box::new(move |token, position| model.forward(token, position).unwrap())
        }
    };
    let row = |(position, &token): (usize, &TokenId)| {
        let token = Tensor::new(&[[token]], &Device::Cpu).unwrap();
        forward(&token, position).flatten_all().unwrap().to_vec1().unwrap()
    };
    tokens.iter().enumerate().map(row).collect()
}

/// config.json with the key names of candle-transformers, where these differ.
fn reference_config(family: &RandomFamily) -> Json {
    let mut config = family.config.clone();
    if family.label == "mistral" {
        // It does not count the token itself.
        config["sliding_window"] = json!(family.size("sliding_window") - 1);
    }
    config
}

#[test]
fn every_family_agrees_with_the_reference_implementation() {
    let folder = tempfile::tempdir().unwrap();
    for family in in_candle() {
        let source = family.folder(folder.path(), DType::F32);
        let expected = reference(&family, &tokens());
        let found = difference(&on_tensors(&source, &tokens()), &expected);
        assert!(found < 1e-4, "{} on tensors: relative error {found}", family.label);
        let found = difference(&on_the_cpu(&source, &tokens()), &expected);
        assert!(found < IN_HALVES, "{} on the CPU: relative error {found}", family.label);
    }
}

#[test]
fn language_models_of_qwen3_vl_compute_what_those_of_qwen3_do() {
    let folder = tempfile::tempdir().unwrap();
    for (label, architecture) in [("qwen3", "qwen3vl"), ("qwen3moe", "qwen3vlmoe")] {
        let plain = family(label);
        let renamed = RandomFamily { label: architecture, architecture, ..plain.clone() };
        let [one, other] = [plain, renamed]
            .map(|family| on_the_cpu(&family.gguf(folder.path(), GgmlDType::Q8_0), &tokens()));
        for (one, other) in one.iter().zip(&other) {
            assert_same(one, other);
        }
    }
}

#[test]
fn both_formats_of_the_same_weights_give_the_same_logits() {
    let folder = tempfile::tempdir().unwrap();
    for family in tested_families() {
        let (safetensors, gguf) =
            (family.folder(folder.path(), DType::F32), family.gguf(folder.path(), GgmlDType::F32));
        let expected = on_tensors(&safetensors, &tokens());
        let found = difference(&on_tensors(&gguf, &tokens()), &expected);
        assert!(found < 1e-5, "{} on tensors: relative error {found}", family.label);
        let found = difference(&on_the_cpu(&gguf, &tokens()), &on_the_cpu(&safetensors, &tokens()));
        assert!(found < IN_HALVES, "{} on the CPU: relative error {found}", family.label);
    }
}

#[test]
fn half_precision_weights_give_the_same_logits_in_folder_and_file() {
    let folder = tempfile::tempdir().unwrap();
    for family in tested_families() {
        for (dtype, ggml) in [(DType::F16, GgmlDType::F16), (DType::BF16, GgmlDType::BF16)] {
            // Norms and biases are rounded only in folders.
            let mut family = family.clone();
            for tensor in family.tensors.values_mut() {
                *tensor = tensor.to_dtype(dtype).unwrap().to_dtype(DType::F32).unwrap();
            }
            let expected = on_the_cpu(&family.folder(folder.path(), dtype), &tokens());
            let found = difference(&on_the_cpu(&family.gguf(folder.path(), ggml), &tokens()), &expected);
            assert!(found < IN_HALVES, "{} in {dtype:?}: relative error {found}", family.label);
        }
    }
}

#[test]
fn quantised_weights_are_as_accurate_as_on_tensors() {
    let folder = tempfile::tempdir().unwrap();
    for family in tested_families() {
        for quantisation in [GgmlDType::Q8_0, GgmlDType::Q4_0] {
            let source = family.gguf(folder.path(), quantisation);
            let exact = exact(&source, &tokens());
            let ours = difference(&on_the_cpu(&source, &tokens()), &exact);
            let theirs = difference(&on_tensors(&source, &tokens()), &exact);
            // Rounding decides between two experts with equal scores.
            let (label, most) = (family.label, if routes(&family) { 2.0 } else { 1.2 });
            assert!(ours < IN_HALVES.max(most * theirs), "{label} in {quantisation:?}: {ours}, {theirs}");
        }
    }
}

#[test]
fn rows_of_every_family_have_the_same_bits_in_any_chunks_on_any_threads_with_all_instructions() {
    let folder = tempfile::tempdir().unwrap();
    for (family, format) in tested_families().iter().flat_map(|f| [(f, GgmlDType::F32), (f, GgmlDType::Q8_0)])
    {
        for source in with_both_caches(&family.gguf(folder.path(), format)) {
            let expected = logits_in_chunks(loaded(&source).as_mut(), &tokens(), &[1]);
            let same = |isa, threads, chunks: &[usize]| {
                let found = logits_in_chunks(loaded_with(&source, isa, threads).as_mut(), &tokens(), chunks);
                let label = labelled(family, &source);
                assert!(found == expected, "{label}, {format:?}, {chunks:?} on {threads} threads with {isa}");
            };
            let best = Isa::choose().unwrap();
            for (threads, chunks) in [(1, &[2][..]), (2, &[3, 1, 5]), (3, &[8]), (2, &[16, 1]), (1, &[40])] {
                same(best, threads, chunks);
            }
            instruction_sets().for_each(|isa| same(isa, 2, &[11]));
        }
    }
}

#[test]
fn rows_behind_several_runs_of_positions_have_the_same_bits_in_any_chunks_on_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = long_text(530);
    for family in tested_families().into_iter().map(with_long_context) {
        for source in with_both_caches(&family.gguf(folder.path(), GgmlDType::Q8_0)) {
            let expected = logits_in_chunks(loaded(&source).as_mut(), &tokens, &[1]);
            for (threads, chunks) in [(1, &[250, 3, 9][..]), (2, &[511, 2, 1]), (3, &[37]), (4, &[530])] {
                let mut model = loaded_with(&source, Isa::choose().unwrap(), threads);
                let found = logits_in_chunks(model.as_mut(), &tokens, chunks);
                let label = labelled(&family, &source);
                assert!(found == expected, "{label} in {chunks:?} on {threads} threads");
            }
        }
    }
}

/// A tree after a text, and the path from its root to each node.
struct Branched {
    prefix: Vec<TokenId>,
    tree: TokenTree,
    paths: Vec<Vec<usize>>,
}

impl Branched {
    fn after(prefix: &[TokenId]) -> Self {
        // Parents of the nodes after the first: branches longer than the windows, and short ones.
        let parents = [0, 1, 2, 3, 0, 5, 4, 7, 8, 9, 10, 11, 1, 13, 6];
        let mut tree = TokenTree::chain([9]);
        let mut paths = vec![vec![0]];
        for (token, parent) in parents.into_iter().enumerate() {
            let node = tree.push(50 + token as TokenId, Some(parent));
            paths.push([&paths[parent][..], &[node]].concat());
        }
        Self { prefix: prefix.to_vec(), tree, paths }
    }

    /// Runs the text and then the tree, whose pass is returned with its rows.
    fn run<'a>(&self, model: &'a mut dyn Model) -> (Pass<'a>, Vec<Vec<f32>>) {
        model.run(&TokenTree::chain(self.prefix.clone()), &Want::nothing()).unwrap();
        let pass = model.run(&self.tree, &Want::all_rows()).unwrap();
        let rows =
            (0..self.tree.len()).map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect();
        (pass, rows)
    }

    /// Runs the text and each path as a chain; the last path stays cached.
    fn rows_alone(&self, model: &mut dyn Model) -> Vec<Vec<f32>> {
        let nodes: Vec<TokenId> = self.tree.tokens().collect();
        let alone = |path: &Vec<usize>| {
            let own = path.iter().map(|&node| nodes[node]);
            let chain: Vec<TokenId> = self.prefix.iter().copied().chain(own).collect();
            model.truncate(0);
            let last = chain.len() - 1;
            let pass = model.run(&TokenTree::chain(chain), &Want::rows(last..last + 1)).unwrap();
            pass.logits().row(0).logits().unwrap().to_vec()
        };
        self.paths.iter().map(alone).collect()
    }
}

#[test]
fn every_path_of_a_tree_scores_as_its_text_in_every_family() {
    let folder = tempfile::tempdir().unwrap();
    // The longest tree goes from one run of positions to the next.
    let prefixes = nightly_or(&[1, 3, 8, 21, 251][..], &[3, 251]);
    for family in tested_families().into_iter().map(with_long_context) {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        let cases =
            with_both_caches(&source).flat_map(|source| prefixes.iter().map(move |p| (source.clone(), p)));
        for (source, prefix) in cases {
            let label = labelled(&family, &source);
            let branched = Branched::after(&long_text(*prefix));
            let [mut model, mut fresh] = [(); 2].map(|()| loaded(&source));
            let (pass, found) = branched.run(model.as_mut());
            let expected = branched.rows_alone(fresh.as_mut());
            for (path, (found, expected)) in branched.paths.iter().zip(found.iter().zip(&expected)) {
                assert!(found == expected, "{label}, {path:?}");
            }
            pass.keep(branched.paths.last().unwrap()).unwrap();
            let next = TokenTree::chain([11, 12]);
            let both = [&mut model, &mut fresh].map(|model| model.run(&next, &Want::all_rows()).unwrap());
            assert!(both[0].logits() == both[1].logits(), "{label}");
        }
    }
}

/// The family with the format of the model's KV cache.
fn labelled(family: &RandomFamily, source: &ModelSource) -> String {
    format!("{} with a KV cache in {}", family.label, source.config().unwrap().kv_dtype)
}

/// Tensors get the same trees, but results are not bit-identical.
#[test]
fn every_path_of_a_tree_scores_nearly_as_its_text_on_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let prefixes = nightly_or(&[1, 3, 8, 21][..], &[21]);
    for family in tested_families() {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        for prefix in prefixes {
            let branched = Branched::after(&tokens()[..*prefix]);
            let [mut model, mut fresh] = [(); 2].map(|()| TensorModel::load(&source, &Device::Cpu).unwrap());
            let (_, rows) = branched.run(&mut model);
            let found = difference(&rows, &branched.rows_alone(&mut fresh));
            // Eight-bit activations may be rounded to a neighbour, which decides between experts
            // with equal scores.
            assert!(found < 0.05, "{}: {found}", family.label);
        }
    }
}

#[test]
fn drafts_change_nothing_in_any_family() {
    let folder = tempfile::tempdir().unwrap();
    let targets = tested_families().into_iter().flat_map(|family| {
        let target = family.gguf(folder.path(), GgmlDType::F32);
        with_both_caches(&target).map(move |target| (family.clone(), target)).collect::<Vec<_>>()
    });
    for (family, target) in targets {
        let draft = family.gguf(folder.path(), GgmlDType::Q4_0);
        let label = labelled(&family, &target);
        let tokenizer = Arc::new(target.tokenizer().unwrap());
        let mut decoder = Decoder::new(loaded(&target), Arc::clone(&tokenizer));
        let drafter =
            ModelDrafter::new(loaded(&draft), Vocabulary::Same(tokenizer.vocabulary()), tokenizer.ends());
        let mut drafters = Drafters::one(drafter);
        let request = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(60),
            ..Request::new(tokens()[..12].to_vec())
        };
        let mut write = |request: &Request, drafters: &mut Drafters| {
            decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let plain = write(&request, &mut Drafters::default());
        let tree = Speculation { tree: Tree::Width(3), ..Speculation::fixed(6) };
        for speculation in [Speculation::fixed(1), Speculation::fixed(5), tree] {
            let request = Request { speculation, ..request.clone() };
            let drafted = write(&request, &mut drafters);
            assert_eq!(drafted.tokens, plain.tokens, "{label}, {:?}", request.speculation);
            let accepted = drafted.summary.accepted;
            assert!(accepted > 5, "{label}: {accepted} drafted tokens were accepted");
        }
    }
}

#[test]
fn a_cache_in_8_bits_rounds_logits_little_and_takes_half_of_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    // Keys of qwen2 have a bias, part of which is subtracted.
    for family in tested_families().into_iter().chain([family("qwen2")]) {
        let source = family.gguf(folder.path(), GgmlDType::F32);
        let mut both = Vec::new();
        for source in with_both_caches(&source) {
            let config = source.config().unwrap();
            let (bytes, numbers) =
                (config.kv_bytes(1), (0..config.depth()).filter_map(|l| config.cached_keys(l)));
            both.push((on_the_cpu(&source, &tokens()), bytes, numbers.map(|keys| keys.count).sum::<usize>()));
        }
        let [(expected, whole, heads), (found, half, _)] = &both[..] else { continue };
        let int8 = source.with_kv_dtype(KvDtype::Int8);
        let one_by_one = logits_in_chunks(loaded(&int8).as_mut(), &tokens(), &[1]);
        assert!(*found == one_by_one, "{}", family.label);
        let found = difference(found, expected);
        // Random weights amplify rounding, most where it decides between experts or scales scores.
        assert!(found > 0.0 && found < 0.1, "{}: {found}", family.label);
        assert_eq!(*half, whole / 2 + 4 * heads, "{}", family.label);
    }
}

#[test]
fn a_cache_in_8_bits_is_refused_with_a_reason_where_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let int8 = |source: ModelSource| source.with_kv_dtype(KvDtype::Int8);
    let refused = |source: &ModelSource, on| load(source, &on).err().unwrap().to_string();
    let latent = int8(family("glm").gguf(folder.path(), GgmlDType::Q8_0));
    assert_eq!(
        refused(&latent, On::Cpu),
        "KV cache dtype: expected f16 for a model with latent attention (MLA), found int8."
    );
    let odd = int8(shaped_model(folder.path(), Format::F16, ODD));
    assert!(refused(&odd, On::Cpu).contains("whose head size is not a multiple of four"));
    let llama = int8(family("llama").gguf(folder.path(), GgmlDType::Q8_0));
    assert_eq!(
        refused(&llama, On::Tensors(Device::Cpu)),
        "Foretoken's GPU engine cannot run an 8-bit KV cache yet."
    );
    assert!("q8_0".parse::<KvDtype>().is_err());
    for dtype in [KvDtype::F16, KvDtype::Int8] {
        assert_eq!(dtype.to_string().parse::<KvDtype>().unwrap(), dtype);
    }
}

#[test]
fn arbitrary_drafts_change_no_text_with_experts_and_shared_caches() {
    let folder = tempfile::tempdir().unwrap();
    for label in ["qwen3moe", "gpt-oss", "gemma4", "gemma4 with experts", "glm", "deepseek2"] {
        let source = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        let tokenizer = Arc::new(source.tokenizer().unwrap());
        let mut decoder = Decoder::new(loaded(&source), tokenizer);
        let request = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(40),
            ignore_end: true,
            speculation: Speculation::fixed(4),
            ..Request::new(tokens()[..12].to_vec())
        };
        let mut write = |drafters: &mut Drafters| {
            decoder.reply(&request, drafters, &mut |_| ControlFlow::Continue(())).unwrap().tokens
        };
        let plain = write(&mut Drafters::default());
        // More tokens than requested, all equal or all different.
        let one = Hostile(|_: &[_], length| Ok(vec![5; length + 3]));
        let many = Hostile(|context: &[TokenId], length| {
            Ok((0..length).map(|at| ((context.len() * 31 + at * 7) % 320) as TokenId).collect())
        });
        assert_eq!(write(&mut Drafters::one(one)), plain, "{label}");
        assert_eq!(write(&mut Drafters::one(many)), plain, "{label}");
    }
}

#[test]
fn a_round_records_the_experts_read_per_layer() {
    let folder = tempfile::tempdir().unwrap();
    for (label, used, all) in [("qwen3moe", 3.0, 8.0), ("deepseek2", 3.0, 8.0), ("qwen3", 0.0, 0.0)] {
        let source = family(label).gguf(folder.path(), GgmlDType::Q8_0);
        let model = CpuModel::load(&source).unwrap();
        let mut decoder = Decoder::new(Box::new(model), Arc::new(source.tokenizer().unwrap()));
        let mut experts = |drafters: &mut Drafters, speculation| -> Vec<Option<f32>> {
            let (sampling, max_tokens) = (Sampling::greedy(), Some(12));
            let request =
                Request { sampling, max_tokens, ignore_end: true, ..Request::new(tokens()[..12].to_vec()) };
            let request = Request { speculation, ..request };
            let reply = decoder.reply(&request, drafters, &mut |_| ControlFlow::Continue(())).unwrap();
            reply.rounds.iter().map(|round| round.experts).collect()
        };
        let plain = experts(&mut Drafters::default(), Speculation::off());
        let counted = (used > 0.0).then_some(used);
        assert_eq!(plain[1..], vec![counted; 11], "{label}: a row reads those that it goes through");
        let different = Hostile(|context: &[TokenId], length| {
            Ok((0..length).map(|at| ((context.len() * 31 + at * 7) % 320) as TokenId).collect())
        });
        let drafted = experts(&mut Drafters::one(different), Speculation::fixed(4));
        assert!(drafted.iter().all(|read| read.is_some() == counted.is_some()), "{label}");
        let most = drafted.iter().flatten().fold(0.0, |most, &read| f32::max(most, read));
        assert!(most <= all && (most > used || used == 0.0), "{label}: {most}");
    }
}

#[test]
fn the_attention_factor_of_longrope_scales_the_rotated_part() {
    let folder = tempfile::tempdir().unwrap();
    let mut scaled = RandomFamily { label: "phi3, scaled", ..family("phi3 with two lists of factors") };
    scaled.config["rope_scaling"]["attention_factor"] = json!(1.0);
    let expected = on_tensors(&scaled.folder(folder.path(), DType::F32), &tokens());
    // Smaller weights make up for the factor.
    scaled.config["rope_scaling"]["attention_factor"] = json!(1.25);
    let head_size = scaled.head_size();
    let heads = scaled.size("num_attention_heads") + scaled.size("num_key_value_heads");
    let (rows, _) = scaled.tensors["model.layers.0.self_attn.qkv_proj.weight"].dims2().unwrap();
    let factors: Vec<f32> = (0..rows).map(|row| if row < heads * head_size { 0.8 } else { 1.0 }).collect();
    let factors = Tensor::from_vec(factors, (rows, 1), &Device::Cpu).unwrap();
    for (name, tensor) in &mut scaled.tensors {
        if name.ends_with("qkv_proj.weight") {
            *tensor = tensor.broadcast_mul(&factors).unwrap();
        }
    }
    for source in [scaled.folder(folder.path(), DType::F32), scaled.gguf(folder.path(), GgmlDType::F32)] {
        let found = difference(&on_tensors(&source, &tokens()), &expected);
        assert!(found < 1e-5, "relative error {found}");
    }
}

#[test]
fn the_query_scalar_scales_query_key_products() {
    let folder = tempfile::tempdir().unwrap();
    // A quarter of the scalar doubles the scale; so do norms of queries, with weights 1 + w, that
    // are twice as large.
    let mut doubled = family("gemma3");
    let mut scaled = RandomFamily { label: "gemma3 with a scalar", ..doubled.clone() };
    scaled.config["query_pre_attn_scalar"] = json!(scaled.head_size() / 4);
    for (name, tensor) in &mut doubled.tensors {
        if name.ends_with("q_norm.weight") {
            *tensor = tensor.affine(2.0, 1.0).unwrap();
        }
    }
    let (scaled, doubled) =
        (scaled.folder(folder.path(), DType::F32), doubled.folder(folder.path(), DType::F32));
    let found = difference(&on_tensors(&scaled, &tokens()), &on_tensors(&doubled, &tokens()));
    assert!(found < 1e-5, "on tensors: relative error {found}");
    let found = difference(&on_the_cpu(&scaled, &tokens()), &on_the_cpu(&doubled, &tokens()));
    assert!(found < IN_HALVES, "on the CPU: relative error {found}");
}

#[test]
fn the_text_part_of_a_vision_model_is_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let plain = family("gemma3");
    let expected = on_the_cpu(&plain.folder(folder.path(), DType::F32), &tokens());
    let eyes = Tensor::zeros((4, 4), DType::F32, &Device::Cpu).unwrap();
    for (label, prefix, sees) in [
        ("older", "language_model.model.", "vision_tower.patch.weight"),
        ("newer", "model.language_model.", "model.multi_modal_projector.weight"),
    ] {
        let renamed =
            |(name, tensor): (&String, &Tensor)| (name.replacen("model.", prefix, 1), tensor.clone());
        let mut seeing = RandomFamily { label, ..plain.clone() };
        seeing.tensors = plain.tensors.iter().map(renamed).collect();
        seeing.tensors.insert(sees.into(), eyes.clone());
        let mut language = plain.config.clone();
        language["architectures"] = Json::Null;
        seeing.config = json!({"architectures": ["Gemma3ForConditionalGeneration"], "text_config": language});
        assert!(on_the_cpu(&seeing.folder(folder.path(), DType::F32), &tokens()) == expected, "{label}");
    }
}

/// The family with its first layer's router replaced by the result of `write`.
fn with_router(family: &RandomFamily, write: impl Fn(&Tensor) -> Tensor) -> RandomFamily {
    let mut changed = family.clone();
    for (name, tensor) in &mut changed.tensors {
        if name.ends_with("mlp.gate.weight") {
            *tensor = write(tensor);
        }
    }
    changed
}

#[test]
fn bytes_per_pass_are_computed_from_the_file_in_every_family() {
    let folder = tempfile::tempdir().unwrap();
    for family in families() {
        let source = family.gguf(folder.path(), GgmlDType::Q8_0);
        let (computed, read) = (source.read_bytes().unwrap(), loaded(&source).read_weights());
        let ratio = computed as f64 / read as f64;
        assert!((0.9..1.1).contains(&ratio), "{}: {computed} bytes for {read}", family.label);
    }
}

#[test]
fn expert_weights_are_a_softmax_over_all_experts_if_the_file_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut family = RandomFamily { label: "qwen3moe of all", ..family("qwen3moe") };
    family.config["norm_topk_prob"] = json!(false);
    let source = family.folder(folder.path(), DType::F32);
    let expected = reference(&RandomFamily { label: "qwen3moe", ..family }, &tokens());
    let found = difference(&on_tensors(&source, &tokens()), &expected);
    assert!(found < 1e-4, "on tensors: relative error {found}");
    let found = difference(&on_the_cpu(&source, &tokens()), &expected);
    assert!(found < IN_HALVES, "on the CPU: relative error {found}");
}

#[test]
fn equal_experts_compute_one_network() {
    let folder = tempfile::tempdir().unwrap();
    // All experts equal the first one, so that the router does not matter.
    let mut one = with_router(&family("qwen3moe"), Tensor::clone);
    for (name, tensor) in one.tensors.clone() {
        if let Some((layer, rest)) = name.split_once(".experts.0.") {
            for expert in 1..6 {
                one.tensors.insert(format!("{layer}.experts.{expert}.{rest}"), tensor.clone());
            }
        }
    }
    let zeros = RandomFamily {
        label: "qwen3moe with equal scores",
        ..with_router(&one, |router| router.zeros_like().unwrap())
    };
    let expected = on_the_cpu(&one.folder(folder.path(), DType::F32), &tokens());
    let found = difference(&on_the_cpu(&zeros.folder(folder.path(), DType::F32), &tokens()), &expected);
    assert!(found < IN_HALVES, "relative error {found}");
}

#[test]
fn experts_with_wrong_shapes_are_rejected_with_a_message() {
    let refused = |change: &dyn Fn(&mut RandomFamily)| family("qwen3moe").refused(change);
    let message = refused(&|family| family.config["num_experts_per_tok"] = json!(7));
    assert!(message.contains("up to 6 experts per token, found 7"), "{message}");
    let message = refused(&|family| family.config["mlp_only_layers"] = json!([1]));
    assert!(message.contains("experts in every layer"), "{message}");
    let message = refused(&|family| {
        family.tensors.remove("model.layers.1.mlp.experts.5.up_proj.weight");
    });
    assert!(message.contains("the tensor blk.1.ffn_up.5.weight"), "{message}");
    let message = refused(&|family| family.config["num_experts"] = json!(5));
    assert!(message.contains("ffn_gate_inp.weight of shape [5, 256]"), "{message}");
}

#[test]
fn gpt_oss_and_gemma_4_are_rejected_with_a_message_if_parts_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    for (label, key, value, expected) in [
        ("gpt-oss", "num_local_experts", json!(0), "a size in num_local_experts, found none"),
        ("gpt-oss", "num_local_experts", json!(1u64 << 32), "num_local_experts of at most"),
        ("gpt-oss", "num_local_experts", json!(5), "blk.0.ffn_down_exps.bias of shape [5, 256]"),
        ("gpt-oss", "num_experts_per_tok", json!(7), "up to 6 experts per token, found 7"),
        ("gpt-oss", "swiglu_limit", json!(6.0), "swiglu_limit of 7 in config.json, found 6"),
        ("gpt-oss", "layer_types", json!(["full_attention"]), "layer_types for every layer"),
        ("gemma4", "num_kv_shared_layers", json!(6), "num_kv_shared_layers below 6"),
        (
            "gemma4",
            "num_kv_shared_layers",
            json!(5),
            "keys and values for layer 1 in an earlier one of its kind",
        ),
        ("gemma4", "hidden_size_per_layer_input", json!(16), "of shape [320, 96], found [320, 192]"),
        ("gemma4", "use_bidirectional_attention", json!("all"), "causal attention"),
        ("gemma4", "global_head_dim", json!(60), "blk.1.attn_q.weight of shape [240, 256]"),
        ("gemma4 with experts", "top_k_experts", json!(9), "up to 8 experts per token, found 9"),
    ] {
        let message = family(label).refused(&|family| family.config[key] = value.clone());
        assert!(message.contains(expected), "{label} with {key} {value}: {message}");
    }
    for (label, name, expected) in [
        ("gpt-oss", "model.layers.1.self_attn.sinks", "blk.1.attn_sinks.weight"),
        ("gpt-oss", "model.layers.2.mlp.experts.down_proj_bias", "blk.2.ffn_down.0.bias"),
        ("gpt-oss", "model.layers.0.mlp.router.bias", "blk.0.ffn_gate_inp.bias"),
        ("gemma4", "model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight"),
        ("gemma4", "model.layers.3.layer_scalar", "blk.3.layer_output_scale.weight"),
        ("gemma4 with experts", "model.layers.0.router.per_expert_scale", "blk.0.ffn_down_exps.scale"),
        ("gemma4 with experts", "model.layers.2.self_attn.v_proj.weight", "blk.2.attn_v.weight"),
    ] {
        let message = family(label).refused(&|family| drop(family.tensors.remove(name).unwrap()));
        assert!(message.contains(&format!("the tensor {expected}")), "{label} without {name}: {message}");
    }
    let blocks = family("gpt-oss");
    let name = "model.layers.1.mlp.experts.gate_up_proj";
    let short = Tensor::zeros((6, 192, 7), DType::U8, &Device::Cpu).unwrap();
    let alone = format!("{name}_blocks");
    type Change<'a> = &'a dyn Fn(&mut HashMap<String, Tensor>);
    let changes: [(Change<'_>, &str); 3] = [
        (
            &|tensors| drop(tensors.remove(&format!("{name}_scales"))),
            "the tensor blk.1.ffn_gate_up_exps.exponents",
        ),
        (
            &|tensors| drop(tensors.insert(format!("{name}_scales"), short.clone())),
            "of shape [6, 192, 8], found [6, 192, 7]",
        ),
        (&|tensors| drop(tensors.remove(&alone)), "that blk.1.ffn_gate_up_exps.exponents belongs to"),
    ];
    for (change, expected) in changes {
        let message =
            ModelSource::open(&blocks.write_blocks(folder.path(), change)).err().unwrap().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn unused_keys_may_be_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let plain = family("gemma4");
    let expected = on_the_cpu(&plain.folder(folder.path(), DType::F32), &tokens());
    let mut more = RandomFamily { label: "gemma4 with more keys", ..plain };
    for (part, rows) in [("k_proj", 128), ("v_proj", 128)] {
        let matrix = Tensor::zeros((rows, 256), DType::F32, &Device::Cpu).unwrap();
        more.tensors.insert(format!("model.layers.5.self_attn.{part}.weight"), matrix);
    }
    assert!(on_the_cpu(&more.folder(folder.path(), DType::F32), &tokens()) == expected);
}

#[test]
fn family_features_are_described() {
    let folder = tempfile::tempdir().unwrap();
    let special = |label: &str| family(label).gguf(folder.path(), GgmlDType::F32).describe().special;
    assert!(special("llama").is_empty());
    assert_eq!(special("mistral"), ["2 of 2 layers attend to the last 9 tokens"]);
    assert_eq!(special("qwen2"), ["biases on queries, keys and values"]);
    assert_eq!(special("qwen3"), ["norms of query and key heads"]);
    assert_eq!(special("qwen3moe"), ["norms of query and key heads", "3 of 6 experts per token"]);
    let gemma = special("gemma3");
    let window = "6 of 7 layers attend to the last 9 tokens";
    for words in ["norms after attention and feed-forward", "GELU gates", window] {
        assert!(gemma.contains(&words.to_owned()), "{gemma:?}");
    }
    assert_eq!(special("phi3"), ["RoPE on 48 of 64 head dimensions"]);
    assert_eq!(special("mistral3"), ["queries scaled by their position"]);
    assert_eq!(special("smollm3"), ["1 of 4 layers without RoPE"]);
    assert_eq!(special("granite"), ["scaled embeddings"]);
    assert_eq!(special("granite 4"), ["scaled embeddings", "2 of 2 layers without RoPE"]);
    assert!(special("granitehybrid with experts").contains(&"3 of 6 experts per token".to_owned()));
    assert!(special("lfm2moe").contains(&"3 of 8 experts per token".to_owned()));
    assert_eq!(
        special("glm"),
        ["3 of 8 experts per token", "latent attention (MLA) of rank 64, RoPE on 24 dimensions"]
    );
    let windows = "2 of 4 layers attend to the last 9 tokens";
    let norms = "norms after attention and feed-forward";
    assert_eq!(special("olmo3"), ["norms of all query heads and of all key heads", norms, windows]);
    assert_eq!(
        special("muse-glimmer"),
        [
            "norms of query and key heads",
            norms,
            "gates after attention",
            "normed embeddings",
            "soft-capped logits",
            windows,
            "2 of 4 layers without RoPE",
        ]
    );
    assert_eq!(
        special("gpt-oss"),
        [
            "biases on queries, keys and values",
            "clamped gates",
            "attention sinks",
            "3 of 6 experts per token",
            "2 of 3 layers attend to the last 9 tokens",
        ]
    );
    for words in [
        "norms of values",
        "per-layer embeddings of 32 numbers",
        "2 of 6 layers share the KV cache of another layer",
    ] {
        assert!(special("gemma4").contains(&words.to_owned()), "{:?}", special("gemma4"));
    }
    assert!(special("gemma4 with experts").contains(&"2 of 8 experts per token".to_owned()));
    assert_eq!(special("phi3 with two lists of factors"), ["other LongRoPE factors beyond 16 tokens"]);
}

#[test]
fn a_fused_matrix_of_another_size_is_named_with_both_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let mut family = family("phi3");
    let name = "model.layers.1.mlp.gate_up_proj.weight";
    family.tensors.insert(name.into(), Tensor::zeros((640, 256), DType::F32, &Device::Cpu).unwrap());
    let message =
        ModelSource::open(&family.write_folder(folder.path(), DType::F32)).err().unwrap().to_string();
    assert!(message.contains("blk.1.ffn_up.weight of shape [704, 256], found [640, 256]"), "{message}");
}
