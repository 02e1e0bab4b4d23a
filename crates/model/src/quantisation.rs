//! Names of weight formats: "Q4_K_M", the recipe that a file is known by, rather than the type of
//! one of its tensors.

use crate::format::Format;

/// Values of `general.file_type` for recipes of supported types.
const FILE_TYPES: [(u64, &str); 36] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (19, "IQ2_XXS"),
    (20, "IQ2_XS"),
    (21, "Q2_K_S"),
    (22, "IQ3_XS"),
    (23, "IQ3_XXS"),
    (24, "IQ1_S"),
    (25, "IQ4_NL"),
    (26, "IQ3_S"),
    (27, "IQ3_M"),
    (28, "IQ2_S"),
    (29, "IQ2_M"),
    (30, "IQ4_XS"),
    (31, "IQ1_M"),
    (32, "BF16"),
    (36, "TQ1_0"),
    (37, "TQ2_0"),
    (38, "MXFP4"),
    (39, "NVFP4"),
    (40, "Q1_0"),
    (41, "Q2_0"),
];

/// Returns the name of the format: the recipe in the metadata, otherwise the one in the file name,
/// if most matrices have one of its types; otherwise their type.
pub(super) fn name(file_type: Option<u64>, file_format: Option<&str>, commonest: Format) -> String {
    let stated =
        FILE_TYPES.iter().find(|(number, _)| Some(*number) == file_type).map(|&(_, name)| name.to_owned());
    let shown = file_format.map(str::to_ascii_uppercase);
    let true_of_most = |name: &String| types(name).contains(&commonest);
    stated.into_iter().chain(shown).find(true_of_most).unwrap_or_else(|| commonest.name().to_owned())
}

/// Returns whether a word names a format, such as "Q4_K_M", "iq2_xxs" or "BF16".
pub(super) fn is_format(word: &str) -> bool {
    let word = word.to_ascii_uppercase();
    if matches!(word.as_str(), "F32" | "F16" | "BF16" | "FP16" | "FP32" | "MXFP4" | "MXFP4_MOE" | "NVFP4") {
        return true;
    }
    let Some((stem, variant)) = word.split_once('_') else { return false };
    let bits = stem.strip_prefix("IQ").or(stem.strip_prefix("TQ")).or(stem.strip_prefix('Q'));
    bits.is_some_and(|bits| matches!(bits.as_bytes(), [b'1'..=b'8']))
        && matches!(
            variant,
            "0" | "1" | "K" | "K_S" | "K_M" | "K_L" | "K_XL" | "XXS" | "XS" | "S" | "M" | "NL"
        )
}

/// Returns the types that most matrices of a recipe have: its own, and the replacement for rows
/// that are not a multiple of its block size.
fn types(recipe: &str) -> &'static [Format] {
    use Format::{
        Bf16, F16, F32, Iq1M, Iq1S, Iq2S, Iq2Xs, Iq2Xxs, Iq3S, Iq3Xxs, Iq4Nl, Iq4Xs, Mxfp4, Nvfp4, Q1_0,
        Q2_0, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, Tq1_0, Tq2_0,
    };
    match recipe {
        "F32" | "FP32" => &[F32],
        "F16" | "FP16" => &[F16],
        "BF16" => &[Bf16],
        "Q4_0" => &[Q4_0],
        "Q4_1" => &[Q4_1],
        "Q5_0" => &[Q5_0],
        "Q5_1" => &[Q5_1],
        "Q8_0" => &[Q8_0],
        "IQ1_S" => &[Iq1S, Iq4Nl],
        "IQ1_M" => &[Iq1M, Iq4Nl],
        "IQ2_XXS" => &[Iq2Xxs, Iq4Nl],
        "IQ2_XS" => &[Iq2Xs, Iq4Nl],
        "IQ2_S" => &[Iq2Xs, Iq2S, Iq4Nl],
        "IQ2_M" => &[Iq2S, Iq4Nl],
        "IQ3_XXS" => &[Iq3Xxs, Iq4Nl],
        "IQ3_XS" => &[Iq3S, Iq3Xxs, Iq4Nl],
        "IQ3_S" | "IQ3_M" => &[Iq3S, Iq4Nl],
        "IQ4_NL" => &[Iq4Nl],
        "IQ4_XS" => &[Iq4Xs, Iq4Nl],
        "TQ1_0" => &[Tq1_0, Q4_0],
        "TQ2_0" => &[Tq2_0, Q4_0],
        "MXFP4" | "MXFP4_MOE" => &[Mxfp4],
        "NVFP4" => &[Nvfp4],
        "Q1_0" => &[Q1_0],
        "Q2_0" => &[Q2_0],
        _ if recipe.starts_with("Q2_K") => &[Q2K, Iq4Nl],
        _ if recipe.starts_with("Q3_K") => &[Q3K, Iq4Nl],
        _ if recipe.starts_with("Q4_K") => &[Q4K, Q5_0],
        _ if recipe.starts_with("Q5_K") => &[Q5K, Q5_1],
        _ if recipe.starts_with("Q6_K") => &[Q6K, Q8_0],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_by_its_recipe_and_not_by_the_type_of_one_tensor() {
        // Three real files. Most of the second is Q5_0, because its rows are not a multiple of 256.
        assert_eq!(name(Some(3), Some("Q4_1"), Format::Q4_1), "Q4_1");
        assert_eq!(name(Some(15), Some("Q4_K_M"), Format::Q5_0), "Q4_K_M");
        assert_eq!(name(Some(15), Some("q4_k_m"), Format::Q4K), "Q4_K_M");
        // Rows that are not a multiple of 256, as in small models.
        assert_eq!(name(Some(30), Some("IQ4_XS"), Format::Iq4Nl), "IQ4_XS");
        assert_eq!(name(Some(38), Some("mxfp4"), Format::Mxfp4), "MXFP4");
        assert_eq!(name(None, Some("iq2_xxs"), Format::Iq2Xxs), "IQ2_XXS");
    }

    #[test]
    fn what_contradicts_the_tensors_is_not_believed() {
        assert_eq!(name(Some(1), None, Format::Q8_0), "Q8_0");
        assert_eq!(name(Some(1), Some("q4_k_s"), Format::Q4K), "Q4_K_S");
        assert_eq!(name(Some(1), Some("IQ2_XXS"), Format::F32), "F32");
        assert_eq!(name(Some(u64::MAX), Some("Q4_0"), Format::Bf16), "BF16");
        assert_eq!(name(None, None, Format::Q4K), "Q4_K");
        assert_eq!(name(None, None, Format::F32), "F32");
    }

    #[test]
    fn every_file_type_names_a_format_of_its_own_type() {
        for (number, format) in FILE_TYPES {
            assert!(is_format(format), "{format}");
            assert_eq!(name(Some(number), None, types(format)[0]), format);
        }
        assert!(["Q4_K_M", "iq2_xxs", "TQ1_0", "bf16"].iter().all(|word| is_format(word)));
        assert!(["", "Q4", "Q9_0", "Q4_K_Q", "instruct", "Q_4", "IQ"].iter().all(|word| !is_format(word)));
    }
}
