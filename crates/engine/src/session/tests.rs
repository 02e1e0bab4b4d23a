//! Sessions with the starter pair, and with a simulated GPU.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use foretoken_forward::device::{Candidate, DeviceLabel, Gpu, Problem};
use foretoken_forward::{Embeddings, MediaKey, Model, PictureShape};
use foretoken_model::sampling::Sampling;
use foretoken_model::{ChatMessage, Conversation, Role as Speaker};

use super::*;
use crate::governor::{GovernorStats, RowRatios};
use crate::trace::Finish;

fn model(name: &str) -> ModelSource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../starter");
    ModelSource::open(&folder.join(name)).unwrap()
}

pub fn target() -> ModelSource {
    model("starter-target-Q8_0.gguf")
}

fn draft() -> DraftSource {
    DraftSource::Model { source: model("starter-draft-Q8_0.gguf"), stage: None }
}

pub fn host(hardware: Arc<dyn Hardware>, learning: Option<Arc<dyn Learning>>) -> Host {
    Host { hardware, learning, renderer: Renderer::in_this_process() }
}

pub fn load(host: &Host) -> Session {
    load_with(host, KvDtype::F16)
}

fn load_with(host: &Host, dtype: KvDtype) -> Session {
    let form = Form::chat(&target(), &host.renderer).unwrap();
    Session::load(host, &target().with_kv_dtype(dtype), form, DeviceChoice::Auto).unwrap()
}

/// Keeps statistics in memory.
#[derive(Default)]
struct Notes(
    Mutex<HashMap<Vec<PathBuf>, GovernorStats>>,
    Mutex<Vec<(Pair, TokenTimes)>>,
    Mutex<HashMap<String, RowRatios>>,
);

impl Learning for Notes {
    fn load(&self, pair: &Pair) -> Option<GovernorStats> {
        self.0.lock().unwrap().get(&pair.models).cloned()
    }

    fn save(
        &self,
        pair: &Pair,
        stats: &GovernorStats,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        self.0.lock().unwrap().insert(pair.models.clone(), stats.clone());
        Ok(())
    }

    fn load_ratios(&self, class: &str) -> Option<RowRatios> {
        self.2.lock().unwrap().get(class).cloned()
    }

    fn save_ratios(
        &self,
        class: &str,
        ratios: &RowRatios,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        self.2.lock().unwrap().insert(class.to_owned(), ratios.clone());
        Ok(())
    }

    fn load_times(&self, pair: &Pair) -> Option<TokenTimes> {
        self.1.lock().unwrap().iter().find(|(known, _)| known == pair).map(|(_, times)| *times)
    }

    fn save_times(
        &self,
        pair: &Pair,
        times: &TokenTimes,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        self.1.lock().unwrap().push((pair.clone(), *times));
        Ok(())
    }
}

/// Contexts in memory instead of files.
#[derive(Default)]
struct Files {
    pages: Mutex<HashMap<Hash, Vec<u8>>>,
    texts: Mutex<HashMap<String, Vec<u8>>>,
}

impl ContextFiles for Files {
    fn save(
        &self,
        name: &str,
        pages: &[Hash],
        bytes_of: &mut dyn FnMut(usize) -> Vec<u8>,
        text: &[u8],
    ) -> std::io::Result<()> {
        let mut known = self.pages.lock().unwrap();
        for (number, page) in pages.iter().enumerate() {
            known.entry(*page).or_insert_with(|| bytes_of(number));
        }
        self.texts.lock().unwrap().insert(name.to_owned(), text.to_vec());
        Ok(())
    }

    fn text(&self, name: &str) -> std::io::Result<Vec<u8>> {
        self.texts.lock().unwrap().get(name).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn page(&self, page: &Hash, _: usize) -> std::io::Result<Vec<u8>> {
        self.pages.lock().unwrap().get(page).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

/// A session with memory for texts, and the draft model if there is to be one.
fn keeping(drafts: bool) -> Session {
    let mut session = load(&host(Arc::new(ThisComputer), None));
    session.keep_texts(TextBudget::Bytes(1 << 30));
    if drafts {
        session.draft = session.open_draft(&draft(), None).unwrap();
    }
    session
}

/// A reply to a prompt of more than a page, and the tokens of it that the caches had.
fn long_reply(session: &mut Session, tokens: &[TokenId]) -> (Vec<TokenId>, usize) {
    let prompt: Vec<TokenId> = (0..300).map(|i| 3 + i * 761 % 4000).chain(tokens.iter().copied()).collect();
    let speculation = crate::speculation::Speculation::fixed(4);
    let request = Request { ignore_end: true, max_tokens: Some(16), speculation, prompt, ..request(session) };
    let reply = session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap();
    (reply.tokens, reply.summary.reused_tokens as usize)
}

#[test]
fn a_saved_text_goes_on_in_another_session_with_its_drafters() {
    let files = Files::default();
    let mut first = keeping(true);
    let (tokens, _) = long_reply(&mut first, &[]);
    first.text_to_save().unwrap().save("a", &files).unwrap();
    assert_eq!(files.pages.lock().unwrap().len(), 2, "a page of each model");
    let expected = long_reply(&mut first, &tokens).0;
    for drafts in [true, false] {
        let mut second = keeping(drafts);
        second.restore("a", &files, &|| true).unwrap();
        let (found, reused) = long_reply(&mut second, &tokens);
        assert_eq!((found, reused), (expected.clone(), 300 + tokens.len() - 1));
    }
    // The draft model's own cache came back, so it has nothing to read.
    let mut second = keeping(true);
    second.restore("a", &files, &|| true).unwrap();
    let prompt: Vec<TokenId> = (0..300).map(|i| 3 + i * 761 % 4000).chain(tokens).collect();
    second.turn_to(&Request::new(prompt.clone()));
    assert!(second.draft.drafters.behind(&crate::context::Context::new(prompt)) < 10);
}

#[test]
fn a_limited_context_ends_replies_there_and_texts_beyond_it_come_back_with_a_longer_one() {
    let mut session = keeping(true);
    let trained = session.context();
    let prompt: Vec<TokenId> = (0..300).map(|i| 3 + i * 761 % 4000).collect();
    let go_on = &mut |_: Progress<'_>| ControlFlow::Continue(());
    let sampling = Sampling::greedy();
    let long = Request { sampling, ignore_end: true, max_tokens: None, ..Request::new(prompt) };
    let some = Request { max_tokens: Some(40), ..long.clone() };
    let whole = session.reply(&some, go_on).unwrap();
    session.limit_context(Some(310));
    assert_eq!(session.context(), 310);
    let cut = session.reply(&long, go_on).unwrap();
    assert_eq!((cut.summary.finish, cut.tokens.len()), (Finish::ContextFull, 10));
    assert_eq!(cut.tokens, whole.tokens[..10]);
    session.limit_context(Some(300));
    let refused = session.reply(&long, go_on);
    assert!(matches!(refused, Err(Error::PromptTooLong { found: 300, limit: 300 })), "{refused:?}");
    // The text of 340 tokens was put aside.
    session.limit_context(None);
    assert_eq!(session.context(), trained);
    let prompt = [&long.prompt[..], &whole.tokens].concat();
    let again = session.reply(&Request { prompt, ..some }, go_on).unwrap();
    assert_eq!(again.summary.reused_tokens, 339);
    session.limit_context(Some(10 * trained));
    assert_eq!(session.context(), trained);
}

#[test]
fn a_reply_says_how_many_of_its_tokens_were_read_from_files() {
    let files = Files::default();
    let mut first = keeping(false);
    let prompt = |cut: TokenId| -> Vec<TokenId> {
        (0..300).map(|i| 3 + (i * 761 + if i < cut { 0 } else { 7 }) % 4000).collect()
    };
    let counts = |session: &mut Session, cut: TokenId, owner: Owner| {
        let request = Request { max_tokens: Some(4), owner, ..Request::new(prompt(cut)) };
        let summary = session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap().summary;
        (summary.reused_tokens, summary.restored_tokens)
    };
    assert_eq!(counts(&mut first, 300, Owner::Person), (0, 0));
    first.text_to_save().unwrap().save("a", &files).unwrap();
    assert_eq!(counts(&mut first, 300, Owner::Person), (299, 0), "from memory");
    let mut second = keeping(false);
    second.restore("a", &files, &|| true).unwrap();
    assert_eq!(counts(&mut second, 280, Owner::Person), (280, 280));
    // The last tokens were computed here since.
    assert_eq!(counts(&mut second, 280, Owner::Person), (299, 280));
    assert_eq!(counts(&mut second, 280, Owner::Client([1; 32])), (0, 0));
    assert_eq!(counts(&mut second, 280, Owner::Person), (299, 280), "the text was put aside meanwhile");
    // A check computes everything again.
    second.put_text_aside();
    second.decoder.target_mut().truncate(0);
    assert_eq!(second.decoder.target().restored(), 0);
}

#[test]
fn restoring_ends_before_the_next_page_once_it_is_no_longer_wanted() {
    let files = Files::default();
    let mut first = keeping(true);
    let prompt = [long_reply(&mut first, &[]).0, vec![0]].concat();
    let prompt: Vec<TokenId> = (0..300).map(|i| 3 + i * 761 % 4000).chain(prompt).collect();
    first.text_to_save().unwrap().save("a", &files).unwrap();
    let mut session = keeping(true);
    // A page of the target, and one of the draft model.
    for wanted in [0, 1] {
        let pages = Cell::new(0);
        let go_on = || pages.replace(pages.get() + 1) < wanted;
        let ended = session.restore("a", &files, &go_on).unwrap_err();
        assert_eq!((ended.kind(), pages.get()), (std::io::ErrorKind::Interrupted, wanted + 1));
        assert_eq!(session.held(&prompt), 0);
    }
    session.restore("a", &files, &|| true).unwrap();
    assert_eq!(session.held(&prompt), 315);
}

#[test]
fn a_saved_text_that_is_damaged_cut_or_another_models_is_computed_again() {
    let files = Files::default();
    let mut first = keeping(true);
    let (tokens, _) = long_reply(&mut first, &[]);
    first.text_to_save().unwrap().save("a", &files).unwrap();
    let text = files.text("a").unwrap();
    let mut session = keeping(true);
    let mut refused = |text: &[u8]| {
        files.texts.lock().unwrap().insert("a".to_owned(), text.to_vec());
        session.restore("a", &files, &|| true).is_err()
    };
    for length in [0, 7, 8, 100, text.len() / 2, text.len() - 1] {
        assert!(refused(&text[..length]), "{length} bytes");
    }
    // A length beyond the file, and a token that names another page.
    assert!(refused(&[&[0xff; 8], &text[8..]].concat()));
    assert!(refused(&[&text[..8], &[9], &text[9..]].concat()));
    files.pages.lock().unwrap().values_mut().for_each(|page| page.truncate(8));
    assert!(refused(&text));
    files.pages.lock().unwrap().clear();
    assert!(refused(&text));
    assert_eq!(session.restore("b", &files, &|| true).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let (_, reused) = long_reply(&mut session, &tokens);
    assert_eq!(reused, 0);
}

/// A prompt of more than a page with the picture `number`, which gets its ids now.
fn prompt_with_picture(session: &Session, number: u8) -> Vec<TokenId> {
    let shape = PictureShape { count: 20, columns: 5, placeholder: 7 };
    let ids = session.media.ids(MediaKey([number; 32]), shape).unwrap();
    let text = |range: std::ops::Range<TokenId>| range.map(|i| 3 + i * 761 % 4000);
    text(0..240).chain(ids).chain(text(240..300)).collect()
}

/// Adds the picture `number` with its embeddings to the session's table.
fn add_picture(session: &Session, number: u8) {
    prompt_with_picture(session, number);
    let width = session.decoder.target().config().hidden;
    let numbers: Vec<f32> =
        (0..20 * width).map(|i| if i % 7 < 3 * usize::from(number) { 4.0 } else { -1.0 }).collect();
    session.media.insert(MediaKey([number; 32]), Embeddings::new(&numbers, width, width).unwrap()).unwrap();
}

/// Greedy reply to a prompt, and the tokens of it that were read from files.
fn short_reply(session: &mut Session, prompt: &[TokenId]) -> (Vec<TokenId>, u32) {
    let (sampling, speculation) = (Sampling::greedy(), crate::speculation::Speculation::fixed(4));
    let limits = Request { ignore_end: true, max_tokens: Some(8), ..Request::new(prompt.to_vec()) };
    let request = Request { sampling, speculation, ..limits };
    let reply = session.reply(&request, &mut |_| ControlFlow::Continue(())).unwrap();
    (reply.tokens, reply.summary.restored_tokens)
}

#[test]
fn a_saved_text_with_a_picture_goes_on_in_a_session_with_other_ids() {
    let files = Files::default();
    let saved = |session: &mut Session, number: u8| {
        add_picture(session, number);
        let prompt = prompt_with_picture(session, number);
        let (tokens, restored) = short_reply(session, &prompt);
        assert_eq!(restored, 0);
        session.text_to_save().unwrap().save(&number.to_string(), &files).unwrap();
        (tokens, files.pages.lock().unwrap().len())
    };
    for drafts in [false, true] {
        let mut first = keeping(drafts);
        files.pages.lock().unwrap().clear();
        // A page of the target, the embeddings, and a page of the draft model without the picture.
        // The texts share the last one.
        let (expected, pages) = saved(&mut first, 1);
        assert_eq!(pages, if drafts { 3 } else { 2 });
        let (other, pages) = saved(&mut first, 2);
        assert_eq!(pages, if drafts { 5 } else { 4 });
        assert_ne!(expected, other, "the picture matters");
        let mut second = keeping(drafts);
        prompt_with_picture(&second, 8);
        prompt_with_picture(&second, 9);
        for (number, expected) in [(2, other), (1, expected)] {
            second.restore(&number.to_string(), &files, &|| true).unwrap();
            assert!(second.media.has(MediaKey([number; 32])), "nothing is computed again");
            let prompt = prompt_with_picture(&second, number);
            assert_ne!(prompt, prompt_with_picture(&first, number));
            assert_eq!(short_reply(&mut second, &prompt), (expected, 319));
        }
    }
}

#[test]
fn a_saved_text_is_read_without_the_file_of_a_pictures_embeddings() {
    let files = Files::default();
    let mut first = keeping(false);
    add_picture(&first, 1);
    let prompt = prompt_with_picture(&first, 1);
    let (expected, _) = short_reply(&mut first, &prompt);
    first.text_to_save().unwrap().save("a", &files).unwrap();
    let length = 20 * first.decoder.target().config().hidden * 2;
    files.pages.lock().unwrap().retain(|_, bytes| bytes.len() != length);
    assert_eq!(files.pages.lock().unwrap().len(), 1);
    let mut second = keeping(false);
    second.restore("a", &files, &|| true).unwrap();
    assert!(!second.media.has(MediaKey([1; 32])));
    assert_eq!(short_reply(&mut second, &prompt), (expected, 319));
}

#[test]
fn a_saved_text_is_read_only_with_a_kv_cache_in_its_format() {
    let files = Files::default();
    let session = |dtype| {
        let mut session = load_with(&host(Arc::new(ThisComputer), None), dtype);
        session.keep_texts(TextBudget::Bytes(1 << 30));
        session
    };
    let texts = [KvDtype::F16, KvDtype::Int8].map(|dtype| {
        let mut session = session(dtype);
        let (tokens, _) = long_reply(&mut session, &[]);
        session.text_to_save().unwrap().save(&dtype.to_string(), &files).unwrap();
        (dtype, session.identity(), tokens.clone(), long_reply(&mut session, &tokens).0)
    });
    assert_ne!(texts[0].1, texts[1].1);
    for (dtype, _, tokens, expected) in &texts {
        let mut session = session(*dtype);
        for (other, ..) in texts.iter().filter(|(other, ..)| other != dtype) {
            assert!(session.restore(&other.to_string(), &files, &|| true).is_err(), "{other} as {dtype}");
        }
        session.restore(&dtype.to_string(), &files, &|| true).unwrap();
        let (found, reused) = long_reply(&mut session, tokens);
        assert_eq!((&found, reused), (expected, 300 + tokens.len() - 1), "{dtype}");
    }
}

#[test]
fn a_session_keeps_the_format_of_its_kv_cache_when_its_target_is_loaded_again() {
    let host = host(Arc::new(FullGpu(Mutex::new(1))), None);
    let session = load_with(&host, KvDtype::Int8).recover(Remedy::Cpu, |source| source).unwrap();
    assert_eq!(session.decoder.target().config().kv_dtype, KvDtype::Int8);
    let draft = session.open_draft(&draft(), None).unwrap();
    assert_eq!(draft.pair.devices.last().unwrap(), "KV cache in int8");
}

/// Simulated GPU that computes on the CPU and has room for a number of models.
struct FullGpu(Mutex<usize>);

impl Hardware for FullGpu {
    fn survey(&self) -> Vec<(DeviceChoice, std::result::Result<DeviceLabel, Problem>)> {
        Vec::new()
    }

    fn open(&self, choice: &DeviceChoice) -> Opened {
        match choice {
            DeviceChoice::Cpu => Opened::cpu(),
            _ => Opened { gpu: Some(Gpu::Cuda), label: DeviceLabel::named("a GPU"), ..Opened::cpu() },
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        Vec::new()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        if opened.gpu.is_some() {
            let mut room = self.0.lock().unwrap();
            *room = room.checked_sub(1).ok_or_else(full)?;
        }
        ThisComputer.load(source, opened)
    }
}

fn full() -> Error {
    Error::Compute(candle_core::Error::Msg("CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\"".to_owned()))
}

pub fn request(session: &Session) -> Request {
    let question = ChatMessage::new(Speaker::User, "Count from one to ten.");
    let prompt = session.conversation(&Conversation::of(&[question], None)).unwrap();
    Request { sampling: Sampling::greedy(), max_tokens: Some(24), ..Request::new(prompt) }
}

fn text(session: &mut Session) -> String {
    session.reply(&request(session), &mut |_| ControlFlow::Continue(())).unwrap().text
}

#[test]
fn replies_are_equal_with_any_drafter_and_statistics_are_restored() {
    let notes = Arc::new(Notes::default());
    let host = host(Arc::new(ThisComputer), Some(notes.clone()));
    let mut session = load(&host);
    let plain = text(&mut session);
    session.save_stats();
    assert!(notes.0.lock().unwrap().is_empty(), "nobody drafted");
    for source in [DraftSource::WithoutModel, draft()] {
        session.draft = session.open_draft(&source, None).unwrap();
        session.prepare();
        assert_eq!(text(&mut session), plain);
        session.save_stats();
    }
    assert_eq!(notes.0.lock().unwrap().len(), 2, "each pair is kept by itself");

    let before = session.draft.drafters.saved_stats().unwrap();
    let mut session = load(&host);
    session.draft = session.open_draft(&draft(), None).unwrap();
    let fresh = session.draft.drafters.saved_stats();
    session.prepare();
    assert!(fresh.is_none() && session.draft.drafters.saved_stats().is_some());
    assert_eq!(text(&mut session), plain);
    assert!(
        notes.load(&Pair { models: session.draft.pair.models.clone(), ..Pair::default() }) == Some(before)
    );
}

#[test]
fn measured_row_ratios_are_the_first_estimate_for_another_draft() {
    let notes = Arc::new(Notes::default());
    let host = host(Arc::new(ThisComputer), Some(notes.clone()));
    let mut session = load(&host);
    session.draft = session.open_draft(&draft(), None).unwrap();
    session.prepare();
    for _ in 0..3 {
        text(&mut session);
        session.save_stats();
    }
    let key = session.class.key();
    let known = notes.2.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(known.iter().all(|class| *class == key) && key.contains("Q8_0"), "{key}: {known:?}");
    let stored: RowRatios =
        serde_json::from_value(serde_json::json!({ "version": 1, "ratios": vec![1.0; 17] })).unwrap();
    notes.2.lock().unwrap().insert(key, stored);
    session.draft = session.open_draft(&DraftSource::WithoutModel, None).unwrap();
    session.prepare();
    assert_eq!(session.draft.drafters.ratios().get(17), 1.0);
}

#[test]
fn unrequested_tokens_are_not_kept() {
    let notes = Arc::new(Notes::default());
    let host = host(Arc::new(ThisComputer), Some(notes.clone()));
    let mut session = load(&host);
    session.draft = session.open_draft(&DraftSource::WithoutModel, None).unwrap();
    text(&mut session);
    session.save_stats();
    assert!(notes.0.lock().unwrap().is_empty());
}

#[test]
fn models_without_room_on_the_gpu_compute_on_the_cpu_and_say_why() {
    let host = host(Arc::new(FullGpu(Mutex::new(1))), None);
    let mut session = load(&host);
    assert_eq!((session.device().gpu, session.fell_back()), (Some(Gpu::Cuda), None));
    session.draft = session.open_draft(&draft(), None).unwrap();
    assert_eq!(session.draft.device().unwrap().gpu, None);
    assert!(session.devices().starts_with("a GPU; the draft on CPU"), "{}", session.devices());
    assert_eq!(
        session.remarks().map(ToString::to_string).collect::<Vec<_>>(),
        ["The draft runs on the CPU: it does not fit in GPU memory."]
    );
    let other = load(&host);
    assert_eq!(other.device().gpu, None);
    assert_eq!(other.fell_back(), Some(&DeviceRemark::NoRoom { role: Role::Target }));
}

#[test]
fn a_target_is_reloaded_only_for_another_device() {
    let host = host(Arc::new(FullGpu(Mutex::new(1))), None);
    let mut session = load(&host);
    assert!(session.move_target(&DeviceChoice::Cuda).unwrap().is_none(), "it is there already");
    assert_eq!(*session.device_choice(), DeviceChoice::Cuda);
    assert_eq!(session.move_target(&DeviceChoice::Cpu).unwrap().unwrap().gpu, None);
    assert_eq!(*session.device_choice(), DeviceChoice::Cuda, "until it was loaded there");
}

#[test]
fn a_session_continues_after_its_gpu_failed() {
    let host = host(Arc::new(FullGpu(Mutex::new(2))), None);
    let mut session = load(&host);
    let plain = text(&mut session);
    assert_eq!(session.remedy(&Error::EmptyPrompt), None);
    assert_eq!(session.remedy(&full()), Some(Remedy::Cpu), "a context of 1024 is short enough");
    let watched = std::cell::Cell::new(0);
    let watch = |source: ModelSource| {
        watched.set(watched.get() + 1);
        source
    };
    let mut session = session.recover(Remedy::Shorter(512), watch).unwrap();
    assert_eq!((session.device().gpu, session.context()), (Some(Gpu::Cuda), 512));
    assert!(session.move_target(&DeviceChoice::Cuda).unwrap().is_some(), "its context could be whole");
    assert_eq!(text(&mut session), plain);
    let mut session = session.recover(Remedy::Cpu, watch).unwrap();
    assert_eq!((session.device().gpu, session.context(), watched.get()), (None, 1024, 2));
    assert_eq!(session.remedy(&full()), None, "it is not the GPU's");
    assert_eq!(text(&mut session), plain);
}

#[test]
fn raw_text_is_encoded_as_it_is_and_a_conversation_by_the_template() {
    let host = host(Arc::new(ThisComputer), None);
    let raw = Session::load(&host, &target(), Form::Raw, DeviceChoice::Cpu).unwrap();
    let chat = load(&host);
    assert!(matches!(raw.text(""), Err(Error::EmptyPrompt)));
    assert!(matches!(chat.text(" \n"), Err(Error::EmptyPrompt)));
    assert_eq!(raw.text("Once").unwrap(), whole_text(raw.tokenizer(), "Once", 64, &|| false).unwrap());
    let question = ChatMessage::new(Speaker::User, "Once");
    assert_eq!(chat.text("Once").unwrap(), chat.conversation(&Conversation::of(&[question], None)).unwrap());
    assert_ne!(chat.text("Once").unwrap(), raw.text("Once").unwrap());
}

#[test]
fn encoding_of_a_long_text_can_be_stopped_and_the_next_text_is_encoded_at_once() {
    let tokenizer = Arc::new(target().tokenizer().unwrap());
    let text = "Once upon a time, 1234 foxes. ".repeat(200_000);
    let begun = Instant::now();
    let never = whole_text(&tokenizer, &text, usize::MAX, &|| false).unwrap().len();
    let whole = begun.elapsed();
    assert!(never > 1_000_000);

    let begun = Instant::now();
    let stopped = whole_text(&tokenizer, &text, usize::MAX, &|| begun.elapsed() > whole / 10);
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(whole_text(&tokenizer, "Once", 64, &|| true).is_ok(), "short texts are encoded at once");
    assert!(begun.elapsed() < whole / 2, "{:?} of {whole:?}", begun.elapsed());
}

#[test]
fn a_text_that_cannot_fit_the_context_is_refused_before_it_is_encoded() {
    let text = "Once upon a time, 1234 foxes. ".repeat(100_000);
    // Encoding would be cancelled at once.
    let refused = |result: Result<Vec<TokenId>>| match result {
        Err(Error::PromptTooLong { found, limit }) => assert!(found > limit && limit < 10_000),
        other => panic!("{other:?}"),
    };
    let tokenizer = Arc::new(target().tokenizer().unwrap());
    refused(whole_text(&tokenizer, &text, 1024, &|| true));
    let host = host(Arc::new(ThisComputer), None);
    let asked = [ChatMessage::new(Speaker::User, text)];
    refused(load(&host).conversation_unless(&Conversation::of(&asked, None), &|| true));
}

#[test]
fn a_draft_that_guesses_tokens_its_target_does_not_have_is_refused_at_opening() {
    assert!(check_vocabulary(100, 100).is_ok());
    let error = check_vocabulary(101, 100).unwrap_err().to_string();
    assert!(error.contains("it guesses tokens up to number 100, and the target has 100 tokens"), "{error}");
}
