//! Titles of models, from the metadata and the file name. Neither is reliable alone: the metadata
//! of SmolLM2-135M-Instruct.Q4_1.gguf says "Smollm2 135M 8k Lc100K Mix1 Ep2", and that of
//! llama-2-7b-chat.gguf "LLaMA v2".

use super::quantisation::is_format;

/// Longest title in characters; longer ones are cut.
const LONGEST: usize = 60;
/// Longest part of a clue that is read, in characters.
const LONGEST_CLUE: usize = 200;

/// Words about the storage of a model, which are not part of its title.
const STORAGE: [&str; 11] =
    ["gguf", "ggml", "awq", "gptq", "mlx", "hf", "ud", "imat", "imatrix", "i1", "safetensors"];
/// Names that say nothing about the model.
const GENERIC: [&str; 10] =
    ["model", "models", "ggml", "gguf", "checkpoint", "output", "final", "main", "unknown", "untitled"];

/// Sources of a title. Any of them may be missing, empty or meaningless.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Clues<'a> {
    /// `general.name`, or the repository in `_name_or_path` of config.json.
    pub name: Option<&'a str>,
    /// `general.basename`, `general.size_label`, `general.finetune`: "Qwen2.5-Coder", "1.5B",
    /// "Instruct".
    pub basename: Option<&'a str>,
    pub size_label: Option<&'a str>,
    pub finetune: Option<&'a str>,
    /// File name without extension, or folder name.
    pub file: &'a str,
}

/// Builds the title, one line of words such as "Qwen2.5 Coder 1.5B Instruct". The file name wins if
/// it follows the naming convention and agrees with the metadata; capitals come from whichever
/// source has them.
pub(super) fn title(clues: Clues<'_>) -> String {
    let (own_file, formatted) = without_format(within(clues.file));
    let file = words(own_file);
    let basename = words(within(clues.basename.unwrap_or_default()));
    let name = words(within(last_part(clues.name.unwrap_or_default())));
    let size = words(within(clues.size_label.unwrap_or_default()));
    let finetune = words(within(clues.finetune.unwrap_or_default()));

    let telling = |words: &[&str]| words.first().is_some_and(|first| !is_generic(first));
    let conventional = telling(&file) && (formatted || file.iter().any(|word| is_size(word)));
    let found: Vec<&str> = if conventional && joined(&file).starts_with(&joined(&basename)) {
        let all = [&name, &basename, &size, &finetune];
        file.iter().map(|word| in_best_case(word, all.into_iter().flatten())).collect()
    } else if telling(&basename) {
        let has_size = basename.iter().any(|word| is_size(word));
        let size = if has_size { &[][..] } else { &size[..] };
        [&basename[..], size, &finetune[..]].concat()
    } else if telling(&name) {
        name
    } else {
        file
    };
    let title = capitalised(&found.into_iter().map(with_its_unit).collect::<Vec<_>>().join(" "));
    if title.is_empty() { "Model".to_owned() } else { title }
}

/// Returns whether a word is a number of parameters: "135M", "1.5b", "8x7B".
pub(super) fn is_size(word: &str) -> bool {
    let number = word.strip_suffix(['M', 'm', 'B', 'b', 'T', 't']).unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 'x')
}

/// Strips a format such as "-Q4_K_M" or ".Q8_0" and the number of a split file from a file name;
/// returns whether there was a format.
fn without_format(file: &str) -> (&str, bool) {
    let part = file.rsplit_once("-of-").filter(|(_, count)| count.chars().all(|c| c.is_ascii_digit()));
    let whole = part.and_then(|(rest, _)| rest.rsplit_once('-')).map_or(file, |(rest, _)| rest);
    let format = whole.match_indices(['-', '.', '_', ' ']).find(|(at, _)| is_format(&whole[at + 1..]));
    match format {
        Some((at, _)) => (&whole[..at], true),
        None => (whole, false),
    }
}

/// Returns the format at the end of a file name, such as "Q4_K_M".
pub(super) fn format_of(file: &str) -> Option<&str> {
    let (rest, found) = without_format(within(file));
    let format = found.then(|| &file[rest.len() + 1..])?;
    Some(format.split_once("-0").map_or(format, |(format, _)| format))
}

fn words(text: &str) -> Vec<&str> {
    let split =
        text.split(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '-' | '_' | '/' | '\\'));
    split
        .filter(|word| word.contains(char::is_alphanumeric))
        .filter(|word| !STORAGE.iter().any(|storage| word.eq_ignore_ascii_case(storage)))
        .collect()
}

/// Returns the start of a text of any length.
fn within(text: &str) -> &str {
    text.char_indices().nth(LONGEST_CLUE).map_or(text, |(end, _)| &text[..end])
}

/// Returns the last component of a path or repository name.
fn last_part(text: &str) -> &str {
    text.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns whether a word could name any model, or is a checksum.
fn is_generic(word: &str) -> bool {
    GENERIC.iter().any(|generic| word.eq_ignore_ascii_case(generic))
        || word.len() >= 20 && word.chars().all(|c| c.is_ascii_hexdigit())
}

fn joined(words: &[&str]) -> String {
    let letters = words.iter().flat_map(|word| word.chars()).filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the spelling of `word` with most capitals among `others` and itself.
fn in_best_case<'a>(word: &'a str, others: impl Iterator<Item = &'a &'a str>) -> &'a str {
    let capitals = |word: &str| word.chars().filter(|c| c.is_uppercase()).count();
    let same = others.copied().filter(|other| other.eq_ignore_ascii_case(word));
    // `max_by_key` returns the last of equals: the file's own spelling.
    same.chain([word]).max_by_key(|word| capitals(word)).unwrap_or(word)
}

/// Capitalises the unit of a size: "135M" for "135m".
fn with_its_unit(word: &str) -> String {
    match word.char_indices().next_back() {
        Some((at, unit)) if is_size(word) => format!("{}{}", &word[..at], unit.to_ascii_uppercase()),
        _ => word.to_owned(),
    }
}

/// Capitalises the first letter and cuts the title to [`LONGEST`].
fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut title = String::new();
    if first.chars().any(char::is_uppercase) {
        title.push_str(first);
    } else {
        let mut letters = first.chars();
        title.extend(letters.next().into_iter().flat_map(char::to_uppercase).chain(letters));
    }
    if !rest.is_empty() {
        title = format!("{title} {rest}");
    }
    match title.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
        None => title,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Title for a file, by `[name, basename, size_label, finetune]`.
    fn titled(file: &str, clues: [&str; 4]) -> String {
        let [name, basename, size_label, finetune] =
            clues.map(|clue| Some(clue).filter(|clue| !clue.is_empty()));
        title(Clues { name, basename, size_label, finetune, file })
    }

    #[test]
    fn real_files_are_called_what_people_call_them() {
        for (file, clues, expected) in [
            (
                "SmolLM2-135M-Instruct-Q4_1",
                ["Smollm2 135M 8k Lc100K Mix1 Ep2", "smollm2", "135M", "8k-lc100k-mix1-ep2"],
                "SmolLM2 135M Instruct",
            ),
            (
                "SmolLM2-135M-Instruct.Q4_1",
                ["Smollm2 135M 8k Lc100K Mix1 Ep2", "smollm2", "135M", "8k-lc100k-mix1-ep2"],
                "SmolLM2 135M Instruct",
            ),
            (
                "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M",
                ["Qwen2.5 Coder 0.5B Instruct AWQ", "Qwen2.5-Coder", "0.5B", "Instruct-AWQ"],
                "Qwen2.5 Coder 0.5B Instruct",
            ),
            (
                "qwen2.5-coder-1.5b-instruct-q4_k_m",
                ["Qwen2.5 Coder 1.5B Instruct GGUF", "Qwen2.5-Coder", "1.5B", "Instruct-GGUF"],
                "Qwen2.5 Coder 1.5B Instruct",
            ),
            ("gemma-3-270m-Q4_K_M", ["Gemma 3 270m", "gemma-3", "270M", ""], "Gemma 3 270M"),
            ("llama-2-7b-chat.Q4_K_M", ["LLaMA v2", "", "", ""], "LLaMA 2 7B chat"),
            ("HuggingFaceTB_SmolLM3-3B-UD-Q4_K_XL", ["SmolLM3 3B", "SmolLM3", "3B", ""], "SmolLM3 3B"),
            (
                "Qwen3-235B-A22B-Q4_K_M-00001-of-00003",
                ["Qwen3 235B A22B", "Qwen3", "235B-A22B", ""],
                "Qwen3 235B A22B",
            ),
        ] {
            assert_eq!(titled(file, clues), expected, "{file}");
        }
    }

    #[test]
    fn a_file_that_was_called_anything_goes_by_what_it_says_of_itself() {
        let clues = ["Qwen2.5 Coder 1.5B Instruct GGUF", "Qwen2.5-Coder", "1.5B", "Instruct-GGUF"];
        for file in ["model", "ggml-model-Q4_K_M", "my favourite", "Llama-3-8B-Q4_K_M", ""] {
            assert_eq!(titled(file, clues), "Qwen2.5 Coder 1.5B Instruct", "{file}");
        }
        assert_eq!(titled("The-Tower-of-Hanoi-7B", [""; 4]), "The Tower of Hanoi 7B");
        assert_eq!(titled("tiny", ["Tiny", "", "", ""]), "Tiny");
        assert_eq!(titled("model", ["meta-llama/Llama-3.2-1B", "", "", ""]), "Llama 3.2 1B");
        // A size appears once.
        assert_eq!(titled("x", ["", "phi-3-3.8B", "3.8B", "mini"]), "Phi 3 3.8B mini");
    }

    #[test]
    fn what_says_nothing_leaves_the_files_name() {
        for nothing in ["", " ", "-", "model", "Model", "0123456789abcdef0123456789abcdef", "/", "\n\u{7}"] {
            assert_eq!(titled("storyteller", [nothing, nothing, "", ""]), "Storyteller", "{nothing:?}");
        }
        assert_eq!(titled("", [""; 4]), "Model");
        assert_eq!(titled("--", [""; 4]), "Model");
        assert_eq!(titled("-Q4_K_M", [""; 4]), "Model");
    }

    #[test]
    fn a_name_is_one_short_line_whatever_the_file_says() {
        let long = "word ".repeat(100_000);
        let unbroken = "ж".repeat(100_000);
        let lines = "two\nlines\tand\u{0} more\u{1b}[31m";
        for clue in [long.as_str(), &unbroken, lines] {
            for clues in [[clue, "", "", ""], ["", clue, clue, clue], ["", "", clue, clue]] {
                for file in ["x", "a-1B-Q8_0", clue] {
                    let title = titled(file, clues);
                    assert!(title.chars().count() <= LONGEST + 1, "{title}");
                    assert!(!title.is_empty() && !title.contains(char::is_control), "{title:?}");
                }
            }
        }
    }

    #[test]
    fn a_files_name_tells_its_format() {
        for (file, expected) in [
            ("SmolLM2-135M-Instruct.Q4_1", Some("Q4_1")),
            ("qwen2.5-coder-1.5b-instruct-q4_k_m", Some("q4_k_m")),
            ("Qwen3-8B-UD-Q4_K_XL-00001-of-00003", Some("Q4_K_XL")),
            ("gemma-3-1b-it-BF16", Some("BF16")),
            ("model", None),
            ("Q4", None),
            ("", None),
        ] {
            assert_eq!(format_of(file), expected, "{file}");
        }
    }

    #[test]
    fn a_size_is_a_number_and_a_unit() {
        assert!(["135M", "1.5b", "8x7B", "270m", "1T"].iter().all(|word| is_size(word)));
        assert!(["", "M", "8k", "Mix1", "A22B", "v2", "2507"].iter().all(|word| !is_size(word)));
    }
}
