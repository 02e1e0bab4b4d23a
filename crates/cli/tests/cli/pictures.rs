//! `generate --picture`: a reply depends on the picture, with drafts as without; files that are no
//! pictures and models that do not see are named in a sentence.

use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use foretoken_tests::{RandomVision, made_up_picture};

use crate::program::{Run, json, run};

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
        json(&[&ask[..], more].concat()).pop().unwrap()["text"].clone()
    };
    let plain = text(&fox, &[]);
    assert_eq!(text(&fox, &["--draft", "ngram", "--draft-length", "4"]), plain);
    assert_ne!(text(&hen, &[]), plain);
    assert_ne!(text(&fox, &["--detail", "high"]), plain);
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
