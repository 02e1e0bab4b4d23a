//! Names of models and quantisations in the names of files and repositories.

/// Returns the model part of a name: "qwen_qwen3-8b" of "bartowski/Qwen_Qwen3-8B-GGUF".
pub(crate) fn name_of(model: &str) -> String {
    if model.to_ascii_lowercase().ends_with(".gguf") {
        return model_of(model);
    }
    let mut name = model_of(model);
    // "i1" marks quantisations by an importance matrix, "mtp" files with the model's own head.
    for mark in ["-gguf", "-i1", "-mtp"] {
        if let Some(rest) = name.strip_suffix(mark) {
            name = model_of(rest);
        }
    }
    name
}

/// Returns the quantisation in a file name: "Q4_K_M" of "Qwen3-8B-Q4_K_M-00001-of-00002.gguf".
pub(crate) fn quantisation_of(file: &str) -> Option<String> {
    let (_, word) = split(file);
    word.map(|word| word.to_uppercase())
}

/// Returns the model part of a file name: "qwen3-8b" of
/// "owner/name:folder/Qwen3-8B-Q4_K_M-00001-of-00002.gguf".
pub(crate) fn model_of(file: &str) -> String {
    split(file).0
}

/// Returns the model part of a file name and its quantisation, in lower case.
fn split(file: &str) -> (String, Option<String>) {
    let name = file.rsplit(['/', '\\', ':']).next().unwrap_or(file).to_lowercase();
    let mut name = name.trim_end_matches(".gguf");
    if let Some((whole, _)) = name.split_once("-00001-of-") {
        name = whole;
    }
    match name.rsplit_once(['-', '.']) {
        // Unsloth's dynamic quantisations begin with "UD".
        Some((model, quantisation)) if is_quantisation(quantisation) => {
            (model.strip_suffix("-ud").unwrap_or(model).to_owned(), Some(quantisation.to_owned()))
        }
        _ => (name.to_owned(), None),
    }
}

/// Returns whether a word names a quantisation: "q4_k_m", "iq2_xxs", "bf16", "mxfp4".
fn is_quantisation(word: &str) -> bool {
    let of_blocks = word.trim_start_matches('i').strip_prefix('q');
    of_blocks.is_some_and(|bits| bits.starts_with(|c: char| c.is_ascii_digit()))
        || ["f16", "bf16", "f32", "mxfp4"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantisation_of_a_file_is_the_last_part_of_its_name() {
        let of = |file| quantisation_of(file).unwrap_or_default();
        assert_eq!(of("a/Qwen3-8B-UD-Q4_K_XL-00001-of-00002.gguf"), "Q4_K_XL");
        assert_eq!(of("qwen2.5-7b-instruct.f16.gguf"), "F16");
        assert_eq!(of("README.md"), "");
    }
}
