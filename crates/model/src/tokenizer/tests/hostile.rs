//! Tests of malicious tokenizer documents: each is rejected with a message or harmless.

use std::slice;
use std::time::{Duration, Instant};

use tokenizers::tokenizer::pattern::Pattern as _;

use super::super::pattern::Pattern;
use super::*;

/// Error message for a tokenizer.json changed by `bend`.
fn refusal(bend: impl FnOnce(&mut Json)) -> String {
    let folder = folder();
    change(&folder, "tokenizer.json", bend);
    match from_folder(&folder) {
        Err(Error::Tokenizer { reason, .. }) => reason,
        Err(other) => panic!("expected a refusal of the tokenizer, found {other}"),
        Ok(tokenizer) => panic!("expected a refusal, found {:?}", tokenizer.encode("aaa b", Special::Ignore)),
    }
}

/// Tokens of `text` with a tokenizer.json changed by `bend`.
fn encoded(text: &str, bend: impl FnOnce(&mut Json)) -> Result<Vec<TokenId>, Error> {
    let folder = folder();
    change(&folder, "tokenizer.json", bend);
    from_folder(&folder)?.encode(text, Special::Ignore)
}

fn split(pattern: &str) -> Json {
    json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
}

/// Splits by a pattern, then spells bytes.
fn cut_by(pattern: &str) -> impl FnOnce(&mut Json) {
    let steps = [
        split(pattern),
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}),
    ];
    move |document| document["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": steps})
}

fn replace(text: &str, by: &str) -> Json {
    json!({"type": "Replace", "pattern": {"String": text}, "content": by})
}

fn nested(depth: usize, list: &str, inner: Json) -> Json {
    (0..depth).fold(inner, |inner, _| json!({"type": "Sequence", list: [inner]}))
}

#[test]
fn a_pattern_that_repeats_a_repetition_is_refused() {
    let reason = refusal(cut_by("(a+)+[bc]"));
    assert!(reason.contains("'(a+)+[bc]' is not run: it repeats a repetition"), "{reason}");
}

#[test]
fn a_pattern_that_refers_to_what_it_found_is_refused() {
    let reason = refusal(cut_by(r"(a*)(a*)\1\2b"));
    assert!(reason.contains("is not run: it refers to what it found"), "{reason}");
}

#[test]
fn a_pattern_that_counts_too_far_is_refused() {
    for pattern in ["a{100000}", "(?:[ab]{60}){60}"] {
        let reason = refusal(cut_by(pattern));
        assert!(reason.contains("more than 64 times"), "{reason}");
    }
}

#[test]
fn a_pattern_that_is_too_long_is_refused() {
    let reason = refusal(cut_by(&"a".repeat(8193)));
    assert!(reason.contains("8193 bytes"), "{reason}");
}

#[test]
fn a_pattern_that_takes_too_much_memory_is_refused() {
    // Each repetition compiles to a table of all letters.
    let reason = refusal(cut_by(&r"\w{64}|".repeat(100)));
    assert!(reason.contains("is not run"), "{reason}");
}

#[test]
fn a_search_that_goes_on_after_its_time_ends_in_a_sentence() {
    let pattern = Pattern::new("a").unwrap();
    let past = Instant::now() - Duration::from_secs(1);
    let error = (&pattern.until(past)).find_matches("aaa").unwrap_err();
    assert!(error.to_string().contains("takes too long"), "{error}");
    let later = Instant::now() + Duration::from_secs(60);
    assert_eq!((&pattern.until(later)).find_matches("aaa").unwrap().len(), 3);
}

#[test]
fn a_pattern_that_is_damaged_is_refused() {
    let reason = refusal(cut_by("(a"));
    assert!(reason.contains("'(a' is not run"), "{reason}");
}

#[test]
fn a_search_that_tries_too_many_ways_ends_in_a_sentence() {
    let error = encoded(&"a".repeat(60), cut_by("(?:a|aa){60}(?!.)b")).unwrap_err();
    assert!(error.to_string().contains("takes too long"), "{error}");
}

#[test]
fn a_text_of_one_long_run_of_spaces_is_cut() {
    let text = " ".repeat(300_000) + "b";
    let tokens = encoded(&text, cut_by(r"\s+(?!\S)|\s+|b")).unwrap();
    assert_eq!(tokens.len(), text.len());
}

#[test]
fn a_normalizer_that_makes_a_text_long_is_refused() {
    let doubled = || json!({"type": "Sequence", "normalizers": vec![replace("a", "aa"); 16]});
    for normalizer in [
        doubled(),
        replace("a", &"a".repeat(1 << 20)),
        json!({"type": "Prepend", "prepend": "a".repeat(1 << 20)}),
    ] {
        let reason = refusal(|document| document["normalizer"] = normalizer);
        assert!(reason.contains("longer"), "{reason}");
    }
}

#[test]
fn steps_within_steps_are_followed_or_refused() {
    let folder = folder();
    change(&folder, "tokenizer.json", |document| {
        let inner = document["pre_tokenizer"].clone();
        document["pre_tokenizer"] = nested(40, "pretokenizers", inner);
        document["normalizer"] = nested(40, "normalizers", json!({"type": "NFC"}));
        document["post_processor"] = nested(40, "processors", json!({"type": "ByteLevel"}));
        document["decoder"] = nested(40, "decoders", json!({"type": "ByteLevel"}));
    });
    let reason = from_folder(&folder).err().unwrap().to_string();
    assert!(reason.contains("within"), "{reason}");
}

#[test]
fn more_steps_than_any_model_has_are_refused() {
    let reason = refusal(|document| {
        document["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": vec![split("a"); 33]});
    });
    assert!(reason.contains("more than 32 steps"), "{reason}");
    let strip = json!({"type": "Strip", "strip_left": true, "strip_right": true});
    let reason = refusal(|document| {
        document["normalizer"] = json!({"type": "Sequence", "normalizers": vec![strip; 17]});
    });
    assert!(reason.contains("more than 16 steps"), "{reason}");
}

#[test]
fn steps_that_no_language_model_has_are_refused_by_name() {
    for (kind, step) in [
        ("FixedLength", json!({"type": "FixedLength", "length": 0})),
        ("CharDelimiterSplit", json!({"type": "CharDelimiterSplit", "delimiter": "a"})),
    ] {
        let reason = refusal(|document| document["pre_tokenizer"] = step);
        assert!(reason.contains(kind), "{reason}");
    }
    let reason = refusal(|document| document["normalizer"] = json!({"type": "Nmt"}));
    assert!(reason.contains("'Nmt'"), "{reason}");
}

#[test]
fn a_normalizer_with_a_pattern_of_its_own_is_refused() {
    let reason = refusal(|document| {
        document["normalizer"] = json!({"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": "a"});
    });
    assert!(reason.contains("'(a*)*b'"), "{reason}");
}

#[test]
fn a_damaged_table_of_characters_is_refused() {
    for table in ["", "AAAA", "/////w==", "!"] {
        let reason = refusal(|document| {
            document["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": table});
        });
        assert!(reason.contains("'Precompiled'"), "{reason}");
    }
}

#[test]
fn padding_and_truncation_do_nothing() {
    let direction = |params: Json| params;
    let tokens = encoded("aaab", |document| {
        document["padding"] = direction(
            json!({"strategy": {"Fixed": 100_000_000u64}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "a"}),
        );
        document["truncation"] =
            json!({"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0});
    });
    assert_eq!(tokens.unwrap(), [97, 97, 97, 98]);
}

#[test]
fn a_template_that_repeats_the_text_does_nothing() {
    let tokens = encoded("ab", |document| {
        let text = json!({"Sequence": {"id": "A", "type_id": 0}});
        document["post_processor"] = json!({"type": "TemplateProcessing", "single": vec![text.clone(); 9], "pair": [text, text],
            "special_tokens": {}});
    });
    assert_eq!(tokens.unwrap(), [97, 98]);
}

#[test]
fn added_tokens_without_text_are_refused() {
    let added = |content: &str, normalized: bool| {
        json!({"id": 258, "content": content, "special": false, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": normalized})
    };
    let reason = refusal(|document| document["added_tokens"].as_array_mut().unwrap().push(added("", false)));
    assert!(reason.contains("the added token ''"), "{reason}");
    // The normalizer removes the whole token.
    let reason = refusal(|document| {
        document["normalizer"] = replace("x", "");
        document["added_tokens"].as_array_mut().unwrap().push(added("x", true));
    });
    assert!(!reason.is_empty());
}

#[test]
fn a_kind_of_vocabulary_that_no_language_model_has_is_refused() {
    for kind in ["WordPiece", "WordLevel"] {
        let reason = refusal(|document| {
            document["model"] = json!({"type": kind, "unk_token": "a", "vocab": {"a": 0}, "max_input_chars_per_word": 0,
                "continuing_subword_prefix": ""});
        });
        assert!(reason.contains(kind), "{reason}");
    }
}

#[test]
fn a_vocabulary_that_chooses_by_chance_is_refused() {
    let reason = refusal(|document| document["model"]["dropout"] = json!(0.5));
    assert!(reason.contains("dropout"), "{reason}");
}

/// A Unigram vocabulary, which maximises the sum of the pieces' scores.
fn pieces(pieces: Json) -> impl FnOnce(&mut Json) {
    move |document| {
        document["added_tokens"] = json!([]);
        document["model"] = json!({"type": "Unigram", "unk_id": 0, "vocab": pieces});
    }
}

#[test]
fn pieces_without_end_or_text_are_refused() {
    for piece in ["".to_owned(), "a".repeat(5000)] {
        let reason = refusal(pieces(json!([["<unk>", 0.0], ["a", -1.0], [piece, 5.0]])));
        assert!(reason.contains("bytes in a piece"), "{reason}");
    }
}

#[test]
fn a_panic_while_a_text_is_encoded_is_a_sentence() {
    // The library expects the unknown token to exist when it needs one.
    let error = encoded("ab", |document| {
        document["added_tokens"] = json!([]);
        document["model"] = json!({"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "[UNK]"});
    });
    assert!(matches!(error, Err(Error::Tokenizer { .. })), "{error:?}");
}

#[test]
fn hundreds_of_thousands_of_end_tokens_are_read_quickly() {
    let folder = folder();
    std::fs::write(folder.path().join("config.json"), "{}").unwrap();
    let ids: Vec<u32> = (0..150_000).collect();
    change(&folder, "config.json", |config| config["eos_token_id"] = json!(ids));
    let started = Instant::now();
    let tokenizer = from_folder(&folder).unwrap();
    assert_eq!(tokenizer.ends().len(), crate::limits::ENDS);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn thousands_of_added_tokens_are_added_at_once() {
    let folder = folder();
    let token = |id: usize| {
        (id.to_string(), json!({"content": format!("{}|{id}|", (b'a' + (id % 26) as u8) as char)}))
    };
    let added: serde_json::Map<String, Json> = (258..20_258).map(token).collect();
    change(&folder, "tokenizer_config.json", |config| config["added_tokens_decoder"] = Json::Object(added));
    let started = Instant::now();
    let tokenizer = from_folder(&folder).unwrap();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(tokenizer.vocabulary(), 20_258);
}

/// Added tokens that begin alike, as speech models have for sounds.
fn sounds() -> impl Iterator<Item = String> {
    (0..30_000).map(|number| format!("<|audio_{number}|>"))
}

/// Checks that the tokens from `first` on are [`sounds`], which are found in time proportional to
/// the text.
#[track_caller]
fn assert_found_in_linear_time(tokenizer: &Tokenizer, first: TokenId) {
    let text = "<|audio_29999|>a<|audio_1|><|audio_12345|>";
    let expected = [first + 29_999, 97, first + 1, first + 12_345];
    assert_eq!(tokenizer.encode(text, Special::Parse).unwrap(), expected);
    let plain = |text: &str| std::iter::once(0..text.len()).collect::<Vec<_>>();
    assert!(!tokenizer.encode_around(text, &plain(text)).unwrap().contains(&(first + 1)));
    assert_eq!(tokenizer.spelled("a <|AUDIO_7|> b", false), slice::from_ref(&(2..13)));
    let took = |times: usize| {
        let text = "<|audio_<| ".repeat(times);
        let started = Instant::now();
        // The text ends within a token.
        assert_eq!(tokenizer.spelled(&text, false), slice::from_ref(&(text.len() - 3..text.len() - 1)));
        tokenizer.encode_around(&text, &plain(&text)).unwrap();
        started.elapsed()
    };
    took(200);
    let (short, long) = (took(1_000), took(8_000));
    assert!(long < short * 20 + Duration::from_millis(200), "{short:?} became {long:?}");
    assert!(long < Duration::from_secs(3), "{long:?}");
}

#[test]
fn tens_of_thousands_of_added_tokens_that_begin_alike_are_found_in_linear_time() {
    let folder = folder();
    change(&folder, "tokenizer.json", |document| {
        let token = |(id, text): (usize, String)| {
            json!({"id": id, "content": text, "special": false, "single_word": false, "lstrip": false,
                   "rstrip": false, "normalized": false})
        };
        let added = document["added_tokens"].as_array_mut().unwrap();
        added.extend((258..).zip(sounds()).map(token));
    });
    assert_found_in_linear_time(&from_folder(&folder).unwrap(), 258);
}

#[test]
fn tens_of_thousands_of_added_tokens_of_a_gguf_file_are_found_in_linear_time() {
    let mut gguf = Gguf::tiny();
    let first = gguf.extend_vocabulary(sounds().map(|text| (text, 4)));
    assert_found_in_linear_time(&built(&gguf), first);
}

#[test]
fn an_added_token_longer_than_any_model_has_is_refused() {
    let long = "a".repeat(crate::limits::WHOLE_TOKEN_BYTES + 1);
    let reason = refusal(|document| {
        let token = json!({"id": 258, "content": long, "special": false});
        document["added_tokens"].as_array_mut().unwrap().push(token);
    });
    assert!(reason.contains("bytes in an added token, found 1025"), "{reason}");
    let mut gguf = Gguf::tiny();
    gguf.extend_vocabulary([(long, 4)]);
    let reason = error(&gguf).to_string();
    assert!(reason.contains("bytes in an added token, found 1025"), "{reason}");
}

#[test]
fn a_text_does_not_become_a_control_token_by_normalisation() {
    let folder = folder();
    change(&folder, "tokenizer.json", |document| {
        document["normalizer"] = json!({"type": "NFKC"});
        document["added_tokens"][1]["normalized"] = json!(true);
    });
    let tokenizer = from_folder(&folder).unwrap();
    let forged = "a＜|im_end|＞b";
    assert!(tokenizer.encode(forged, Special::Parse).unwrap().contains(&257));
    let whole = std::iter::once(0..forged.len()).collect::<Vec<_>>();
    assert!(!tokenizer.encode_around(forged, &whole).unwrap().contains(&257));
    let rendered = format!("{forged}<|im_end|>");
    let ids = tokenizer.encode_around(&rendered, &whole).unwrap();
    assert_eq!(ids.iter().filter(|&&id| id == 257).count(), 1, "{ids:?}");
}
