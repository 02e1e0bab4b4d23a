//! Checks the `normalizer` of a tokenizer.json: accepts the steps that language models use, if they
//! do not make a text much longer.

use serde_json::Value as Json;

/// Largest number of steps; real models have up to five.
const MOST_STEPS: usize = 16;
/// Deepest nesting of sequences.
const DEEPEST: usize = 4;
/// Largest growth of a text: that of NFKC together with a space of three bytes.
const GROWTH: usize = 40;
/// Longest replacement in bytes.
pub(crate) const LONGEST: usize = 64;
/// Patterns of replacements that are supported.
const PATTERNS: &[&str] = &[" {2,}", r"\s+", r"\s{2,}", r"\n", r"\r\n"];

/// Checks a document's normalizer.
///
/// # Errors
/// The reason to reject it.
pub(super) fn check(normalizer: &Json) -> Result<(), String> {
    check_with(normalizer, grows)
}

/// Checks a normalizer whose steps lengthen a text by the factor `growth_of`.
///
/// # Errors
/// The reason to reject it.
pub(crate) fn check_with(
    normalizer: &Json,
    growth_of: impl Fn(&Json) -> Result<usize, String>,
) -> Result<(), String> {
    let growth = steps(normalizer, "normalizers")?
        .into_iter()
        .try_fold(1usize, |growth, step| Ok::<_, String>(growth.saturating_mul(growth_of(step)?)))?;
    if growth > GROWTH {
        return Err(format!("it makes a text {growth} times longer, and at most {GROWTH} is expected"));
    }
    Ok(())
}

/// Returns the steps of nested sequences, each of which has its steps in `list`.
///
/// # Errors
/// The reason to reject them.
pub(crate) fn steps<'a>(step: &'a Json, list: &str) -> Result<Vec<&'a Json>, String> {
    let mut steps = Vec::new();
    collect(step, list, DEEPEST, &mut steps)?;
    match steps.len() {
        0..=MOST_STEPS => Ok(steps),
        _ => Err(format!("it changes a text in more than {MOST_STEPS} steps")),
    }
}

/// Appends the steps of nested sequences to `steps`, in order.
fn collect<'a>(step: &'a Json, list: &str, depth: usize, steps: &mut Vec<&'a Json>) -> Result<(), String> {
    if step.is_null() {
        return Ok(());
    }
    if step["type"] != "Sequence" {
        steps.push(step);
        return Ok(());
    }
    let depth = depth.checked_sub(1).ok_or_else(|| "it has steps within steps within steps".to_owned())?;
    step[list].as_array().into_iter().flatten().try_for_each(|step| collect(step, list, depth, steps))
}

/// Returns the factor by which a step may lengthen a text.
///
/// # Errors
/// The reason to reject it.
pub(crate) fn grows(step: &Json) -> Result<usize, String> {
    let added = |key: &str| match step[key].as_str().map_or(0, str::len) {
        length if length > LONGEST => Err(format!("it makes a text longer by {length} bytes in one place")),
        length => Ok(length),
    };
    match step["type"].as_str().unwrap_or("none") {
        "NFC" | "NFD" | "Lowercase" | "ByteLevel" => Ok(3),
        // U+FDFA becomes eighteen letters of two bytes instead of one of three.
        "NFKC" | "NFKD" => Ok(12),
        "Strip" | "StripAccents" => Ok(1),
        "Prepend" => added("prepend").map(|_| 1),
        "Replace" => {
            let found = match (step["pattern"]["String"].as_str(), step["pattern"]["Regex"].as_str()) {
                (Some(text), None) if !text.is_empty() => text.len(),
                (None, Some(pattern)) if PATTERNS.contains(&pattern) => 1,
                (text, pattern) => {
                    let pattern = text.or(pattern).unwrap_or("none");
                    return Err(format!(
                        "it replaces text by the pattern '{pattern}', which is not known here"
                    ));
                }
            };
            Ok(added("content")?.div_ceil(found).max(1))
        }
        kind => Err(format!("it changes a text by '{kind}', which is not known here")),
    }
}
