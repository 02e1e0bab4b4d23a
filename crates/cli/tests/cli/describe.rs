//! What needs no running model: `inspect`, `tokenize`, `detokenize`, `render`, `compat`, `models list`.

use foretoken_tests::shared_data;
use serde_json::Value;

use crate::program::{json, run};
use crate::wrong_models::{Folder, starter_draft};

#[track_caller]
fn one(arguments: &[&str]) -> Value {
    let mut lines = json(arguments);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

#[test]
fn inspect_describes_the_starter() {
    let model = one(&["inspect", "starter"]);
    assert_eq!(model["architecture"], "llama");
    assert_eq!(model["format"], "GGUF");
    assert_eq!(model["quantisation"], "Q8_0");
    assert_eq!(model["parameters"], 8_131_328);
    assert_eq!(model["sizes"]["context"], 1024);
    assert_eq!(model["sizes"]["kv_heads"], 2);
    assert_eq!(model["tokenizer"]["vocabulary"], 4096);
    assert_eq!(model["tokenizer"]["special"]["eos"]["text"], "<|im_end|>");
    assert!(model["template"].as_str().unwrap().contains("<|im_start|>"));
    assert!(model["path"].as_str().unwrap().ends_with("starter-target-Q8_0.gguf"));
    let table = run(&["inspect", "starter"]).out;
    for part in ["8.13 M", "1024 tokens", "2 <|im_end|>", "4096 tokens"] {
        assert!(table.contains(part), "{part} is not in {table}");
    }
}

#[test]
fn text_becomes_tokens_and_text_again() {
    let text = "The fox said: \"Guten Tag, 🦊!\"\n";
    let tokens = one(&["tokenize", "--model", "starter", "--text", text]);
    let ids: Vec<_> = tokens["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(tokens["pieces"].as_array().unwrap().len(), ids.len());
    assert_eq!(one(&["detokenize", "--model", "starter", "--ids", &ids.join(",")])["text"], text);
    let folder = Folder::new();
    assert_eq!(one(&["tokenize", "--model", "starter", "--file", &folder.file("text", text)]), tokens);
}

#[test]
fn special_tokens_in_a_text_are_text_unless_they_are_asked_for() {
    let ask = ["tokenize", "--model", "starter", "--text", "<|im_end|>"];
    let special = one(&[&ask[..], &["--special"]].concat());
    assert_eq!(special["ids"], serde_json::json!([2]));
    let plain = one(&ask);
    assert!(plain["ids"].as_array().unwrap().len() > 1, "{plain}");
    assert_eq!(
        plain["pieces"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect::<String>(),
        "<|im_end|>"
    );
}

#[test]
fn a_file_with_a_tokenizer_alone_will_do() {
    let Some(path) = shared_data("vocab/ggml-vocab-llama-spm.gguf") else { return };
    let ask = ["tokenize", "--model", path.to_str().unwrap(), "--text", "Hello world"];
    assert_eq!(one(&ask)["ids"], serde_json::json!([15043, 3186]));
    assert_eq!(one(&[&ask[..], &["--special"]].concat())["ids"], serde_json::json!([1, 15043, 3186]));
    assert_eq!(one(&["inspect", path.to_str().unwrap()])["architecture"], Value::Null);
}

#[test]
fn a_conversation_is_put_into_the_models_form() {
    let folder = Folder::new();
    let messages = r#"[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]"#;
    let messages = folder.file("messages.json", messages);
    let ask = ["render", "--messages", &messages, "--model", "starter"];
    let expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n";
    let opened = format!("{expected}<|im_start|>assistant\n");
    assert_eq!(one(&ask)["text"], opened);
    assert_eq!(run(&ask).out, opened);
    assert_eq!(one(&[&ask[..], &["--no-generation-prompt"]].concat())["text"], expected);
    let template = "{{ bos_token }}{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}";
    let template = folder.file("template.jinja", template);
    let ask = ["render", "--messages", &messages, "--template", &template];
    assert_eq!(one(&ask)["text"], "system=Be brief.;user=Hello;");
    let with_model = one(&[&ask[..], &["--model", "starter"]].concat());
    assert_eq!(with_model["text"], "<|endoftext|>system=Be brief.;user=Hello;");
}

#[test]
fn messages_that_are_none_are_refused() {
    let folder = Folder::new();
    for content in ["{}", "[{\"role\": \"tool\", \"content\": \"\"}]", "[", "[{\"role\": \"user\"}]"] {
        let messages = folder.file("messages.json", content);
        let run = run(&["render", "--model", "starter", "--messages", &messages, "--json"]);
        assert_eq!((run.code, run.out.as_str()), (1, ""));
        assert!(run.err.contains("messages.json: expected a JSON list of messages"), "{}", run.err);
    }
}

#[test]
fn compat_says_why_a_draft_fits_or_not() {
    let yes = one(&["compat", "--target", "starter", "--draft", "starter-draft"]);
    assert_eq!((&yes["compatible"], &yes["method"]), (&true.into(), &"same".into()));
    let folder = Folder::new();
    let other = folder.with_another_vocabulary();
    let no = one(&["compat", "--target", "starter", "--draft", &other]);
    assert_eq!((&no["compatible"], &no["method"]), (&false.into(), &Value::Null));
    let reason = no["reason"].as_str().unwrap();
    assert!(reason.contains("differ at token 0") && reason.contains("'<|begin|>' in the draft"), "{reason}");
    assert!(reason.contains("0 %") && reason.contains("needs 50 %"), "{reason}");
    let renamed = folder.with_a_renamed_token();
    let most = one(&["compat", "--target", "starter", "--draft", &renamed]);
    assert_eq!((&most["compatible"], &most["method"]), (&true.into(), &"intersection".into()));
    let reason = most["reason"].as_str().unwrap();
    assert!(reason.contains("differ at token 0") && reason.contains("100 %"), "{reason}");
}

#[test]
fn the_models_on_this_computer_are_listed() {
    let names: Vec<_> = json(&["models", "list"]).iter().map(|model| model["name"].clone()).collect();
    assert_eq!(names, ["starter", "starter-draft"]);
    let draft = json(&["models", "list"]).pop().unwrap();
    assert_eq!(draft["kind"], "starter");
    assert_eq!(draft["bytes"], std::fs::metadata(starter_draft()).unwrap().len());
}
