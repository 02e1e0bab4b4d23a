//! Pictures in prompts: pixels, embeddings and logits equal those of transformers, from both file
//! formats. Drafts after a picture change no text, and caches tell pictures apart.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::GgmlDType;
use candle_core::{DType, Device, Tensor};
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{
    Drafter, Drafters, ModelDrafter, NgramDrafter, RecyclingDrafter, Vocabulary, head_drafter,
};
use foretoken_engine::session::{Form, Host, PromptEncoder, Session, ThisComputer};
use foretoken_engine::speculation::Speculation;
use foretoken_engine::vision::{PictureIds, PictureLayout, PicturePart, VisionModel};
use foretoken_forward::device::DeviceChoice;
use foretoken_forward::{Media, Model, TensorModel};
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::{TokenId, is_media};
use foretoken_model::{
    ChatMessage, Conversation, Detail, Error, ModelSource, Picture, PlacedPicture, Renderer, Role, Tokenizer,
};
use foretoken_senses::resample::{Filter, resized};
use foretoken_senses::vision::Tower;
use foretoken_tests::{
    Flags, RandomHead, RandomVision, assert_same, loaded, logits_in_chunks, made_up_picture, repository,
};

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
        let placeholder = match vision.label {
            "smolvlm" => "<image>",
            _ => "<|vision_start|><|image_pad|><|vision_end|>",
        };
        vision.text = vision.text.with_template(&TEMPLATE.replace("PLACEHOLDER", placeholder));
        let folder = vision.write_folder(path);
        let (model, mmproj) = vision.write_gguf(path, GgmlDType::F32);
        Self { vision, folder, model: ModelSource::open(&model).unwrap(), mmproj }
    }

    fn hidden(&self) -> usize {
        self.model.config().unwrap().hidden
    }

    fn tower(&self, path: &Path) -> Tower {
        Tower::open(path, &self.model.tokenizer().unwrap(), self.hidden()).unwrap()
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

    /// Ids of a picture's embeddings alone.
    fn embeddings_of(&self, ids: &PictureIds, placed: &PlacedPicture) -> Vec<TokenId> {
        let placeholder = [ids.layout.placeholder().0];
        let tokenizer = self.model.tokenizer().unwrap();
        let tokens = ids.expanded(&placeholder, std::iter::once(placed), &tokenizer).unwrap();
        tokens.into_iter().filter(|&token| is_media(token)).collect()
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
            let expected: Vec<u8> =
                goldens[&format!("{name} {width} {height}")].flatten_all().unwrap().to_vec1().unwrap();
            let found = resized(&picture, width, height, filter).unwrap();
            let apart = found.pixels().iter().zip(&expected).filter(|(a, b)| a != b).count();
            assert!(found.pixels() == expected, "{name} to {width} x {height}: {apart} bytes differ");
        }
    }
}

#[test]
fn embeddings_and_the_text_around_them_equal_those_of_transformers_from_both_formats() {
    let (folder, goldens) = (tempfile::tempdir().unwrap(), goldens());
    for vision in RandomVision::all() {
        let files = Files::new(folder.path(), vision);
        let label = files.vision.label;
        let details: &[(&str, Detail)] = match label {
            "smolvlm" => &[("normal", Detail::Normal), ("high", Detail::High)],
            _ => &[("high", Detail::High)],
        };
        for (shape, width, height) in SIZES {
            let picture = made_up_picture(shape, width, height);
            for &(named, detail) in details {
                let name = format!("{label} {shape} {named}");
                let expected = numbers(&goldens[&format!("{name} embeddings")]);
                for path in [&files.folder, &files.mmproj] {
                    let mut tower = files.tower(path);
                    let found = numbers(&tower.embed(&picture, detail, &mut on()).unwrap());
                    assert_eq!(found.len(), expected.len(), "{name}");
                    let most = difference(&[found], std::slice::from_ref(&expected));
                    assert!(most < 1e-4, "{name} from {}: relative error {most}", path.display());
                    let text: Vec<u8> = goldens[&format!("{name} text")].to_vec1().unwrap();
                    let parts = tower.layout().parts(width, height, detail).unwrap();
                    assert_eq!(written(&*tower.layout(), &parts), String::from_utf8(text).unwrap(), "{name}");
                }
            }
        }
    }
}

/// Parts as transformers writes them, with a placeholder for each embedding.
fn written(layout: &dyn PictureLayout, parts: &[PicturePart]) -> String {
    let whole = layout.placeholder().1;
    let placeholder = if whole == "<image>" { whole } else { "<|image_pad|>" };
    let part = |part: &PicturePart| match part {
        PicturePart::Text(text) => text.clone(),
        PicturePart::Embeddings { rows, columns } => placeholder.repeat(rows * columns),
    };
    parts.iter().map(part).collect()
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
        let detail = if label == "smolvlm" { Detail::Normal } else { Detail::High };
        let picture = placed(made_up_picture("square", 40, 40), detail);
        let mut tower = files.tower(&files.folder);
        let ids = PictureIds { layout: tower.layout(), media: Arc::new(Media::default()) };
        let text = golden_text(&files.embeddings_of(&ids, &picture));
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
        let text = golden_text(&files.embeddings_of(&ids, &picture));
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
    let unseen = files.embeddings_of(&ids, &picture);
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
    if files.vision.label == "smolvlm" {
        let eagle = RandomHead::new(files.model.config().unwrap(), Flags::default());
        let source = eagle.speculators(path).unwrap().for_target(&files.model).unwrap();
        drafters.push(("an EAGLE-3 head", one(head(&source))));
    } else {
        let source = files.model.mtp_head().unwrap().for_target(&files.model).unwrap();
        drafters.push(("an MTP head", one(head(&source))));
    }
    drafters
}

#[test]
fn drafts_after_a_picture_change_no_text() {
    let folder = tempfile::tempdir().unwrap();
    for mut vision in RandomVision::all() {
        if vision.label != "smolvlm" {
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
    let error = Tower::open(&files.mmproj, &tokenizer, 123).err().unwrap();
    assert!(error.to_string().contains("123 numbers"), "{error}");
    let error = Tower::open(files.model.path(), &tokenizer, files.hidden()).err().unwrap();
    assert!(error.to_string().contains("mmproj"), "{error}");
    let without = foretoken_tests::starter_target();
    let error = Tower::open(&files.mmproj, &without.tokenizer().unwrap(), files.hidden()).err().unwrap();
    assert!(error.to_string().contains("<image>"), "{error}");
    let error = files.tower(&files.mmproj).layout().parts(1000, 4, Detail::Normal).err().unwrap();
    assert!(error.to_string().contains("narrow"), "{error}");
}
