//! Pictures in prompts: pixels, embeddings and logits equal those of transformers, from both file
//! formats. Drafts after a picture change no text, and caches tell pictures apart.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{
    Drafter, Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter, Vocabulary, head_drafter,
};
use foretoken_engine::session::{Form, Host, PromptEncoder, Session, ThisComputer};
use foretoken_engine::speculation::Speculation;
use foretoken_engine::vision::{PictureIds, PicturePart, VisionModel};
use foretoken_forward::device::DeviceChoice;
use foretoken_forward::{Media, Model, TensorModel};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::{TokenId, is_media};
use foretoken_model::{
    ChatMessage, Conversation, Detail, Error, ModelConfig, ModelSource, Picture, PlacedPicture, Renderer,
    Role, Tokenizer, VisionSource,
};
use foretoken_senses::resample::{Filter, resized};
use foretoken_senses::vision::Tower;
use foretoken_tests::{
    Flags, RandomAssistant, RandomHead, RandomVision, assert_same, loaded, logits_in_chunks, made_up_picture,
    repository,
};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::families::IN_HALVES;
use super::invariance::difference;

const SIZES: [(&str, usize, usize); 2] = [("wide", 75, 50), ("square", 40, 40)];

/// Template of a model that sees.
const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}:\
    {% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
    {% if part['type'] == 'text' %}{{ part.text }}{% else %}PLACEHOLDER{% endif %}{% endfor %}{% endif %}\
    <|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}";

fn goldens() -> HashMap<String, Tensor> {
    let path = repository().join("tests/goldens/vision.safetensors");
    candle_core::safetensors::load(path, &Device::Cpu).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

fn on() -> impl FnMut(f32) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

/// The vision model of a random model, from a folder and from an mmproj file, with the language
/// model's GGUF file.
struct Files {
    vision: RandomVision,
    folder: std::path::PathBuf,
    model: ModelSource,
    mmproj: std::path::PathBuf,
}

impl Files {
    fn new(path: &Path, mut vision: RandomVision) -> Self {
        vision.text = vision.text.with_template(&TEMPLATE.replace("PLACEHOLDER", vision.placeholder()));
        let folder = vision.write_folder(path);
        let (model, mmproj) = vision.write_gguf(path, GgmlDType::F32);
        Self { vision, folder, model: ModelSource::open(&model).unwrap(), mmproj }
    }

    fn language(&self) -> &ModelConfig {
        self.model.config().unwrap()
    }

    fn tower(&self, path: &Path) -> Tower {
        Tower::open(path, &self.model.tokenizer().unwrap(), self.language()).unwrap()
    }

    /// Ids of its pictures, and the table with the embeddings of `pictures`.
    fn ids(&self, pictures: &[&PlacedPicture]) -> PictureIds {
        let mut tower = self.tower(&self.mmproj);
        let ids = PictureIds { layout: tower.layout(), media: Arc::new(Media::default()) };
        let tokenizer = self.model.tokenizer().unwrap();
        for placed in pictures {
            let placeholder = [ids.layout.placeholder().0];
            ids.expanded(&placeholder, std::iter::once(*placed), &tokenizer).unwrap();
            let embeddings = tower.encode(&placed.picture, placed.detail, &mut on()).unwrap();
            ids.media.insert(ids.key(placed), embeddings).unwrap();
        }
        ids
    }

    /// Tokens of a picture: those around its embeddings, too, except SmolVLM's.
    fn tokens_of(&self, ids: &PictureIds, placed: &PlacedPicture) -> Vec<TokenId> {
        let placeholder = [ids.layout.placeholder().0];
        let tokenizer = self.model.tokenizer().unwrap();
        let mut tokens = ids.expanded(&placeholder, std::iter::once(placed), &tokenizer).unwrap();
        tokens.retain(|&token| is_media(token) || self.vision.label != "smolvlm");
        tokens
    }

    /// Details of the goldens, the last of which is that of the logits.
    fn details(&self) -> &'static [(&'static str, Detail)] {
        match self.vision.label {
            "smolvlm" => &[("high", Detail::High), ("normal", Detail::Normal)],
            "gemma4" => &[("normal", Detail::Normal), ("high", Detail::High), ("low", Detail::Low)],
            _ => &[("high", Detail::High)],
        }
    }
}

fn placed(picture: Picture, detail: Detail) -> PlacedPicture {
    PlacedPicture { at: 0, picture: Arc::new(picture), detail }
}

#[test]
fn pictures_are_resized_with_the_bits_of_pillow() {
    let goldens = goldens();
    let picture = made_up_picture("resized", 75, 50);
    for (name, filter) in
        [("Bilinear", Filter::Bilinear), ("Bicubic", Filter::Bicubic), ("Lanczos3", Filter::Lanczos3)]
    {
        for (width, height) in [(75, 20), (31, 90), (150, 101), (1, 1), (75, 50)] {
            let expected: Vec<u8> = goldens[&format!("{name} {width} {height}")].to_vec1().unwrap();
            let found = resized(&picture, width, height, filter).unwrap();
            assert_eq!(Sha256::digest(found.pixels()).to_vec(), expected, "{name} to {width} x {height}");
        }
    }
}

#[test]
fn pixels_and_the_text_around_embeddings_equal_those_of_transformers() {
    let (folder, goldens) = (tempfile::tempdir().unwrap(), goldens());
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        for path in [&files.folder, &files.mmproj] {
            let tower = files.tower(path);
            for ((shape, width, height), &(detail_name, detail)) in
                SIZES.into_iter().flat_map(|size| files.details().iter().map(move |detail| (size, detail)))
            {
                let name = format!("{} {shape} {detail_name}", files.vision.label);
                let pixels = tower.pixels(&made_up_picture(shape, width, height), detail).unwrap();
                let bytes: Vec<u8> = pixels.iter().flat_map(|number| number.to_le_bytes()).collect();
                let expected: Vec<u8> = goldens[&format!("{name} pixels")].to_vec1().unwrap();
                assert_eq!(Sha256::digest(bytes).to_vec(), expected, "{name} from {}", path.display());
                let text: Vec<u8> = goldens[&format!("{name} text")].to_vec1().unwrap();
                let parts = tower.layout().parts(width, height, detail).unwrap();
                let found = written(files.vision.picture_token(), &parts);
                assert_eq!(found, String::from_utf8(text).unwrap(), "{name}");
            }
        }
    }
}

/// Parts as transformers writes them, with a placeholder for each embedding.
fn written(placeholder: &str, parts: &[PicturePart]) -> String {
    let part = |part: &PicturePart| match part {
        PicturePart::Text(text) => text.clone(),
        PicturePart::Embeddings { rows, columns } => placeholder.repeat(rows * columns),
    };
    parts.iter().map(part).collect()
}

#[test]
fn embeddings_equal_those_of_transformers_from_both_formats() {
    let (folder, goldens) = (tempfile::tempdir().unwrap(), goldens());
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        for (shape, width, height) in SIZES {
            let picture = made_up_picture(shape, width, height);
            for &(detail_name, detail) in files.details() {
                let name = format!("{} {shape} {detail_name}", files.vision.label);
                // Those of some details are too many to be kept.
                let Some(expected) = goldens.get(&format!("{name} embeddings")).map(numbers) else {
                    continue;
                };
                for path in [&files.folder, &files.mmproj] {
                    let mut tower = files.tower(path);
                    let found = numbers(&tower.embed(&picture, detail, &mut on()).unwrap());
                    assert_eq!(found.len(), expected.len(), "{name}");
                    let most = difference(&[found], std::slice::from_ref(&expected));
                    assert!(most < 1e-4, "{name} from {}: relative error {most}", path.display());
                }
            }
        }
    }
}

#[test]
fn an_mmproj_file_computes_what_the_folder_does() {
    let folder = tempfile::tempdir().unwrap();
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        let picture = made_up_picture("small", 24, 16);
        let [one, other] = [&files.folder, &files.mmproj]
            .map(|path| numbers(&files.tower(path).embed(&picture, Detail::Normal, &mut on()).unwrap()));
        assert_eq!(one.len(), other.len());
        let most = difference(&[one], &[other]);
        assert!(most < 1e-6, "{}: {most}", files.vision.label);
    }
}

/// The text of the goldens, with a picture between its parts.
fn golden_text(picture: &[TokenId]) -> Vec<TokenId> {
    let before = (0..9).map(|i| 3 + i * 97 % 250);
    let after = (0..12).map(|i| 5 + i * 89 % 250);
    before.chain(picture.iter().copied()).chain(after).collect()
}

#[test]
fn logits_of_a_text_with_a_picture_equal_those_of_transformers() {
    let (folder, goldens) = (tempfile::tempdir().unwrap(), goldens());
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        let label = files.vision.label;
        let (_, detail) = *files.details().last().unwrap();
        let picture = placed(made_up_picture("square", 40, 40), detail);
        let mut tower = files.tower(&files.folder);
        let ids = PictureIds { layout: tower.layout(), media: Arc::new(Media::default()) };
        let text = golden_text(&files.tokens_of(&ids, &picture));
        let expected: Vec<i64> = goldens[&format!("{label} tokens")].to_vec1().unwrap();
        let placeholder = ids.layout.placeholder().0;
        let placeholders = text.iter().map(|&token| if is_media(token) { placeholder } else { token });
        assert_eq!(placeholders.map(i64::from).collect::<Vec<_>>(), expected, "{label}");
        let embeddings = tower.encode(&picture.picture, detail, &mut on()).unwrap();
        ids.media.insert(ids.key(&picture), embeddings).unwrap();
        let expected: Vec<Vec<f32>> = goldens[&format!("{label} logits")].to_vec2().unwrap();
        assert_eq!(text.len(), expected.len());
        let source = ModelSource::open(&files.folder).unwrap();
        // Embeddings are rounded to half precision.
        let engines: [(Box<dyn Model>, f32); 2] = [
            (Box::new(TensorModel::exact(&source, &Device::Cpu).unwrap()), 1e-3),
            (loaded(&source), IN_HALVES),
        ];
        for (mut model, most) in engines {
            model.set_media(&ids.media);
            let found = logits_in_chunks(model.as_mut(), &text, &[7]);
            let apart = difference(&found, &expected);
            assert!(apart < most, "{label}: relative error {apart}");
        }
    }
}

#[test]
fn a_text_with_a_picture_has_the_same_bits_in_any_chunks_and_after_any_cut() {
    let folder = tempfile::tempdir().unwrap();
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        let picture = placed(made_up_picture("square", 40, 40), Detail::Normal);
        let ids = files.ids(&[&picture]);
        let text = golden_text(&files.tokens_of(&ids, &picture));
        let mut model = loaded(&files.model);
        model.set_media(&ids.media);
        let whole = logits_in_chunks(model.as_mut(), &text, &[text.len()]);
        for chunks in [&[1][..], &[5, 3], &[10, 1, 17]] {
            for (found, expected) in logits_in_chunks(model.as_mut(), &text, chunks).iter().zip(&whole) {
                assert_same(found, expected);
            }
        }
        // Cut before, within and behind the picture, and continued.
        for length in [4, 11, text.len() - 3] {
            logits_in_chunks(model.as_mut(), &text, &[text.len()]);
            let kept = model.truncate(length);
            let tree = foretoken_forward::tree::TokenTree::chain(text[kept..].iter().copied());
            let pass = model.run(&tree, &foretoken_forward::Want::all_rows()).unwrap();
            let logits = pass.logits();
            for (row, expected) in whole[kept..].iter().enumerate() {
                assert_same(logits.row(row).logits().unwrap(), expected);
            }
        }
    }
}

#[test]
fn a_picture_without_embeddings_is_an_error_and_leaves_the_cache_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(folder.path(), RandomVision::smolvlm());
    let picture = placed(made_up_picture("square", 40, 40), Detail::Normal);
    let ids = PictureIds { layout: files.tower(&files.mmproj).layout(), media: Arc::new(Media::default()) };
    let unseen = files.tokens_of(&ids, &picture);
    let mut model = loaded(&files.model);
    let run = |model: &mut dyn Model, tokens: &[TokenId]| {
        let tree = foretoken_forward::tree::TokenTree::chain(tokens.iter().copied());
        model.run(&tree, &foretoken_forward::Want::nothing()).map(drop)
    };
    for with_table in [false, true] {
        if with_table {
            model.set_media(&ids.media);
        }
        let error = run(model.as_mut(), &unseen).unwrap_err();
        assert!(matches!(error, Error::UnknownToken { .. }), "{error}");
        assert!(model.cached().is_empty());
    }
}

/// A decoder with pictures in its table, and a prompt with two of them.
fn decoder_and_prompt(files: &Files) -> (Decoder, Arc<Media>, Vec<TokenId>) {
    let pictures = [("one", 40, 40), ("other", 20, 60)]
        .map(|(name, w, h)| placed(made_up_picture(name, w, h), Detail::Normal));
    let ids = files.ids(&[&pictures[0], &pictures[1]]);
    let tokenizer = Arc::new(files.model.tokenizer().unwrap());
    let mut message = ChatMessage::new(Role::User, "the cat and the dog, the cat and the dog: ");
    for picture in &pictures {
        message = message.with_picture(&picture.picture, picture.detail);
        message.content.push_str(" the cat and the");
    }
    let form = Form::chat(&files.model, &Renderer::in_this_process()).unwrap();
    let encoder =
        PromptEncoder { tokenizer: Arc::clone(&tokenizer), context: 4096, pictures: Some(ids.clone()) };
    let messages = [message];
    let prompt = form.tokens(&encoder, &Conversation::of(&messages, None), &|| false).unwrap();
    let mut model = loaded(&files.model);
    model.set_media(&ids.media);
    (Decoder::new(model, tokenizer), ids.media, prompt)
}

/// Drafters of every kind for a model, each with a name.
fn drafters(
    files: &Files,
    path: &Path,
    tokenizer: &Tokenizer,
    media: &Arc<Media>,
) -> Vec<(&'static str, Drafters)> {
    let one = |drafter: Box<dyn Drafter>| Drafters::new(vec![drafter]);
    let model = || {
        let vocabulary = Vocabulary::Same(tokenizer.vocabulary());
        Box::new(ModelDrafter::new(loaded(&files.model), vocabulary, tokenizer.ends()))
    };
    let mut drafters = vec![
        ("n-grams", Drafters::one(NgramDrafter::default())),
        ("recycling", Drafters::one(RecyclingDrafter::default())),
        ("a model that does not see", one(model())),
        (
            "all of these",
            Drafters::new(vec![model(), Box::<NgramDrafter>::default(), Box::<RecyclingDrafter>::default()]),
        ),
    ];
    let head = |source: &ModelSource| {
        let mut model = loaded(source);
        model.set_media(media);
        head_drafter(source, model, tokenizer.ends()).unwrap()
    };
    let (name, source) = match files.vision.label {
        "qwen3_5" => ("an MTP head", files.model.mtp_head()),
        "gemma4" => ("an assistant", RandomAssistant::new(&files.vision.text, false).folder(path)),
        _ => ("an EAGLE-3 head", RandomHead::new(files.language(), Flags::default()).speculators(path)),
    };
    drafters.push((name, one(head(&source.unwrap().for_target(&files.model).unwrap()))));
    drafters
}

#[test]
fn drafts_after_a_picture_change_no_text() {
    let folder = tempfile::tempdir().unwrap();
    for mut vision in RandomVision::all() {
        if vision.label == "qwen3_5" {
            vision.text = vision.text.with_mtp();
        }
        let files = Files::new(folder.path(), vision);
        let (mut decoder, media, prompt) = decoder_and_prompt(&files);
        assert!(prompt.iter().any(|&token| is_media(token)));
        let tokenizer = Arc::clone(decoder.tokenizer());
        let coupled =
            Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() };
        for (name, mut drafters) in drafters(&files, folder.path(), &tokenizer, &media) {
            for sampling in [Sampling::greedy(), coupled.clone()] {
                for penalty in [1.0, 1.3] {
                    let sampling = Sampling {
                        repetition_penalty: penalty,
                        automatic_penalties: false,
                        ..sampling.clone()
                    };
                    let request = |speculation| Request {
                        sampling: sampling.clone(),
                        max_tokens: Some(40),
                        ignore_end: true,
                        speculation,
                        ..Request::new(prompt.clone())
                    };
                    let on = &mut |_: foretoken_engine::decoder::Progress<'_>| ControlFlow::Continue(());
                    let plain =
                        decoder.reply(&request(Speculation::off()), &mut Drafters::default(), on).unwrap();
                    for length in [1, 4] {
                        let drafted =
                            decoder.reply(&request(Speculation::fixed(length)), &mut drafters, on).unwrap();
                        assert_eq!(drafted.tokens, plain.tokens, "{} with {name}", files.vision.label);
                        assert_eq!(drafters.failure(), None, "{} with {name}", files.vision.label);
                    }
                }
            }
        }
    }
}

#[test]
fn a_reply_depends_on_the_picture_and_a_second_question_reads_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(folder.path(), RandomVision::smolvlm());
    let host =
        Host { hardware: Arc::new(ThisComputer), learning: None, renderer: Renderer::in_this_process() };
    let form = Form::chat(&files.model, &host.renderer).unwrap();
    let mut session = Session::load(&host, &files.model, form, DeviceChoice::Cpu).unwrap();
    let question = |picture: &Arc<Picture>| {
        let mut message = ChatMessage::new(Role::User, "look: ").with_picture(picture, Detail::Normal);
        message.content.push_str("what is there?");
        message
    };
    let one = Arc::new(made_up_picture("one", 40, 40));
    let mut pixels = one.pixels().to_vec();
    pixels[100] ^= 255;
    let other = Arc::new(Picture::new(40, 40, pixels).unwrap());
    let blind = session.conversation(&Conversation::of(&[question(&one)], None)).unwrap_err();
    assert!(matches!(blind, Error::Picture(_)), "{blind}");
    session.set_vision(Some(Box::new(files.tower(&files.mmproj))));
    let mut shares = Vec::new();
    let mut reply = |session: &mut Session, messages: &[ChatMessage]| {
        let conversation = Conversation::of(messages, None);
        session
            .see(&conversation, &mut |share| {
                shares.push(share);
                ControlFlow::Continue(())
            })
            .unwrap();
        let prompt = session.conversation(&conversation).unwrap();
        let request = Request {
            max_tokens: Some(8),
            ignore_end: true,
            sampling: Sampling::greedy(),
            ..Request::new(prompt)
        };
        session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap()
    };
    let first = reply(&mut session, &[question(&one)]);
    let second = reply(&mut session, &[question(&other)]);
    let before = session.conversation(&Conversation::of(&[question(&other)], None)).unwrap();
    let picture = before.iter().position(|&token| is_media(token)).unwrap();
    assert_eq!(second.summary.reused_tokens as usize, picture, "nothing of another picture is reused");
    let again = reply(&mut session, &[question(&one)]);
    assert_eq!((again.text, again.tokens), (first.text.clone(), first.tokens));
    let encoded = shares.len();
    let messages = [
        question(&one),
        ChatMessage::new(Role::Assistant, &*first.text),
        ChatMessage::new(Role::User, "and?"),
    ];
    let conversation = Conversation::of(&messages, None);
    session.see(&conversation, &mut |_| panic!("the picture is encoded again")).unwrap();
    let prompt = session.conversation(&conversation).unwrap();
    let request = Request { max_tokens: Some(4), ignore_end: true, ..Request::new(prompt) };
    let third = session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap();
    let last = request.prompt.iter().rposition(|&token| is_media(token)).unwrap();
    assert!(third.summary.reused_tokens as usize > last, "the picture is not run again");
    assert!(encoded > 0);
}

#[test]
fn encoding_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(folder.path(), RandomVision::smolvlm());
    let mut tower = files.tower(&files.mmproj);
    let picture = made_up_picture("wide", 75, 50);
    let mut calls = 0;
    let stopped = tower.encode(&picture, Detail::High, &mut |share| {
        calls += 1;
        assert!((0.0..=1.0).contains(&share));
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert_eq!(calls, 3);
}

#[test]
fn a_vision_file_of_another_model_and_pictures_that_are_too_narrow_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::new(folder.path(), RandomVision::smolvlm());
    let tokenizer = files.model.tokenizer().unwrap();
    let wider = ModelConfig { hidden: 123, ..files.language().clone() };
    let error = Tower::open(&files.mmproj, &tokenizer, &wider).err().unwrap();
    assert!(error.to_string().contains("123 numbers"), "{error}");
    let error = Tower::open(files.model.path(), &tokenizer, files.language()).err().unwrap();
    assert!(error.to_string().contains("mmproj"), "{error}");
    let without = foretoken_tests::starter_target();
    let error = Tower::open(&files.mmproj, &without.tokenizer().unwrap(), files.language()).err().unwrap();
    assert!(error.to_string().contains("<image>"), "{error}");
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        let error = files.tower(&files.mmproj).layout().parts(1000, 4, Detail::Normal).err().unwrap();
        assert!(error.to_string().contains("narrow"), "{error}");
    }
}

#[test]
fn a_vision_file_with_another_number_of_deepstack_layers_is_of_another_model() {
    let folders = ["with", "without"].map(|_| tempfile::tempdir().unwrap());
    let with = Files::new(folders[0].path(), RandomVision::named("qwen3_vl"));
    let without = Files::new(folders[1].path(), RandomVision::named("qwen3_5"));
    for (vision, language) in [(&with, &without), (&without, &with)] {
        let tokenizer = language.model.tokenizer().unwrap();
        let error = Tower::open(&vision.mmproj, &tokenizer, language.language()).err().unwrap();
        assert!(error.to_string().contains("DeepStack"), "{error}");
    }
    // Both files beside the model: that which fits is found.
    std::fs::copy(&without.mmproj, folders[0].path().join("mmproj-other.gguf")).unwrap();
    assert_eq!(VisionSource::beside(with.model.path(), with.language()), Some(with.mmproj));
}

#[test]
fn a_vision_model_without_any_one_of_its_tensors_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for vision in RandomVision::all() {
        for name in vision.tensor_names() {
            let mut lacking = vision.clone();
            lacking.remove(&name);
            let (_, mmproj) = lacking.write_gguf(folder.path(), GgmlDType::F32);
            // Whether there are bounds and standards is seen by their presence alone.
            let is_optional = ["v.blk.0.attn_q.input_max", "v.std_scale"].contains(&name.as_str());
            match VisionSource::open(&mmproj).err() {
                Some(error) => assert!(error.to_string().contains(&name), "{name}: {error}"),
                None => assert!(is_optional, "{} without {name}", vision.label),
            }
            let error = VisionSource::open(&lacking.write_folder(folder.path())).err();
            let error = error.unwrap_or_else(|| panic!("{} without {name}", vision.label));
            assert!(error.to_string().contains(&name), "{name}: {error}");
        }
    }
}

#[test]
fn vision_models_with_twisted_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (label, part, key, value, expected) in [
        ("qwen3_vl", "vision_config", "deepstack_visual_indexes", json!([2, 0]), "DeepStack"),
        ("qwen3_vl", "vision_config", "deepstack_visual_indexes", json!([0, 3]), "DeepStack"),
        ("qwen3_vl", "vision_config", "deepstack_visual_indexes", json!([0, -1]), "DeepStack"),
        ("qwen3_vl", "vision_config", "num_position_embeddings", json!(1_000_000), "positions"),
        ("qwen3_vl", "vision_config", "num_heads", json!(3), "width"),
        ("qwen3_vl", "vision_config", "out_hidden_size", json!(512), "mm.2"),
        ("gemma4", "text_config", "use_bidirectional_attention", json!("vision"), "both directions"),
        ("gemma4", "vision_config", "num_key_value_heads", json!(2), "num_key_value_heads"),
        ("gemma4", "vision_config", "head_dim", json!(32), "head_dim"),
        ("gemma4", "vision_config", "position_embedding_size", json!(100), "positions"),
        ("gemma4", "vision_config", "pooling_kernel_size", json!(0), "merged"),
        ("gemma4", "vision_config", "rope_parameters", json!({"rope_theta": 10.0}), "rope_theta"),
        ("gemma4", "vision_config", "hidden_activation", json!("relu"), "relu"),
        ("gemma4", "vision_config", "rms_norm_eps", json!(0.0), "epsilon"),
        ("mistral3", "vision_config", "model_type", json!("other"), "other"),
        ("mistral3", "vision_config", "patch_size", json!(0), "patch"),
        ("mistral3", "vision_config", "patch_size", json!(1_000), "patch"),
        ("mistral3", "vision_config", "hidden_size", json!(80), "v.patch_embd.weight"),
        ("mistral3", "vision_config", "rope_theta", json!(1e6), "rope_theta"),
    ] {
        let path = RandomVision::named(label).write_folder(folder.path());
        let file = path.join("config.json");
        let mut config: Json = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config[part][key] = value.clone();
        std::fs::write(&file, config.to_string()).unwrap();
        let error = VisionSource::open(&path).err().unwrap_or_else(|| panic!("{label}: {key} {value}"));
        assert!(error.to_string().contains(expected), "{label}: {key} {value}: {error}");
    }
}

#[test]
fn mmproj_files_with_twisted_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let size = |size| Value::U32(size);
    let flags = |flags: &[bool]| Value::Array(flags.iter().copied().map(Value::Bool).collect());
    for (label, key, value, expected) in [
        // Models of this width let the embeddings of a picture attend to each other.
        ("gemma4", "clip.vision.projection_dim", size(2816), "both directions"),
        ("gemma4", "clip.vision.projector_type", Value::String("gemma4uv".into()), "gemma4uv"),
        ("gemma4", "clip.vision.projector.scale_factor", size(0), "merged"),
        ("gemma4", "clip.vision.attention.head_count", size(64), "rotates"),
        ("qwen3_vl", "clip.vision.is_deepstack_layers", flags(&[true, true, true]), "v.deepstack.1"),
        ("qwen3_vl", "clip.vision.is_deepstack_layers", flags(&[false, false, false, true]), "DeepStack"),
        ("mistral3", "clip.use_silu", Value::Bool(false), "SiLU"),
        ("mistral3", "clip.vision.block_count", size(1_000_000), "layers"),
        ("mistral3", "clip.vision.image_size", size(0), "edge"),
        ("mistral3", "clip.vision.spatial_merge_size", size(3), "mm.patch_merger"),
        ("mistral3", "clip.vision.feed_forward_length", size(64), "ffn_gate"),
    ] {
        let mmproj = RandomVision::named(label).write_mmproj(folder.path(), &[(key, value)]);
        let error = VisionSource::open(&mmproj).err().unwrap_or_else(|| panic!("{label}: {key}"));
        assert!(error.to_string().contains(expected), "{label}: {key}: {error}");
    }
}
