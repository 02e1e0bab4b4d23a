//! Draft heads: rows equal those of reference implementations in every published format. Observed
//! states do not depend on history, and no text depends on the head.

use std::ops::ControlFlow;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device};
use foretoken_engine::decoder::{Decoder, Progress, Request};
use foretoken_engine::draft::{DraftRequest, Drafter, Drafters, HeadDrafter, NgramDrafter};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, HeadInput, Model, Taps, TensorModel, Want};
use foretoken_model::ModelSource;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{Flags, RandomHead, chat_prompt, decoder, family, loaded, made_up, starter_target};

use super::replay::{assert_drafts_like_new, replay};

/// Largest difference of rows, because the CPU stores keys and values in half precision.
const IN_HALVES: f32 = 1.5e-3;

/// Tokens of the text.
const TOKENS: usize = 24;

/// Row at which a chain begins, and its number of steps.
const CHAIN: usize = 9;
const STEPS: usize = 3;

fn tokens() -> Vec<TokenId> {
    (0..TOKENS as TokenId).map(|i| 3 + i * 97 % 310).collect()
}

fn flags() -> Vec<Flags> {
    let none = Flags::default();
    vec![
        none,
        Flags { norm_before_residual: true, ..none },
        Flags { norm_before_fc: true, ..none },
        Flags { fc_norm: true, norm_output: true, ..none },
        Flags { head_norms: true, norm_before_residual: true, ..none },
        Flags { fc_norm: true, states: 1, ..none },
        Flags { fc_norm: true, norm_output: true, states: 5, ..none },
        Flags { norm_before_fc: true, norm_output: true, states: 5, ..none },
    ]
}

/// A small target, with layers enough to read from, and a head for it.
fn pair(folder: &Path, flags: Flags) -> (ModelSource, RandomHead) {
    let label = if flags.states > 3 { "smollm3" } else { "llama" };
    let target = family(label).folder(folder, DType::F32);
    let head = RandomHead::new(target.config().unwrap(), flags);
    (target, head)
}

/// Scores of a head after each token except the first, with random target states, and the head's
/// own outputs.
fn rows(head: &mut dyn Model, states: &[f32], own: &Taps) -> (Vec<Vec<f32>>, Vec<f32>) {
    let tokens = tokens();
    let width = states.len() / TOKENS;
    let head_input = HeadInput::Target(Features::new(&states[..(TOKENS - 1) * width], width));
    let tree = TokenTree::chain(tokens[1..].iter().copied());
    let pass = head.run(&tree, &Want::all_rows().features(own).head_input(head_input)).unwrap();
    let logits = pass.logits();
    let rows = (0..TOKENS - 1).map(|row| logits.row(row).logits().unwrap().to_vec()).collect();
    let features = pass.features().unwrap();
    (rows, features.gather(&(0..TOKENS - 1).collect::<Vec<_>>()))
}

/// Scores after the text's tokens behind `CHAIN`, which the head runs as if they were its own
/// guesses.
fn steps(head: &mut dyn Model, states: &[f32], own: &Taps) -> Vec<Vec<f32>> {
    let tokens = tokens();
    let width = states.len() / TOKENS;
    head.truncate(0);
    let mut tree = TokenTree::chain(tokens[1..=CHAIN + 1].iter().copied());
    let head_input = HeadInput::Target(Features::new(&states[..tree.len() * width], width));
    let mut pass = head.run(&tree, &Want::nothing().features(own).head_input(head_input)).unwrap();
    let mut rows = Vec::new();
    for &token in &tokens[CHAIN + 2..][..STEPS] {
        let (state, width) =
            pass.features().map(|states| (states.gather(&[states.len() - 1]), states.width())).unwrap();
        tree.push(token, Some(tree.len() - 1));
        let want = Want::all_rows().features(own).head_input(HeadInput::Own(Features::new(&state, width)));
        pass = pass.grow(&tree, &want).unwrap();
        rows.push(pass.logits().row(0).logits().unwrap().to_vec());
    }
    rows
}

fn own(head: &RandomHead) -> Taps {
    match head.flags.norm_output {
        true => Taps { last: true, ..Taps::default() },
        false => Taps { entering: vec![1], ..Taps::default() },
    }
}

fn difference(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f32 {
    let pairs = || found.iter().flatten().zip(expected.iter().flatten());
    let squares = |of: fn((&f32, &f32)) -> f32| pairs().map(of).map(|x| x * x).sum::<f32>().sqrt();
    squares(|(a, b)| a - b) / squares(|(_, b)| *b)
}

#[test]
fn head_rows_equal_those_of_speculators() {
    let folder = tempfile::tempdir().unwrap();
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens/heads.safetensors");
    let goldens = candle_core::safetensors::load(goldens, &Device::Cpu).unwrap();
    let golden = |name: String| goldens[&name].to_vec2::<f32>().unwrap();
    for flags in flags() {
        let (target, head) = pair(folder.path(), flags);
        let states = made_up("states", TOKENS * flags.states * target.config().unwrap().hidden);
        let source = head.speculators(folder.path()).unwrap().for_target(&target).unwrap();
        let exact = Box::new(TensorModel::exact(&source, &Device::Cpu).unwrap());
        let engines: [(Box<dyn Model>, f32); 2] = [(exact, 1e-4), (loaded(&source), IN_HALVES)];
        for (mut engine, most) in engines {
            let found = rows(engine.as_mut(), &states, &own(&head)).0;
            let first = difference(&found, &golden(flags.name()));
            let found = steps(engine.as_mut(), &states, &own(&head));
            let later = difference(&found, &golden(format!("{} steps", flags.name())));
            assert!(first < most && later < most, "{flags:?}: {first}, {later}, at most {most}");
        }
    }
}

#[test]
fn all_published_formats_of_a_head_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    for flags in flags() {
        let (target, head) = pair(folder.path(), flags);
        let states = made_up("states", TOKENS * flags.states * target.config().unwrap().hidden);
        let mut forms = vec![head.eagle(folder.path()).unwrap(), head.speculators(folder.path()).unwrap()];
        if !flags.head_norms {
            forms.push(head.gguf(folder.path(), GgmlDType::F32).unwrap());
        }
        let forms: Vec<_> = forms
            .iter()
            .map(|source| {
                assert!(source.is_draft_head());
                let source = source.for_target(&target).unwrap();
                assert_eq!(source.guessed_tokens().unwrap().unwrap(), head.guessed);
                rows(loaded(&source).as_mut(), &states, &own(&head)).0
            })
            .collect();
        for form in &forms {
            assert!(difference(form, &forms[0]) < 1e-4, "{flags:?}: {}", difference(form, &forms[0]));
        }
        let source = head.eagle(folder.path()).unwrap().for_target(&target).unwrap();
        let mut tensors = TensorModel::exact(&source, &Device::Cpu).unwrap();
        let tensors = rows(&mut tensors, &states, &own(&head)).0;
        assert!(
            difference(&tensors, &forms[0]) < IN_HALVES,
            "{flags:?}: {}",
            difference(&tensors, &forms[0])
        );
    }
}

/// A head for the starter target.
fn starter_head(folder: &Path) -> HeadDrafter {
    starter_head_of(folder, Flags::default())
}

fn starter_head_of(folder: &Path, flags: Flags) -> HeadDrafter {
    let target = starter_target();
    let mut head = RandomHead::new(target.config().unwrap(), flags);
    head.entering = if flags.states == 5 { vec![1, 2, 4, 5, 6] } else { vec![2, 4, 6] };
    drafter(&head.gguf(folder, GgmlDType::Q8_0).unwrap().for_target(&target).unwrap())
}

fn drafter(source: &ModelSource) -> HeadDrafter {
    let ends = starter_target().tokenizer().unwrap().ends().to_vec();
    HeadDrafter::new(source, loaded(source), &ends).unwrap()
}

fn coupled() -> Sampling {
    Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

#[test]
fn a_random_head_changes_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = decoder(&starter_target());
    for sampling in [Sampling::greedy(), coupled(), Sampling { repetition_penalty: 1.2, ..coupled() }] {
        let prompt = chat_prompt(&starter_target(), decoder.tokenizer(), "Count from one to twelve.");
        let mut request = Request { sampling, max_tokens: Some(50), ..Request::new(prompt) };
        let write = |decoder: &mut Decoder, request: &Request, drafters: &mut Drafters| {
            decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let plain = write(&mut decoder, &request, &mut Drafters::default());
        let mut head = Drafters::one(starter_head(folder.path()));
        let both: Vec<Box<dyn Drafter>> =
            vec![Box::new(starter_head(folder.path())), Box::<NgramDrafter>::default()];
        let mut both = Drafters::new(both);
        let newer = Flags { fc_norm: true, norm_output: true, states: 5, ..Flags::default() };
        let mut newer = Drafters::one(starter_head_of(folder.path(), newer));
        for drafters in [&mut head, &mut both, &mut newer] {
            let widths = [1, 3].map(Tree::Width);
            for way in [Speculation::fixed(1), Speculation::fixed(5), Speculation::default()]
                .into_iter()
                .flat_map(|way| widths.map(|tree| Speculation { tree, ..way.clone() }))
            {
                request.speculation = way;
                let drafted = write(&mut decoder, &request, drafters);
                assert_eq!(drafted.tokens, plain.tokens, "{:?}", request.speculation);
            }
        }
    }
}

#[test]
fn after_an_edit_the_prompt_is_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = decoder(&starter_target());
    let mut head = Drafters::one(starter_head(folder.path()));
    let mut prompt: Vec<TokenId> = (0..300).map(|token| 3 + token * 7 % 900).collect();
    for edit in [300, 150, 151, 20] {
        prompt[edit - 1] = 5;
        let request = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(6),
            ignore_end: true,
            speculation: Speculation::fixed(3),
            ..Request::new(prompt.clone())
        };
        let mut run = Vec::new();
        let mut drafted = 0;
        let reply = decoder.reply(&request, &mut head, &mut |progress| {
            match progress {
                Progress::Prompt { done, .. } => run.push(done),
                Progress::Round(round) => drafted += round.drafted.len(),
            }
            ControlFlow::Continue(())
        });
        reply.unwrap();
        assert!(run.is_sorted_by(|left, right| left < right), "{edit}: {run:?}");
        assert!(drafted > 0, "{edit}");
    }
}

#[test]
fn a_head_drafts_as_from_a_fresh_start() {
    let folder = tempfile::tempdir().unwrap();
    assert_drafts_like_new(&|| Box::new(starter_head(folder.path())), 5);
}

/// Likeliest guesses after a path of guesses behind a text, by running the head along that path
/// only.
fn alone(
    model: &mut dyn Model,
    text: &[TokenId],
    states: Features<'_>,
    path: &[TokenId],
    guessed: &[TokenId],
) -> Vec<TokenId> {
    let own = Taps { entering: vec![1], ..Taps::default() };
    model.truncate(0);
    let mut tree = TokenTree::chain(text[1..].iter().copied());
    let want = Want::all_rows().features(&own).head_input(HeadInput::Target(states));
    let mut pass = model.run(&tree, &want).unwrap();
    for &token in path {
        let (row, width) =
            pass.features().map(|rows| (rows.gather(&[rows.len() - 1]), rows.width())).unwrap();
        tree.push(token, Some(tree.len() - 1));
        let want = Want::all_rows().features(&own).head_input(HeadInput::Own(Features::new(&row, width)));
        pass = pass.grow(&tree, &want).unwrap();
    }
    let last = if path.is_empty() { tree.len() - 1 } else { 0 };
    let scores = pass.logits().row(last).logits().unwrap().to_vec();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
    order.into_iter().take(2).map(|row| guessed[row]).collect()
}

#[test]
fn each_guess_of_a_tree_continues_from_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = loaded(&starter_target());
    let mut head = RandomHead::new(target.config(), Flags::default());
    head.entering = vec![2, 4, 6];
    // The target's states must not outweigh the head's own outputs.
    let fuse = head.tensors.get_mut("fc.weight").unwrap();
    *fuse = (&*fuse * 0.001).unwrap();
    let source = head.gguf(folder.path(), GgmlDType::F32).unwrap().for_target(&starter_target()).unwrap();
    let mut head = drafter(&source);
    let text: Vec<TokenId> = (0..30).map(|token| 3 + token * 7 % 900).collect();
    replay(target.as_mut(), &mut head, &text[..].into());
    let request = DraftRequest::tree(3, 2, 14);
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    let guesses = head.draft(&text[..].into(), &request, &mut sampler).unwrap().guesses;
    let depth = guesses.depths().into_iter().max();
    assert_eq!((guesses.len(), depth), (14, Some(2)), "two guesses after each");
    target.truncate(0);
    let taps = head.taps().unwrap();
    let before = TokenTree::chain(text[..text.len() - 1].iter().copied());
    let pass = target.run(&before, &Want::nothing().features(taps)).unwrap();
    let (mut model, guessed) = (loaded(&source), source.guessed_tokens().unwrap().unwrap());
    let mut different = std::collections::HashSet::new();
    for parent in [None].into_iter().chain((0..guesses.len()).map(Some)) {
        let children = guesses.iter().filter(|guess| guess.parent == parent).map(|guess| guess.token);
        let children: Vec<TokenId> = children.collect();
        if !children.is_empty() {
            let path = guesses.path(parent);
            let expected = alone(model.as_mut(), &text, pass.features().unwrap(), &path, &guessed);
            assert_eq!(children, expected, "after {path:?}");
            different.insert(children);
        }
    }
    assert!(different.len() > 4, "nothing was tested: {different:?}");
}
