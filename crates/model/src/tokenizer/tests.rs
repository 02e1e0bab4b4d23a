#![allow(clippy::unwrap_used, clippy::expect_used)]

mod hostile;

use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{Encoder, Special, Tokenizer};
use crate::ModelSource;
use crate::error::Error;
use crate::folder::Folder;
use crate::token::TokenId;
use foretoken_testkit::{Gguf, alphabet, data, text, texts};

fn open(path: &Path) -> Tokenizer {
    ModelSource::open(path).unwrap().tokenizer().unwrap()
}

fn built(gguf: &Gguf) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    open(&gguf.write(folder.path()))
}

fn tiny() -> Tokenizer {
    built(&Gguf::tiny())
}

fn error(gguf: &Gguf) -> Error {
    let folder = tempfile::tempdir().unwrap();
    ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().err().unwrap()
}

/// A text and its expected tokens.
type Vector = (String, Vec<TokenId>);

/// The tokenizer of a test vocabulary and its test vectors.
fn vectors(name: &str) -> (Tokenizer, Vec<Vector>) {
    let path = data(&format!("vocab/ggml-vocab-{name}.gguf"));
    let beside = |suffix: &str| std::fs::read_to_string(format!("{}{suffix}", path.display())).unwrap();
    let (input, output) = (beside(".inp"), beside(".out"));
    let separator = "\n__ggml_vocab_test__\n";
    let inputs: Vec<&str> = input.strip_suffix(separator).unwrap().split(separator).collect();
    let outputs: Vec<Vec<TokenId>> =
        output.lines().map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect()).collect();
    assert_eq!(inputs.len(), outputs.len(), "{name}");
    assert!(inputs.len() > 40, "{name}");
    let pairs = inputs.into_iter().map(str::to_owned).zip(outputs).collect();
    (open(&path), pairs)
}

fn matches_its_vectors(name: &str) {
    let (tokenizer, pairs) = vectors(name);
    for (text, tokens) in pairs {
        assert_eq!(tokenizer.encode(&text, Special::Ignore).unwrap(), tokens, "{name}: {text:?}");
        assert_eq!(tokenizer.decode(&tokens), text, "{name}");
    }
}

#[test]
fn gpt_2_encodes_its_test_vectors() {
    matches_its_vectors("gpt-2");
}

#[test]
fn llama_spm_encodes_its_test_vectors() {
    matches_its_vectors("llama-spm");
}

#[test]
fn phi_3_encodes_its_test_vectors() {
    matches_its_vectors("phi-3");
}

#[test]
fn deepseek_coder_encodes_its_test_vectors() {
    matches_its_vectors("deepseek-coder");
}

#[test]
fn starcoder_encodes_its_test_vectors() {
    matches_its_vectors("starcoder");
}

#[test]
fn encoding_around_nothing_is_encoding() {
    for name in ["gpt-2", "llama-spm", "phi-3", "deepseek-coder", "starcoder"] {
        let (tokenizer, pairs) = vectors(name);
        let special: Vec<String> = tokenizer.whole().iter().map(|mark| mark.text.clone()).take(40).collect();
        assert!(!special.is_empty(), "{name}");
        for (at, (text, _)) in pairs.iter().enumerate() {
            let special = &special[at % special.len()];
            let text = format!("{special}{text} {special}\n{text}{special}");
            let around = match &tokenizer.encoder {
                Encoder::Library(library) => library.encode_around(&text, &[]),
                Encoder::SentencePiece(pieces) => pieces.encode_around(&text, &[]),
            };
            assert_eq!(around.unwrap(), tokenizer.encode(&text, Special::Parse).unwrap(), "{name}: {text:?}");
        }
    }
}

#[test]
fn merges_join_bytes_in_order_of_rank() {
    assert_eq!(tiny().encode("hello", Special::Ignore).unwrap(), [257, 108, 111]);
}

#[test]
fn special_tokens_in_a_persons_text_are_plain_text() {
    let tokenizer = tiny();
    let ids = tokenizer.encode("</s>", Special::Ignore).unwrap();
    assert_eq!(ids, [60, 47, 115, 62]);
    assert_eq!(tokenizer.encode("</s>", Special::Parse).unwrap(), [259]);
}

#[test]
fn added_text_tokens_are_matched_whole_in_either_mode() {
    for special in [Special::Ignore, Special::Parse] {
        assert_eq!(tiny().encode("a<tag>b", special).unwrap(), [97, 260, 98]);
    }
}

#[test]
fn control_tokens_have_a_name_but_no_text() {
    let tokenizer = tiny();
    assert!(tokenizer.is_control(259) && !tokenizer.is_control(260));
    assert_eq!(tokenizer.decode_bytes(259), b"");
    assert_eq!(tokenizer.piece(259), "</s>");
    assert_eq!(tokenizer.decode(&[258, 257, 259]), "hel");
}

#[test]
fn a_byte_that_is_no_character_reads_as_its_number() {
    let tokenizer = tiny();
    assert_eq!(tokenizer.decode_bytes(0xE2), [0xE2]);
    assert_eq!(tokenizer.piece(0xE2), "<0xE2>");
    assert_eq!(tokenizer.decode(&[0xE2]), "\u{FFFD}");
}

#[test]
fn an_id_outside_of_the_vocabulary_has_no_bytes() {
    let tokenizer = tiny();
    assert_eq!(tokenizer.vocabulary(), 261);
    assert_eq!(tokenizer.decode_bytes(261), b"");
    assert_eq!(tokenizer.piece(u32::MAX), "");
}

#[test]
fn a_vocabulary_looks_up_its_own_spelling() {
    let tokenizer = tiny();
    assert_eq!(tokenizer.id_of("Ġ"), Some(32));
    assert_eq!(tokenizer.id_of("</s>"), Some(259));
    assert_eq!(tokenizer.id_of("hello"), None);
}

#[test]
fn roles_are_read_from_the_header() {
    let tokenizer = tiny();
    assert_eq!(tokenizer.bos(), Some(258));
    assert_eq!(tokenizer.ends(), [259]);
    assert!(!tokenizer.adds_bos(), "a gpt-2 vocabulary adds none unless told to");
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.ggml.add_bos_token", Value::Bool(true));
    gguf.set("tokenizer.ggml.eot_token_id", Value::U32(257));
    let tokenizer = built(&gguf);
    assert!(tokenizer.adds_bos());
    assert_eq!(tokenizer.ends(), [259, 257]);
}

#[test]
fn known_end_tokens_end_a_reply_even_when_the_header_is_silent() {
    let mut gguf = Gguf::tiny();
    let Some(Value::Array(tokens)) = gguf.values.get_mut("tokenizer.ggml.tokens") else { panic!() };
    tokens[258] = text("<|im_end|>");
    assert_eq!(built(&gguf).ends(), [259, 258]);
}

#[test]
fn a_word_that_no_merges_lead_to_is_a_token_where_the_kind_looks_it_up_first() {
    let encoded = |pre: &str| {
        let mut gguf = Gguf::tiny();
        gguf.set("tokenizer.ggml.pre", text(pre));
        gguf.set("tokenizer.ggml.merges", texts(["h e"]));
        gguf.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
        built(&gguf).encode("hel", Special::Parse).unwrap()
    };
    for pre in ["glm4", "glm5", "llama-bpe", "tekken"] {
        assert_eq!(encoded(pre), [257], "{pre}");
    }
    for pre in ["dbrx", "chatglm-bpe", "qwen2"] {
        assert_eq!(encoded(pre), [256, u32::from(b'l')], "{pre}");
    }
}

#[test]
fn an_unknown_way_to_split_words_is_refused_by_name() {
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.ggml.pre", text("klingon"));
    let message = error(&gguf).to_string();
    assert!(message.contains("'klingon'") && message.contains("llama-bpe"), "{message}");
}

#[test]
fn a_vocabulary_that_does_not_say_how_to_split_words_splits_like_gpt_2() {
    let mut gguf = Gguf::tiny();
    gguf.values.remove("tokenizer.ggml.pre");
    assert_eq!(built(&gguf).encode("hello", Special::Ignore).unwrap(), [257, 108, 111]);
}

#[test]
fn an_unknown_kind_of_vocabulary_is_refused_by_name() {
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.ggml.model", text("bert"));
    assert!(error(&gguf).to_string().contains("found bert"));
}

#[test]
fn damaged_vocabularies_are_refused() {
    let long = ["h".repeat(20), "e".repeat(20)];
    let cases: [(&str, Value, &str); 4] = [
        (
            "tokenizer.ggml.merges",
            Value::Array(vec![text(&long.join(" "))]),
            "expected a token for the merge",
        ),
        ("tokenizer.ggml.merges", Value::Array(vec![text("hx")]), "two parts"),
        ("tokenizer.ggml.merges", Value::Array(vec![text("q zz")]), "zz"),
        ("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(1)]), "261 entries"),
    ];
    for (key, value, expected) in cases {
        let mut gguf = Gguf::tiny();
        gguf.set(key, value);
        let message = error(&gguf).to_string();
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn token_ids_that_mean_none_are_ignored_with_a_warning() {
    let none = [Value::I32(-1), Value::I64(-1), Value::U32(u32::MAX), Value::U64(u64::MAX), Value::U32(261)];
    for id in none {
        let mut gguf = Gguf::tiny();
        for role in ["bos", "eos", "eot", "unknown"] {
            gguf.set(&format!("tokenizer.ggml.{role}_token_id"), id.clone());
        }
        let special = built(&gguf).special().clone();
        assert_eq!((special.bos, special.eos, special.ends), (None, None, Vec::new()), "{id:?}");
        let [bos, ..] = &special.warnings[..] else { panic!("no warnings for {id:?}") };
        assert!(bos.starts_with("tokenizer.ggml.bos_token_id is ") && bos.ends_with("which is no token"));
    }
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.ggml.bos_token_id", text("none"));
    assert!(error(&gguf).to_string().contains("a whole number"));
    assert!(tiny().special().warnings.is_empty());
}

#[test]
fn turn_markers_of_the_template_that_are_typed_as_normal_tokens_are_special_and_end_a_reply() {
    let mut gguf = Gguf::tiny();
    let markers = ["<|im_start|>", "<|im_end|>", "[TURN]", "<|other|>", "[i]"];
    let first = gguf.extend_vocabulary(markers.map(|marker| (marker.to_owned(), 1)));
    let turns =
        "{% for m in messages %}<|im_start|>{{ messages[i].role }}[TURN]{{ m }}<|im_end|>{% endfor %}";
    gguf.set("tokenizer.chat_template", text(turns));
    let tokenizer = built(&gguf);
    let written = "<|im_start|>a[TURN]<|im_end|>";
    let tokens = [first, 97, first + 2, first + 1];
    assert_eq!(tokenizer.encode(written, Special::Parse).unwrap(), tokens);
    let said = tokenizer.encode_around(written, &tokenizer.spelled(written, false)).unwrap();
    assert!(tokens.iter().all(|token| *token == 97 || !said.contains(token)), "{said:?}");
    assert!(tokenizer.ends().contains(&(first + 1)) && !tokenizer.ends().contains(&first));
    assert!(tokenizer.is_control(first + 1) && tokenizer.is_special(first + 2));
    // Tokens that the template does not have, and those of ordinary text, stay as they are.
    assert!(!tokenizer.is_special(first + 3) && !tokenizer.is_special(first + 4));
}

#[test]
fn pre_tokenizers_split_digits_as_their_families_do() {
    // The split shows only where merges could cross it: here merges join four digits.
    let cases =
        [("gpt-2", vec![257, 53]), ("llama-bpe", vec![256, 51, 52, 53]), ("qwen2", vec![49, 50, 51, 52, 53])];
    for (pre, expected) in cases {
        let mut gguf = Gguf::tiny();
        let Some(Value::Array(tokens)) = gguf.values.get_mut("tokenizer.ggml.tokens") else { panic!() };
        tokens[256] = text("12");
        tokens[257] = text("1234");
        tokens[255] = text("34");
        gguf.set("tokenizer.ggml.merges", Value::Array(["1 2", "3 4", "12 34"].map(text).to_vec()));
        gguf.set("tokenizer.ggml.pre", text(pre));
        assert_eq!(built(&gguf).encode("12345", Special::Ignore).unwrap(), expected, "{pre}");
    }
}

/// Pieces for the SentencePiece tests; the first has id 259.
const PIECES: &[(&str, f32)] = &[
    ("▁", -9.0),
    ("a", -9.0),
    ("b", -9.0),
    ("aa", -1.0),
    ("ab", -1.0),
    ("▁a", -2.0),
    ("<", -9.0),
    ("/s", -1.0),
    ("/s>", -1.0),
];

#[test]
fn equal_scores_join_the_leftmost_pair_first() {
    let tokenizer = built(&Gguf::sentence_piece(PIECES));
    // "aa" and "ab" score the same: ▁ aa b, not ▁ a ab.
    assert_eq!(tokenizer.encode("aab", Special::Ignore).unwrap(), [259, 262, 261]);
}

#[test]
fn a_better_score_wins_over_a_pair_further_left() {
    let tokenizer = built(&Gguf::sentence_piece(PIECES));
    // "▁a" comes first, but "ab" scores higher.
    assert_eq!(tokenizer.encode("ab", Special::Ignore).unwrap(), [259, 263]);
}

#[test]
fn characters_without_a_piece_fall_back_to_bytes() {
    let tokenizer = built(&Gguf::sentence_piece(PIECES));
    let tokens = tokenizer.encode("é", Special::Ignore).unwrap();
    assert_eq!(tokens, [259, 3 + 0xC3, 3 + 0xA9]);
    assert_eq!(tokenizer.decode(&tokens), "é");
}

#[test]
fn joining_pieces_never_makes_a_control_token_of_plain_text() {
    let mut gguf = Gguf::sentence_piece(PIECES);
    gguf.set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    let tokenizer = built(&gguf);
    // "<" and "/s>" would join to token 2.
    let tokens = tokenizer.encode("</s>", Special::Ignore).unwrap();
    assert!(!tokens.contains(&2), "{tokens:?}");
    assert_eq!(tokenizer.decode(&tokens), "</s>");
    assert_eq!(tokenizer.encode("</s>", Special::Parse).unwrap(), [2]);
}

#[test]
fn a_text_after_a_special_token_begins_with_a_space_again() {
    let tokenizer = built(&Gguf::sentence_piece(PIECES));
    assert_eq!(tokenizer.encode("<s>a</s>a", Special::Parse).unwrap(), [1, 264, 2, 264]);
}

#[test]
fn the_space_before_a_text_is_added_only_where_the_header_wants_it() {
    let mut gguf = Gguf::sentence_piece(PIECES);
    assert_eq!(built(&gguf).decode(&[264]), "a");
    gguf.set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    let tokenizer = built(&gguf);
    assert_eq!(tokenizer.encode("a", Special::Ignore).unwrap(), [260]);
    assert_eq!(tokenizer.decode(&[264]), " a");
}

#[test]
fn characters_are_merged_within_lines_and_others_are_bytes() {
    let scored: Vec<(&str, f32)> = ["▁", "o", "n", "c", "e", "on", "ce", "once", "▁once", "\n", "\n\n"]
        .map(|piece| (piece, 0.0))
        .to_vec();
    let mut gguf = Gguf::sentence_piece(&scored);
    gguf.set("tokenizer.ggml.model", text("gemma4"));
    let merges = ["o n", "c e", "on ce", "▁ once"].map(text).to_vec();
    gguf.set("tokenizer.ggml.merges", Value::Array(merges));
    let tokenizer = built(&gguf);
    let encoded = |said: &str| -> Vec<String> {
        let tokens = tokenizer.encode(said, Special::Ignore).unwrap();
        assert_eq!(tokenizer.decode(&tokens), said);
        tokens.into_iter().map(|token| tokenizer.piece(token)).collect()
    };
    assert!(tokenizer.adds_bos());
    assert_eq!(encoded("once once"), ["once", " once"]);
    assert_eq!(encoded(" once  once"), [" once", " ", " once"]);
    assert_eq!(encoded("once\n\nonce\n\n\nno"), ["once", "\n\n", "once", "\n\n", "\n", "n", "o"]);
    assert_eq!(encoded("é"), ["<0xC3>", "<0xA9>"]);
    gguf.set("tokenizer.ggml.merges", Value::Array(vec![text("on")]));
    assert!(error(&gguf).to_string().contains("two parts in the merge"));
}

/// A tokenizer.json like Llama 2's: pieces with a mark for a preceding space, other characters as
/// bytes. Token 1 starts a text, 2 ends it; 3 to 258 are bytes.
fn sentence_piece_folder() -> tempfile::TempDir {
    let special = ["<unk>", "<s>", "</s>"].map(str::to_owned);
    let bytes = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
    let pieces = ["▁", "o", "n", "c", "e", "f", "x", "▁o", "nc", "nce", "▁once", "▁f", "ox", "▁fox"];
    let all = special.iter().cloned().chain(bytes).chain(pieces.map(str::to_owned));
    let vocabulary: serde_json::Map<String, Json> =
        all.zip(0..).map(|(text, id)| (text, json!(id))).collect();
    let added = |(id, content): (usize, &String)| {
        json!({"id": id, "content": content, "special": true, "single_word": false, "lstrip": false,
               "rstrip": false, "normalized": false})
    };
    let begin = json!({"SpecialToken": {"id": "<s>", "type_id": 0}});
    let document = json!({
        "version": "1.0",
        "added_tokens": special.iter().enumerate().map(added).collect::<Vec<_>>(),
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "post_processor": {
            "type": "TemplateProcessing", "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
            "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {
            "type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocabulary,
            "merges": ["▁ o", "n c", "nc e", "▁o nce", "▁ f", "o x", "▁f ox"],
        },
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), document.to_string()).unwrap();
    let config = json!({"bos_token": "<s>", "eos_token": "</s>"}).to_string();
    std::fs::write(folder.path().join("tokenizer_config.json"), config).unwrap();
    std::fs::write(folder.path().join("config.json"), json!({"eos_token_id": 2}).to_string()).unwrap();
    folder
}

#[test]
fn a_hugging_face_tokenizer_of_pieces_encodes_and_decodes() {
    let folder = sentence_piece_folder();
    let tokenizer = from_folder(&folder).unwrap();
    assert_eq!(tokenizer.vocabulary(), 273);
    assert_eq!((tokenizer.bos(), tokenizer.ends()), (Some(1), [2].as_slice()));
    assert!(tokenizer.adds_bos());
    let [once, fox] = ["▁once", "▁fox"].map(|piece| tokenizer.id_of(piece).unwrap());
    assert_eq!(tokenizer.encode("once fox", Special::Ignore).unwrap(), [once, fox]);
    assert_eq!(tokenizer.decode(&[once, fox]), "once fox");
    let bytes = tokenizer.encode("é", Special::Ignore).unwrap();
    assert_eq!(bytes[1..], [3 + 0xC3, 3 + 0xA9], "what has no piece is bytes");
    assert_eq!(tokenizer.decode(&bytes), "é");
    assert_eq!(tokenizer.encode("</s>", Special::Parse).unwrap(), [2]);
    assert!(!tokenizer.encode("</s>", Special::Ignore).unwrap().contains(&2));
}

/// A folder whose tokenizer.json spells bytes as GPT-2 does; 256 and 257 are special tokens.
fn folder() -> tempfile::TempDir {
    let vocabulary: serde_json::Map<String, Json> =
        alphabet().into_iter().zip(0..).map(|(text, id)| (text, json!(id))).collect();
    let added = |id, content| {
        json!({"id": id, "content": content, "special": true, "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": false})
    };
    let bos = json!({"SpecialToken": {"id": "<s>", "type_id": 0}});
    let text = json!({"Sequence": {"id": "A", "type_id": 0}});
    let byte_level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let template = json!({"type": "TemplateProcessing", "single": [bos, text], "pair": [text, text],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [added(256, "<s>"), added(257, "<|im_end|>")],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "post_processor": {"type": "Sequence", "processors": [byte_level, template]},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    });
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, json: Json| {
        std::fs::write(folder.path().join(name), json.to_string()).unwrap();
    };
    write("tokenizer.json", tokenizer);
    write("tokenizer_config.json", json!({"bos_token": {"content": "<s>"}, "eos_token": null}));
    write("generation_config.json", json!({"eos_token_id": [65, 256]}));
    write("config.json", json!({}));
    folder
}

fn from_folder(folder: &tempfile::TempDir) -> Result<Tokenizer, Error> {
    super::from_folder(&Folder::open(folder.path())?)
}

#[test]
fn a_folder_tells_the_roles_of_its_tokens() {
    let folder = folder();
    let tokenizer = from_folder(&folder).unwrap();
    assert_eq!(tokenizer.bos(), Some(256));
    assert!(tokenizer.adds_bos(), "its post-processor puts <s> before a text");
    assert_eq!(tokenizer.ends(), [65, 256, 257], "generation_config, then a known name");
    std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"add_bos_token": false}"#).unwrap();
    assert!(!from_folder(&folder).unwrap().adds_bos());
}

#[test]
fn a_folders_special_tokens_are_text_unless_parsed() {
    let tokenizer = from_folder(&folder()).unwrap();
    let text = "é<|im_end|>";
    let plain = tokenizer.encode(text, Special::Ignore).unwrap();
    assert!(!plain.contains(&257));
    assert_eq!(tokenizer.decode(&plain), text);
    let parsed = tokenizer.encode(text, Special::Parse).unwrap();
    assert_eq!(parsed, [0xC3, 0xA9, 257], "and no <s> is added");
    assert_eq!(tokenizer.decode(&parsed), "é");
}

#[test]
fn a_decoder_that_loses_bytes_is_refused() {
    let folder = folder();
    let path = folder.path().join("tokenizer.json");
    let mut document: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    document["decoder"] = json!({"type": "WordPiece", "prefix": "##", "cleanup": true});
    std::fs::write(&path, document.to_string()).unwrap();
    assert!(from_folder(&folder).err().unwrap().to_string().contains("expected a byte-level"));
    std::fs::write(&path, "{\"added_tokens\": 3}").unwrap();
    assert!(from_folder(&folder).err().unwrap().to_string().contains("a tokenizer document"));
}

fn any_text() -> impl Strategy<Value = String> {
    // SentencePiece's own mark for a space is the one character that does not survive.
    prop::collection::vec(
        prop_oneof![
            any::<char>().prop_map(String::from),
            "[ \\t\\n0-9A-Za-z.,']{1,8}",
            Just("</s>".to_owned()),
            Just("<tag>".to_owned()),
            Just("<0x0A>".to_owned()),
        ],
        0..24,
    )
    .prop_map(|parts| parts.concat().replace('▁', "_"))
}

#[test]
fn a_merge_longer_than_every_token_is_refused() {
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.ggml.merges", Value::Array(vec![text("h e"), text("<tag> <tag>")]));
    assert!(error(&gguf).to_string().contains("a token for the merge '<tag> <tag>'"));
}

#[test]
fn an_empty_list_is_one_of_texts_too() {
    let mut gguf = Gguf::tiny();
    // An empty list whose declared element type is a number.
    gguf.set("tokenizer.ggml.merges", Value::Array(Vec::new()));
    assert_eq!(built(&gguf).encode("he", Special::Ignore).unwrap(), [104, 101]);
}

#[test]
fn scores_that_are_too_few_or_missing_are_refused() {
    let mut gguf = Gguf::sentence_piece(PIECES);
    gguf.set("tokenizer.ggml.scores", Value::Array(vec![Value::F32(0.0); 3]));
    let message = error(&gguf).to_string();
    assert!(
        message.contains("268 entries in tokenizer.ggml.scores") && message.contains("found 3"),
        "{message}"
    );
    gguf.values.remove("tokenizer.ggml.scores");
    assert!(error(&gguf).to_string().contains("the list tokenizer.ggml.scores, found none"));
}

#[test]
fn what_ends_a_turn_is_no_text_even_where_the_header_says_so() {
    let mut gguf = Gguf::tiny();
    let Some(Value::Array(tokens)) = gguf.values.get_mut("tokenizer.ggml.tokens") else { panic!() };
    tokens[260] = text("<end_of_turn>");
    let tokenizer = built(&gguf);
    assert!(tokenizer.is_control(260));
    assert_eq!(tokenizer.ends(), [259, 260]);
    assert!(!tokenizer.encode("<end_of_turn>", Special::Ignore).unwrap().contains(&260));
    assert_eq!(tokenizer.encode("<end_of_turn>", Special::Parse).unwrap(), [260]);
}

/// A vocabulary like Gemma's: no space before a text, and tokens for runs of spaces and line
/// breaks, in either spelling.
fn gemma() -> Gguf {
    let mut gguf = Gguf::sentence_piece(&[
        ("▁", -9.0),
        ("▁▁", -1000.0),
        ("▁▁▁", -1000.0),
        ("    ", -1000.0),
        ("\n\n", -1000.0),
        ("a", -9.0),
        ("▁a", -1.0),
    ]);
    let Some(Value::Array(types)) = gguf.values.get_mut("tokenizer.ggml.token_type") else { panic!() };
    for kind in &mut types[260..264] {
        *kind = Value::I32(4);
    }
    gguf.set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    gguf
}

#[test]
fn runs_of_white_space_become_the_tokens_made_for_them() {
    let tokenizer = built(&gemma());
    for (text, tokens) in [
        ("a", vec![264]),
        (" a", vec![265]),
        ("  a", vec![260, 264]),
        ("   a", vec![261, 264]),
        ("    a a", vec![262, 264, 265]),
        ("     a", vec![262, 265]),
        ("a\n\n a", vec![264, 263, 265]),
    ] {
        assert_eq!(tokenizer.encode(text, Special::Ignore).unwrap(), tokens, "{text:?}");
        assert_eq!(tokenizer.decode(&tokens), text);
    }
}

#[test]
fn phi_3s_special_tokens_take_the_space_behind_them_along() {
    let tokenizer = open(&data("vocab/ggml-vocab-phi-3.gguf"));
    let text = "<|user|>\nHello<|end|>\n<|assistant|>\n";
    assert_eq!(tokenizer.encode(text, Special::Parse).unwrap(), [32010, 15043, 32007, 32001]);
    // White space after <s> is kept.
    let begun = tokenizer.encode("<s> Hello", Special::Parse).unwrap();
    assert_eq!((begun[0], begun.len() > 2), (1, true), "{begun:?}");
}

/// Changes a document of a folder.
fn change(folder: &tempfile::TempDir, name: &str, change: impl FnOnce(&mut Json)) {
    let path = folder.path().join(name);
    let mut document: Json = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(path, document.to_string()).unwrap();
}

#[test]
fn tokens_that_only_the_config_lists_are_added() {
    let folder = folder();
    let added = json!({"258": {"content": "<think>", "special": false}, "259": {"content": "<pad>", "special": true}});
    change(&folder, "tokenizer_config.json", |config| config["added_tokens_decoder"] = added);
    let tokenizer = from_folder(&folder).unwrap();
    assert_eq!(tokenizer.vocabulary(), 260);
    assert_eq!(tokenizer.encode("a<think>", Special::Ignore).unwrap(), [97, 258]);
    assert_eq!(tokenizer.decode(&[97, 258, 259]), "a<think>");
    assert_eq!(tokenizer.encode("<pad>", Special::Parse).unwrap(), [259]);
    for wrong in [json!({"300": {"content": "<far>"}}), json!({"x": {"content": "<x>"}}), json!({"258": 5})] {
        change(&folder, "tokenizer_config.json", |config| config["added_tokens_decoder"] = wrong);
        assert!(from_folder(&folder).err().unwrap().to_string().contains("expected"));
    }
}

#[test]
fn a_map_of_special_tokens_names_what_the_config_does_not() {
    let folder = folder();
    std::fs::write(folder.path().join("tokenizer_config.json"), "{}").unwrap();
    assert_eq!(from_folder(&folder).unwrap().bos(), None);
    let map = json!({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>"}});
    std::fs::write(folder.path().join("special_tokens_map.json"), map.to_string()).unwrap();
    let tokenizer = from_folder(&folder).unwrap();
    assert_eq!((tokenizer.bos(), tokenizer.ends()[0]), (Some(256), 257));
}

#[test]
fn a_document_that_makes_the_library_panic_is_refused() {
    let folder = folder();
    change(&folder, "tokenizer.json", |document| {
        document["model"]["vocab"]["ab"] = json!(258);
        document["model"]["merges"] = json!([["ab", "ab"]]);
    });
    let message = from_folder(&folder).err().unwrap().to_string();
    assert!(message.contains("tokenizer.json cannot be used"), "{message}");
    change(&folder, "tokenizer.json", |document| {
        document["model"]["merges"] = json!([]);
        document["model"]["vocab"].as_object_mut().unwrap().remove("ab");
        document["model"]["vocab"]["a"] = json!(4_000_000_000u32);
    });
    assert!(from_folder(&folder).err().unwrap().to_string().contains("found number 4000000000"));
}

proptest! {
    #[test]
    fn any_text_survives_byte_level_encoding(text in any_text()) {
        thread_local!(static TOKENIZER: Tokenizer = tiny());
        TOKENIZER.with(|tokenizer| {
            let tokens = tokenizer.encode(&text, Special::Ignore).unwrap();
            prop_assert!(tokens.iter().all(|&token| !tokenizer.is_control(token)));
            prop_assert_eq!(tokenizer.decode(&tokens), text);
            Ok(())
        })?;
    }

    #[test]
    fn any_text_survives_sentence_piece_encoding(text in any_text()) {
        thread_local!(static TOKENIZER: Tokenizer = built(&Gguf::sentence_piece(PIECES)));
        TOKENIZER.with(|tokenizer| {
            let tokens = tokenizer.encode(&text, Special::Ignore).unwrap();
            prop_assert!(tokens.iter().all(|&token| !tokenizer.is_control(token)));
            prop_assert_eq!(tokenizer.decode(&tokens), text);
            Ok(())
        })?;
    }
}
