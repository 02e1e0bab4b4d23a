//! README's table of the models and draft heads that each engine runs, against the engines
//! themselves.

use candle_core::{DType, Device};
use foretoken_forward::gpu::unsupported;
use foretoken_forward::{CpuModel, TensorModel};
use foretoken_model::ModelSource;
use foretoken_tests::{
    BlockKind, Flags, RandomAssistant, RandomBlockHead, RandomFamily, RandomHead, families, family,
    repository,
};

const START: &str = "<!-- support: written by tests/repository/support.rs -->\n";
const END: &str = "<!-- /support -->\n";

/// The models of each random family, by its label; a label without models stands for a variant.
const MODELS: [(&str, &str); 26] = [
    ("llama", "Llama 2 to 3.3, SmolLM2"),
    ("mistral", "Mistral, Mistral Small 3"),
    ("mistral3", "Ministral 3"),
    ("qwen2", "Qwen2, Qwen2.5"),
    ("qwen3", "Qwen3"),
    ("qwen3moe", "Qwen3 MoE"),
    ("qwen3vl", "Qwen3-VL"),
    ("gemma3", "Gemma 3"),
    ("phi3", "Phi-3, 3.5, 4"),
    ("phi3 with two lists of factors", ""),
    ("smollm3", "SmolLM3"),
    ("granite", "Granite 3, 4"),
    ("granite 4", ""),
    ("olmo3", "Olmo 2, 3"),
    ("muse-glimmer", "Muse Glimmer"),
    ("gpt-oss", "gpt-oss"),
    ("gemma4", "Gemma 4"),
    ("gemma4 with experts", ""),
    ("qwen35", "Qwen3.5, 3.6, 3.8"),
    ("qwen35moe", ""),
    ("lfm2", "LFM2, LFM2.5"),
    ("lfm2moe", ""),
    ("granitehybrid", "Granite 4 with Mamba layers"),
    ("granitehybrid with experts", ""),
    ("glm", "GLM-4.7-Flash"),
    ("deepseek2", "DeepSeek-V2-Lite"),
];

/// Feature that the GPU engine lacks for a model or head; `None` if it runs it.
type Lacking = Option<&'static str>;

#[test]
fn the_readme_lists_which_engine_runs_which_models_and_heads() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows: Vec<(Lacking, Vec<&str>)> = Vec::new();
    let mut add = |source: &ModelSource, name: &'static str| {
        let lacking = unsupported(source.config().unwrap());
        match rows.iter_mut().find(|(other, _)| *other == lacking) {
            Some((_, names)) => names.push(name),
            None => rows.push((lacking, vec![name])),
        }
    };
    let (models, families) = (MODELS.map(|(label, _)| label), families());
    assert!(families.iter().all(|family| models.contains(&family.label)));
    for (label, names) in MODELS {
        let source = family(label).folder(&folder.path().join(label), DType::F32);
        CpuModel::load(&source).unwrap();
        TensorModel::load(&source, &Device::Cpu).unwrap();
        add(&source, names);
    }
    let target = families.iter().find(|family| family.label == "llama").unwrap();
    for (index, (source, name)) in heads(target, folder.path()).into_iter().enumerate() {
        assert!(index < 4);
        add(&source, name);
    }
    let table = table(&rows);
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let written = readme.split_once(START).unwrap().1.split_once(END).unwrap().0;
    assert_eq!(written, table, "README.md should have this table:\n{table}");
}

/// One head of each kind, with the name of the kind.
fn heads(target: &RandomFamily, folder: &std::path::Path) -> [(ModelSource, &'static str); 4] {
    let llama = target.folder(&folder.join("target"), DType::F32);
    let config = llama.config().unwrap();
    let qwen = family("qwen35").with_mtp().folder(&folder.join("mtp"), DType::F32);
    let assistant = RandomAssistant::new(&family("gemma4"), false);
    [
        (RandomHead::new(config, Flags::default()).eagle(&folder.join("eagle")).unwrap(), "EAGLE-3"),
        (RandomBlockHead::new(config, BlockKind::DSpark).authors(&folder.join("block")), "DFlash, DSpark"),
        (qwen.mtp_head().unwrap().for_target(&qwen).unwrap(), "MTP"),
        (assistant.folder(&folder.join("assistant")).unwrap(), "Gemma 4's assistants"),
    ]
}

/// A Markdown table with one row for all models that the GPU engine lacks the same for.
fn table(rows: &[(Lacking, Vec<&str>)]) -> String {
    let mut table =
        "| models and draft heads | CPU | GPU | CUDA, Metal |\n| --- | --- | --- | --- |\n".to_owned();
    for (lacking, names) in rows {
        let gpu = lacking.map_or("yes".to_owned(), |part| format!("no: {part}"));
        let names: Vec<&str> = names.iter().copied().filter(|names| !names.is_empty()).collect();
        table += &format!("| {} | yes | {gpu} | yes |\n", names.join(", "));
    }
    table
}
