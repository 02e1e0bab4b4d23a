//! `generate --picture`, and pictures of requests to `serve`: a reply depends on the picture, with
//! drafts as without; files that are no pictures and models that do not see are named in a
//! sentence.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candle_core::quantized::GgmlDType;
use foretoken_tests::client::post;
use foretoken_tests::served::Served;
use foretoken_tests::{RandomVision, made_up_picture};
use serde_json::{Value, json};

use crate::program::{Run, json as json_lines, program, run};

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{% if message.content is string %}\
    {{ message.content }}{% else %}{% for part in message.content %}{% if part['type'] == 'text' %}\
    {{ part.text }}{% else %}<image>{% endif %}{% endfor %}{% endif %}<|im_end|>{% endfor %}";

/// A picture as a BMP file.
fn write_bmp(path: &Path, name: &str) -> PathBuf {
    let picture = made_up_picture(name, 40, 40);
    let mut bytes = b"BM".to_vec();
    for number in [54 + 40 * 40 * 3, 0, 54, 40, 40, -40i32 as u32, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(picture.pixels().chunks(3).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]));
    let file = path.join(format!("{name}.bmp"));
    std::fs::write(&file, bytes).unwrap();
    file
}

fn model(folder: &Path) -> PathBuf {
    let mut vision = RandomVision::smolvlm();
    vision.text = vision.text.with_template(TEMPLATE);
    vision.write_gguf(folder, GgmlDType::F32).0
}

#[test]
fn a_reply_depends_on_its_picture_and_not_on_drafts() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [fox, hen] = ["fox", "hen"].map(|name| write_bmp(folder.path(), name));
    let text = |picture: &Path, more: &[&str]| {
        let ask = [
            "generate",
            "--target",
            model.to_str().unwrap(),
            "--prompt",
            "the cat and the dog and the cat and",
            "--max-tokens",
            "24",
            "--ignore-eos",
            "--temperature",
            "0",
            "--picture",
            picture.to_str().unwrap(),
        ];
        json_lines(&[&ask[..], more].concat()).pop().unwrap()["text"].clone()
    };
    let plain = text(&fox, &[]);
    assert_eq!(text(&fox, &["--draft", "ngram", "--draft-length", "4"]), plain);
    assert_ne!(text(&hen, &[]), plain);
    assert_ne!(text(&fox, &["--detail", "high"]), plain);
}

/// A data URL of a file.
fn data_url(file: &Path) -> String {
    format!("data:image/bmp;base64,{}", STANDARD.encode(std::fs::read(file).unwrap()))
}

#[test]
fn clients_show_pictures_in_every_protocol_and_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [fox, hen] = ["fox", "hen"].map(|name| write_bmp(folder.path(), name));
    let served = Served::start(program(&["serve", "--port", "0", "--target", model.to_str().unwrap()]));
    let ask = |path: &str, body: Value| {
        let answer = post(&served.at, &format!("/v1/{path}"), &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    };
    let words = "the cat and the dog and the cat and";
    let chat = |url: &str| {
        let parts =
            json!([{ "type": "image_url", "image_url": { "url": url } }, { "type": "text", "text": words }]);
        json!({ "messages": [{ "role": "user", "content": parts }], "max_tokens": 24, "temperature": 0, "ignore_eos": true })
    };
    let [seen, other] = [&fox, &hen].map(|file| ask("chat/completions", chat(&data_url(file))));
    let generated =
        ["generate", "--target", model.to_str().unwrap(), "--prompt", words, "--max-tokens", "24"];
    let more = ["--ignore-eos", "--temperature", "0", "--picture", fox.to_str().unwrap()];
    let generated = json_lines(&[&generated[..], &more].concat()).pop().unwrap();
    assert_eq!(seen["choices"][0]["message"]["content"], generated["text"]);
    assert_ne!(seen["choices"], other["choices"]);
    let tokens = &seen["usage"]["prompt_tokens"];

    let url = data_url(&fox);
    let parts = json!([{ "type": "input_image", "image_url": url }, { "type": "input_text", "text": words }]);
    let response =
        ask("responses", json!({ "input": [{ "role": "user", "content": parts }], "max_output_tokens": 1 }));
    assert_eq!(&response["usage"]["input_tokens"], tokens);
    let source =
        json!({ "type": "base64", "media_type": "image/bmp", "data": url.split_once(',').unwrap().1 });
    let blocks = json!([{ "type": "image", "source": source }, { "type": "text", "text": words }]);
    let message = json!({ "messages": [{ "role": "user", "content": blocks }], "max_tokens": 1 });
    let usage = &ask("messages", message.clone())["usage"];
    let read = ["input_tokens", "cache_read_input_tokens"].map(|part| usage[part].as_u64().unwrap());
    assert_eq!(Some(read.iter().sum()), tokens.as_u64(), "{usage}");
    assert_eq!(&ask("messages/count_tokens", message)["input_tokens"], tokens);

    let refused = |served: &Served, body: Value| {
        let answer = post(&served.at, "/v1/chat/completions", &body.to_string());
        (answer.status, answer.json()["error"]["message"].as_str().unwrap().to_owned())
    };
    let (status, message) = refused(&served, chat("data:image/png;base64,Zm94"));
    assert_eq!((status, message.contains("PNG, JPEG, WebP, GIF or BMP")), (400, true), "{message}");
    let blind = Served::start(program(&["serve", "--port", "0", "--target", "starter", "--draft", "none"]));
    let (status, message) = refused(&blind, chat(&url));
    assert_eq!((status, message.contains("cannot see pictures")), (400, true), "{message}");
}

#[test]
fn files_that_are_no_pictures_and_models_that_do_not_see_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "a fox").unwrap();
    let bomb = folder.path().join("bomb.png");
    // A header of 60,000 x 60,000 pixels.
    let header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0\x9e\xf9\x1f\x1a";
    std::fs::write(&bomb, header).unwrap();
    let fox = write_bmp(folder.path(), "fox");
    let model = model.to_str().unwrap();
    for (target, picture, expected) in [
        (model, &notes, "PNG, JPEG, WebP, GIF or BMP"),
        (model, &bomb, "the picture cannot be used"),
        (model, &folder.path().join("gone.png"), "gone.png"),
        ("starter", &fox, "cannot see pictures"),
    ] {
        let ask =
            ["generate", "--target", target, "--prompt", "what?", "--picture", picture.to_str().unwrap()];
        let Run { code, err, .. } = run(&ask);
        assert!(code != 0 && err.contains(expected), "{target} {}: {err}", picture.display());
    }
}
