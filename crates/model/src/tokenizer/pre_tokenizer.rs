//! Table of pre-tokenizers: how byte-level BPE vocabularies split a text into words, within which
//! bytes are merged. Unknown pre-tokenizers are rejected, because any other would split words
//! wrongly.
//!
//! Names are GGUF's; patterns come from the models' own tokenizer.json files.

use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use super::words::Words;

/// Splitting of a text into words before merges.
pub(super) struct PreTokenizer {
    /// Values of `tokenizer.ggml.pre`.
    names: &'static [&'static str],
    /// Patterns, applied in order; each isolates its matches in the pieces that the previous one
    /// left.
    patterns: &'static [&'static str],
    /// True if a word that is a token is not assembled by merges (`ignore_merges`).
    pub whole_words: bool,
    /// Default of `tokenizer.ggml.add_bos_token`.
    pub adds_bos: bool,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Qwen 2's pattern with combining marks among the letters.
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_V3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
/// Chinese, Korean and other characters, which form words together.
const DEEPSEEK_CHARACTERS: &str = r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+";
const DEEPSEEK_PUNCTUATION: &str =
    r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+";
/// Cased letters of an older version of Unicode, after at most one space.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[",
    r"\x{41}-\x{5A}\x{61}-\x{7A}\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}",
    r"\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}",
    r"\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}",
    r"\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}",
    r"\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}",
    r"\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}",
    r"\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}",
    r"\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}",
    r"\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}",
    r"\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}",
    r"\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}",
    r"\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}",
    r"\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}",
    r"\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}",
    r"\x{1E900}-\x{1E943}",
    "]+",
);

const PRE_TOKENIZERS: &[PreTokenizer] = &[
    PreTokenizer {
        names: &["default", "gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "trillion"],
        patterns: &[GPT2],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"],
        patterns: &[r"\p{N}", GPT2],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["falcon"],
        patterns: &[r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["deepseek-llm"],
        patterns: &[
            r"[\r\n]",
            DEEPSEEK_LETTERS,
            DEEPSEEK_PUNCTUATION,
            r"\s+$",
            DEEPSEEK_CHARACTERS,
            r"\p{N}+",
        ],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["deepseek-coder"],
        patterns: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", DEEPSEEK_CHARACTERS, r"\p{N}"],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["deepseek-v3", "hunyuan-dense"],
        patterns: &[r"\p{N}{1,3}", r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+", DEEPSEEK_V3],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"],
        patterns: &[LLAMA3],
        whole_words: true,
        adds_bos: true,
    },
    PreTokenizer { names: &["glm4", "glm5"], patterns: &[LLAMA3], whole_words: true, adds_bos: false },
    PreTokenizer {
        names: &["dbrx", "smaug-bpe", "chatglm-bpe"],
        patterns: &[LLAMA3],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer {
        names: &["qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"],
        patterns: &[QWEN2],
        whole_words: false,
        adds_bos: false,
    },
    PreTokenizer { names: &["qwen35"], patterns: &[QWEN35], whole_words: false, adds_bos: false },
    PreTokenizer { names: &["tekken"], patterns: &[TEKKEN], whole_words: true, adds_bos: true },
    PreTokenizer { names: &["gpt-4o", "llama4"], patterns: &[GPT4O], whole_words: false, adds_bos: false },
];

impl PreTokenizer {
    /// Finds a pre-tokenizer by GGUF's name.
    ///
    /// # Errors
    /// A reason with the supported names.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        PRE_TOKENIZERS.iter().find(|p| p.names.contains(&name)).ok_or_else(|| {
            let known: Vec<&str> = PRE_TOKENIZERS.iter().flat_map(|p| p.names).copied().collect();
            format!("unknown pre-tokenizer '{name}', expected one of {}", known.join(", "))
        })
    }

    /// Returns the steps; the last one maps bytes to printable characters.
    ///
    /// # Errors
    /// The reason to reject a pattern.
    pub fn words(&self) -> Result<Words, String> {
        Words::isolated(self.patterns, ByteLevel::new(false, true, false))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _};

    use super::PreTokenizer;

    const TEXT: &str = "I'LL pay $12345.67, naïveÜber!\n\n  日本語 x=y/\tहिन्दी 7zIP <b>  ";

    /// The words of [`TEXT`], separated by bars, split with the same patterns by Python's `regex`
    /// module.
    const WORDS: &[(&str, &str)] = &[
        (
            "gpt-2",
            "I¦'¦LL¦ pay¦ $¦12345¦.¦67¦,¦ naïveÜber¦!¦\n\n ¦ 日本語¦ x¦=¦y¦/¦\t¦ह¦ि¦न¦्¦द¦ी¦ 7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "starcoder",
            "I¦'¦LL¦ pay¦ $¦1¦2¦3¦4¦5¦.¦6¦7¦,¦ naïveÜber¦!¦\n\n ¦ 日本語¦ x¦=¦y¦/¦\t¦ह¦ि¦न¦्¦द¦ी¦ ¦7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "falcon",
            "I¦'¦LL¦ pay¦ ¦$¦123¦45¦.¦67¦,¦ naïveÜber¦!¦\n\n ¦ 日本語¦ x¦=¦y¦/¦\t¦ह¦ि¦न¦्¦द¦ी¦ 7¦zIP¦ ¦<¦b¦>¦  ",
        ),
        (
            "deepseek-llm",
            "I¦'¦LL¦ pay¦ $¦12345¦.¦67¦,¦ na¦ï¦ve¦Ü¦ber¦!¦\n¦\n¦  ¦日本語¦ x¦=¦y¦/¦\t¦हिन्दी¦ ¦7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "deepseek-coder",
            "I¦'¦LL¦ pay¦ $¦1¦2¦3¦4¦5¦.¦6¦7¦,¦ naïveÜber¦!¦\n¦\n¦ ¦ ¦日本語¦ x¦=¦y¦/¦\t¦ह¦ि¦न¦्¦द¦ी¦ ¦7¦zIP¦ <¦b¦>  ",
        ),
        (
            "deepseek-v3",
            "I¦'LL¦ pay¦ $¦123¦45¦.¦67¦,¦ naïveÜber¦!\n\n¦  ¦日本語¦ x¦=y¦/¦\tहिन्दी¦ ¦7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "llama-bpe",
            "I¦'LL¦ pay¦ $¦123¦45¦.¦67¦,¦ naïveÜber¦!\n\n¦ ¦ 日本語¦ x¦=y¦/¦\tह¦िन¦्द¦ी¦ ¦7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "qwen2",
            "I¦'LL¦ pay¦ $¦1¦2¦3¦4¦5¦.¦6¦7¦,¦ naïveÜber¦!\n\n¦ ¦ 日本語¦ x¦=y¦/¦\tह¦िन¦्द¦ी¦ ¦7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "qwen35",
            "I¦'LL¦ pay¦ $¦1¦2¦3¦4¦5¦.¦6¦7¦,¦ naïveÜber¦!\n\n¦ ¦ 日本語¦ x¦=y¦/¦\tहिन्दी¦ ¦7¦zIP¦ <¦b¦>¦  ",
        ),
        (
            "tekken",
            "I¦'LL¦ pay¦ $¦1¦2¦3¦4¦5¦.¦6¦7¦,¦ naïve¦Über¦!\n\n¦ ¦ 日本語¦ x¦=y¦/¦\tहिन्दी¦ ¦7¦z¦IP¦ <¦b¦>¦  ",
        ),
        (
            "gpt-4o",
            "I'LL¦ pay¦ $¦123¦45¦.¦67¦,¦ naïve¦Über¦!\n\n¦ ¦ 日本語¦ x¦=y¦/¦\tहिन्दी¦ ¦7¦z¦IP¦ <¦b¦>¦  ",
        ),
    ];

    #[test]
    fn every_kind_splits_words_as_its_patterns_say() {
        for (name, words) in WORDS {
            let mut text = PreTokenizedString::from(TEXT);
            PreTokenizer::named(name).unwrap().words().unwrap().pre_tokenize(&mut text).unwrap();
            let splits = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
            let found: Vec<&str> = splits.iter().map(|(_, (start, end), _)| &TEXT[*start..*end]).collect();
            assert_eq!(found.join("¦"), *words, "{name}");
        }
    }

    #[test]
    fn every_pattern_is_one_that_is_run() {
        for pre in super::PRE_TOKENIZERS {
            assert!(pre.words().is_ok(), "{:?}", pre.names);
        }
    }
}
