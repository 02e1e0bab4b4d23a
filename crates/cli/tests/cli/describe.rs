//! Commands that do not run a model: `inspect`, `tokenize`, `detokenize`, `render`, `compat`,
//! `models list`.

use candle_core::quantized::gguf_file::Value as Metadata;
use foretoken_tests::{data, write_starter_folder};
use serde_json::{Value, json as value};

use crate::broken_models::{Folder, starter_draft};
use crate::program::{json, run};

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
    assert_eq!(
        (&model["name"], &model["quantisation"]),
        (&value!("Foretoken starter 8.1M target"), &value!("Q8_0"))
    );
    assert_eq!(model["parameters"], 8_131_328);
    assert_eq!(model["sizes"]["context"], 1024);
    assert_eq!(model["sizes"]["kv_heads"], 2);
    // Keys and values of two heads in 16 bits.
    let size = |name: &str| model["sizes"][name].as_u64().unwrap();
    assert_eq!(size("kv_bytes"), 2 * 2 * 2 * size("layers") * size("head_size"));
    assert_eq!(model["sizes"]["rope_scaling"], Value::Null);
    assert_eq!(model["tokenizer"]["vocabulary"], 4096);
    assert_eq!(model["tokenizer"]["special"]["eos"]["text"], "<|im_end|>");
    assert!(model["template"].as_str().unwrap().contains("<|im_start|>"));
    assert!(model["path"].as_str().unwrap().ends_with("starter-target-Q8_0.gguf"));
    let table = run(&["inspect", "starter"]).out;
    for part in ["8.13 M", "1024 tokens, ", " kB of keys and values each", "2 <|im_end|>", "4096 tokens"] {
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
fn every_vocabulary_tokenizes_its_test_vectors_and_gets_the_text_back() {
    for name in ["deepseek-coder", "gpt-2", "llama-spm", "phi-3", "starcoder"] {
        let path = data(&format!("vocab/ggml-vocab-{name}.gguf"));
        let path = path.to_str().unwrap();
        let beside = |suffix: &str| std::fs::read_to_string(format!("{path}{suffix}")).unwrap();
        let texts = beside(".inp");
        let folder = Folder::new();
        // Starting the program for all lines would take too long.
        for (text, expected) in texts.split("\n__ggml_vocab_test__\n").zip(beside(".out").lines()).step_by(6)
        {
            let tokens = one(&["tokenize", "--model", path, "--file", &folder.file("text", text)]);
            let ids: Vec<_> = tokens["ids"].as_array().unwrap().iter().map(Value::to_string).collect();
            assert_eq!(ids.join(" "), expected.trim(), "{name}: {text:?}");
            if !ids.is_empty() {
                let back = one(&["detokenize", "--model", path, "--ids", &ids.join(",")]);
                assert_eq!(back["text"], text, "{name}");
            }
        }
        let model = one(&["inspect", path]);
        assert_eq!((&model["architecture"], &model["sizes"]), (&Value::Null, &Value::Null));
        assert!(model["tokenizer"]["vocabulary"].as_u64().unwrap() > 30_000, "{name}");
    }
}

#[test]
fn every_template_renders_and_inspect_shows_thinking_tags() {
    let folder = Folder::new();
    let messages = folder.file("messages.json", r#"[{"role": "user", "content": "Hello"}]"#);
    for entry in std::fs::read_dir(data("templates")).unwrap() {
        let path = entry.unwrap().path();
        let rendered = one(&["render", "--messages", &messages, "--template", path.to_str().unwrap()]);
        assert!(rendered["text"].as_str().unwrap().contains("Hello"), "{}", path.display());
    }
    let thinking = folder.model("thinking.gguf", |values| {
        let template = "{{ messages[0].content.split('</think>')[-1] }}";
        values.insert("tokenizer.chat_template".into(), Metadata::String(template.into()));
    });
    assert_eq!(one(&["inspect", &thinking])["thinking"]["open"], "<think>");
    assert!(run(&["inspect", &thinking]).out.contains("<think> and </think>"));
    assert_eq!(one(&["inspect", "starter"])["thinking"], Value::Null);
}

#[test]
fn a_safetensors_folder_and_its_gguf_file_write_the_same_text() {
    let folder = tempfile::tempdir().unwrap();
    write_starter_folder("starter-target", folder.path());
    let path = folder.path().to_str().unwrap();
    let model = one(&["inspect", path]);
    assert_eq!((&model["format"], &model["parameters"]), (&"safetensors".into(), &8_131_328.into()));
    let generated = |target| {
        let run =
            run(&["generate", "--target", target, "--prompt", "Tell me a story.", "--max-tokens", "24"]);
        assert_eq!(run.code, 0, "{}", run.err);
        run.out
    };
    assert_eq!(generated(path), generated("starter"));
}

#[test]
fn special_tokens_in_a_text_are_plain_text_unless_special_is_given() {
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
fn a_file_with_only_a_tokenizer_can_tokenize() {
    let path = data("vocab/ggml-vocab-llama-spm.gguf");
    let ask = ["tokenize", "--model", path.to_str().unwrap(), "--text", "Hello world"];
    assert_eq!(one(&ask)["ids"], serde_json::json!([15043, 3186]));
    assert_eq!(one(&[&ask[..], &["--special"]].concat())["ids"], serde_json::json!([1, 15043, 3186]));
    assert_eq!(one(&["inspect", path.to_str().unwrap()])["architecture"], Value::Null);
}

#[test]
fn a_conversation_is_rendered_with_the_models_template() {
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
    // Templates add these names to texts; without a model they are empty, or as the options say.
    let added = folder.file("added.jinja", "{{ bos_token + messages[1].content + eos_token }}");
    let ask = ["render", "--messages", &messages, "--template", &added];
    assert_eq!(one(&ask)["text"], "Hello");
    assert_eq!(one(&[&ask[..], &["--bos", "<s>", "--eos", "</s>"]].concat())["text"], "<s>Hello</s>");
}

#[test]
fn a_template_receives_the_thinking_switch() {
    let folder = Folder::new();
    let messages = folder.file("messages.json", r#"[{"role": "user", "content": "Hello"}]"#);
    let template = data("templates/Qwen-Qwen3-0.6B.jinja");
    let ask = ["render", "--messages", &messages, "--template", template.to_str().unwrap()];
    let switched = |thinking: &str| one(&[&ask[..], &["--thinking", thinking]].concat())["text"].clone();
    let unswitched = one(&ask)["text"].clone();
    assert_eq!(switched("on"), unswitched);
    assert_eq!(switched("off"), format!("{}<think>\n\n</think>\n\n", unswitched.as_str().unwrap()));
    assert_eq!(run(&[&ask[..], &["--thinking", "loudly"]].concat()).code, 2);
}

#[test]
fn invalid_messages_are_rejected() {
    let folder = Folder::new();
    for content in ["{}", "[{\"role\": \"tool\", \"content\": \"\"}]", "[", "[{\"role\": \"user\"}]"] {
        let messages = folder.file("messages.json", content);
        let run = run(&["render", "--model", "starter", "--messages", &messages, "--json"]);
        assert_eq!((run.code, run.out.as_str()), (1, ""));
        assert!(run.err.contains("messages.json: expected a JSON list of messages"), "{}", run.err);
    }
}

#[test]
fn compat_explains_its_verdict() {
    let yes = one(&["compat", "--target", "starter", "--draft", "starter-draft"]);
    assert_eq!((&yes["compatible"], &yes["method"]), (&true.into(), &"same".into()));
    let folder = Folder::new();
    let other = folder.with_another_vocabulary();
    let no = one(&["compat", "--target", "starter", "--draft", &other]);
    assert_eq!((&no["compatible"], &no["method"]), (&false.into(), &Value::Null));
    let detail = no["detail"].as_str().unwrap();
    assert!(detail.contains("differ at token 0") && detail.contains("'<|begin|>' in the draft"), "{detail}");
    assert!(detail.contains("0 %") && detail.contains("needs 50 %"), "{detail}");
    let renamed = folder.with_a_renamed_token();
    let most = one(&["compat", "--target", "starter", "--draft", &renamed]);
    assert_eq!((&most["compatible"], &most["method"]), (&true.into(), &"intersection".into()));
    let detail = most["detail"].as_str().unwrap();
    assert!(detail.contains("differ at token 0") && detail.contains("100 %"), "{detail}");
    let release = serde_json::json!({"kind": "special_tokens", "first": 0, "count": 1});
    assert_eq!((&most["difference"], &yes["difference"]), (&release, &Value::Null));
    let newer = folder.with_a_new_special_token();
    let newer = one(&["compat", "--target", "starter", "--draft", &newer]);
    assert_eq!((&newer["compatible"], &newer["method"]), (&true.into(), &"same".into()));
    assert_eq!(newer["difference"]["first"], 4096);
    let detail = newer["detail"].as_str().unwrap();
    assert!(detail.contains("newer than the target's tokenizer") && detail.contains("'<tool>'"), "{detail}");
}

#[test]
fn the_models_on_this_computer_are_listed() {
    let names: Vec<_> = json(&["models", "list"]).iter().map(|model| model["name"].clone()).collect();
    assert_eq!(names, ["starter", "starter-draft"]);
    let draft = json(&["models", "list"]).pop().unwrap();
    assert_eq!(
        (&draft["kind"], &draft["label"]),
        (&value!("bundled"), &value!("Foretoken starter 1.1M draft · Q8_0"))
    );
    assert_eq!(draft["bytes"], std::fs::metadata(starter_draft()).unwrap().len());
}
