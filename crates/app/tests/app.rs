//! Every command without a window: what the page receives and what the store keeps.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "app/attachments.rs"]
mod attachments;
#[path = "app/cancelling.rs"]
mod cancelling;
#[path = "app/contexts.rs"]
mod contexts;
#[path = "app/devices.rs"]
mod devices;
#[path = "app/exchange.rs"]
mod exchange;
#[path = "app/remote.rs"]
mod remote;
#[path = "app/scripted.rs"]
mod scripted;
#[path = "app/serving.rs"]
mod serving;
#[path = "app/setups.rs"]
mod setups;
#[path = "app/starting.rs"]
mod starting;
#[path = "app/strangers.rs"]
mod strangers;
#[path = "app/tools.rs"]
mod tools;

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use candle_core::quantized::GgmlDType;
use foretoken_app::App;
use foretoken_app::conversations::reply::Events;
use foretoken_app::engine::replier::Replier;
use foretoken_app::ipc::{
    Advice, AdviceState, ArenaEvent, ArenaRequest, ArenaRun, CheckProgress, ContextOverflow, DRAFT_MTP,
    DRAFT_NGRAM, DRAFT_NONE, DraftMerit, DraftOption, DraftRemark, EngineMessage, EnginePhase, EngineStatus,
    ErrorCode, MemoryUse, Message, ModelKind, OffReason, Reply, ReplyCheck, ReplyEvent, Role, Settings,
    Setup, Speculating, TraceStorage,
};
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::session::{Hardware, ThisComputer};
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_engine::trace::{Finish, Round};
use foretoken_forward::Model;
use foretoken_forward::device::{Candidate, DeviceChoice, DeviceLabel, Opened, Problem};
use foretoken_library::Folders;
use foretoken_model::format::Format;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::{ModelSource, ProblemKind, Renderer};
use foretoken_store::Store;
use foretoken_tests::{
    Flags, RandomFamily, RandomHead, endless_model, family, large_model, random_model, starter_target,
};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(120);

/// Result of [`Hardware::survey`].
type Survey = Vec<(DeviceChoice, Result<DeviceLabel, Problem>)>;

/// Returns why a model could not be loaded; empty without an error.
fn detail(status: &EngineStatus) -> &str {
    match &status.message {
        Some(EngineMessage::Error { detail, .. }) => detail,
        _ => "",
    }
}

struct Fixture {
    app: Arc<App>,
    statuses: Receiver<EngineStatus>,
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// Starts an application with its data in `folder`, ready to reply.
    fn at(folder: TempDir) -> Self {
        Self::on(folder, Box::new(ThisComputer))
    }

    /// Starts an application with models loaded onto `hardware`. The starter pair is chosen unless
    /// something was before: its draft is a model, and it is on every computer.
    fn on(folder: TempDir, hardware: Box<dyn Hardware>) -> Self {
        let store = Store::open(&Folders::at(folder.path()).database()).unwrap();
        if store.settings().unwrap().is_none() {
            store.save_settings(r#"{"target": "starter"}"#).unwrap();
        }
        drop(store);
        Self::of(folder, None, hardware)
    }

    /// Starts an application installed with `resources`, without choosing models.
    fn of(folder: TempDir, resources: Option<&Path>, hardware: Box<dyn Hardware>) -> Self {
        let folders = Folders::at(folder.path());
        let app = App::start_on(folders, resources, Arc::from(hardware), Renderer::in_this_process(), None)
            .unwrap();
        Self::ready(folder, app)
    }

    /// Starts an application that uses another child process for untrusted input.
    fn with_child(folder: TempDir, renderer: Arc<Renderer>) -> Self {
        let folders = Folders::at(folder.path());
        Self::ready(folder, App::start_on(folders, None, Arc::new(ThisComputer), renderer, None).unwrap())
    }

    /// Starts an application in which `replier` replaces the models.
    fn with(folder: TempDir, replier: impl Replier + 'static) -> Self {
        let (folders, renderer) = (Folders::at(folder.path()), Renderer::in_this_process());
        let app = App::start_on(folders, None, Arc::new(ThisComputer), renderer, Some(Box::new(replier)));
        Self::ready(folder, app.unwrap())
    }

    fn ready(folder: TempDir, app: App) -> Self {
        // The log is part of the output of a test that fails.
        let _ = tracing_subscriber::fmt().with_test_writer().without_time().try_init();
        let app = Arc::new(app);
        let (sender, statuses) = mpsc::channel();
        app.watch_engine(move |status| sender.send(status.clone()).is_ok());
        let fixture = Self { app, statuses, folder };
        fixture.wait_for(|status| status.phase == EnginePhase::Ready);
        fixture
    }

    fn restart(self) -> Self {
        let Self { app, folder, .. } = self;
        drop(app);
        Self::at(folder)
    }

    /// Waits for a status that has not been seen before.
    fn wait_for(&self, wanted: impl Fn(&EngineStatus) -> bool) -> EngineStatus {
        loop {
            let status = self.statuses.recv_timeout(TIMEOUT).expect("the status never arrived");
            if wanted(&status) {
                return status;
            }
        }
    }

    /// Changes the settings and waits until the engine has applied them.
    fn set(&self, change: impl FnOnce(&mut Settings)) -> EngineStatus {
        let mut settings = Settings {
            sampling: Sampling::greedy(),
            max_tokens: 40,
            // These tests do not depend on whether drafting is faster.
            speculation: Speculation::fixed(4),
            ..self.app.settings()
        };
        change(&mut settings);
        while self.statuses.try_recv().is_ok() {}
        self.app.save_settings(settings).unwrap();
        self.wait_for_jobs();
        // A change without effect on the status is not sent.
        self.statuses.try_iter().last().unwrap_or_else(|| self.status())
    }

    /// Waits until the engine has run its jobs: it refuses an arena without a prompt only when all
    /// jobs before are done.
    fn wait_for_jobs(&self) {
        self.app.run_arena(bout(""), Box::new(|_| ())).unwrap_err();
    }

    fn status(&self) -> EngineStatus {
        let (sender, status) = mpsc::channel();
        self.app.watch_engine(move |present| {
            let _ = sender.send(present.clone());
            false
        });
        status.recv().unwrap()
    }

    fn send(&self, conversation: Option<i64>, text: &str) -> (Reply, Vec<ReplyEvent>) {
        let (events, received) = listen();
        let reply = self.app.send(conversation, text, events).unwrap();
        (reply, received.lock().unwrap().drain(..).collect())
    }

    fn refused(&self, conversation: Option<i64>, text: &str) -> (ErrorCode, String) {
        let error = self.app.send(conversation, text, listen().0).unwrap_err();
        (error.code, error.message)
    }
}

/// Chooses `draft` for the current target.
fn let_draft(settings: &mut Settings, draft: &str) {
    settings.drafts.insert(settings.target.clone(), draft.to_owned());
}

/// Chooses another target, and waits until it is ready with its draft.
fn switch(fixture: &Fixture, target: &str) -> EngineStatus {
    fixture.app.save_settings(Settings { target: target.to_owned(), ..fixture.app.settings() }).unwrap();
    fixture.wait_for(|status| {
        status.phase == EnginePhase::Ready && status.target.as_ref().is_some_and(|entry| entry.id == target)
    })
}

fn option<'a>(status: &'a EngineStatus, id: &str) -> &'a DraftOption {
    status.drafts.iter().find(|option| option.id == id).unwrap()
}

fn listen() -> (Events, Arc<Mutex<Vec<ReplyEvent>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    (Arc::new(move |event| sink.lock().unwrap().push(event)), received)
}

fn rounds(events: &[ReplyEvent]) -> Vec<Round> {
    let round = |event: &ReplyEvent| match event {
        ReplyEvent::Round { round } => Some((**round).clone()),
        _ => None,
    };
    events.iter().filter_map(round).collect()
}

#[test]
fn statistics_of_drafters_are_kept_for_the_next_start() {
    let fixture = Fixture::new();
    fixture.set(|settings| let_draft(settings, DRAFT_NGRAM));
    let (first, _) = fixture.send(None, "Tell me a story about a fox.");
    let file = fixture.folder.path().join("learned.json");
    // Saved after the reply was returned.
    let begin = Instant::now();
    while !file.exists() && begin.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(10));
    }
    let fixture = fixture.restart();
    let (second, _) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!(second.reply.text, first.reply.text);
    std::fs::write(&file, "{\"something\": \"else\"}").unwrap();
    let fixture = fixture.restart();
    let (third, _) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!(third.reply.text, first.reply.text);
}

#[test]
fn a_models_speed_is_listed_after_a_reply_and_at_the_next_start() {
    let listed = |status: &EngineStatus| {
        let starter = status.targets.iter().find(|target| target.id == "starter");
        starter.and_then(|starter| starter.speed)
    };
    let fixture = Fixture::new();
    assert_eq!(listed(&fixture.set(|_| ())), None, "too small a model to measure the bandwidth");
    fixture.send(None, "Tell me a story about a fox.");
    let status = fixture.wait_for(|status| listed(status).is_some());
    let speed = listed(&status).unwrap();
    assert!(speed.measured && speed.plain > Some(0.0) && speed.drafted > Some(0.0), "{speed:?}");
    assert_eq!(status.target.unwrap().speed, Some(speed));
    let fixture = fixture.restart();
    let again = fixture.wait_for(|status| listed(status).is_some());
    assert!((listed(&again).unwrap().drafted.unwrap() / speed.drafted.unwrap() - 1.0).abs() < 1e-6);
}

#[test]
fn a_model_without_replies_has_an_estimated_speed_once_the_bandwidth_was_measured() {
    let fixture = Fixture::new();
    let offered = || fixture.app.catalogue()[0].targets[0].tokens_per_second;
    assert_eq!(offered(), None);
    let target = large_model(fixture.folder.path()).path().display().to_string();
    fixture.app.save_settings(Settings { target: target.clone(), ..fixture.app.settings() }).unwrap();
    let reckoned = |status: &EngineStatus| {
        let loaded = status.target.as_ref().filter(|entry| entry.id == target);
        loaded.and_then(|entry| entry.speed)
    };
    let status = fixture.wait_for(|status| reckoned(status).is_some());
    let speed = reckoned(&status).unwrap();
    assert!(!speed.measured && speed.drafted.is_none(), "{speed:?}");
    assert!((0.5..2000.0).contains(&speed.plain.unwrap()), "{speed:?}");
    assert!(offered().is_some_and(|speed| speed > 0.0));
    assert!(fixture.folder.path().join("speeds.json").is_file());
}

#[test]
fn a_reply_is_streamed_round_by_round_and_stored_as_it_was_streamed() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (reply, events) = fixture.send(None, "  Tell me a story about a fox.  ");
    let ReplyEvent::Started { conversation, user: Some(user), reply: begun } = &events[0] else {
        panic!("the first event was {:?}", events[0]);
    };
    assert_eq!((user.role, user.text.as_str()), (Role::User, "Tell me a story about a fox."));
    assert_eq!((conversation.id, begun.id), (reply.conversation.id, reply.reply.id));
    let streamed = rounds(&events);
    assert!(streamed.iter().enumerate().all(|(index, round)| round.index as usize == index));
    assert!(streamed.iter().any(|round| round.accepted() > 1), "nothing was drafted");
    let text: String = streamed.iter().flat_map(Round::emitted).map(|(_, text)| text).collect();
    assert_eq!(reply.reply.text, text);
    assert_eq!(reply.reply.finish, Some(Finish::Length));
    assert_eq!(reply.reply.summary.as_ref().unwrap().tokens, 40);

    let fixture = fixture.restart();
    assert_eq!(fixture.app.trace(reply.reply.id).unwrap(), streamed);
    let stored = fixture.app.messages(reply.conversation.id).unwrap();
    assert_eq!(stored, [user.clone(), reply.reply]);
    assert_eq!(fixture.app.conversations().unwrap(), [reply.conversation]);
}

#[test]
fn a_reply_has_the_same_speedup_live_stored_replayed_and_summed_over_its_pair() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (first, events) = fixture.send(None, "Tell me a story about a fox.");
    let live = events.iter().filter(|event| matches!(event, ReplyEvent::Speedup { .. })).count();
    assert!(live <= rounds(&events).len(), "{live} values");
    let alone = first.reply.speedup.unwrap();
    assert_eq!(Some(alone), first.reply.summary.as_ref().unwrap().speedup);
    let replayed = fixture.app.speedups(first.reply.id).unwrap();
    assert_eq!((replayed.len(), replayed[0]), (rounds(&events).len(), None));
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-3, "{found}, {expected}");
    near(replayed.last().unwrap().unwrap().plain_ms, alone.plain_ms);

    // The second part has the speed-up of both parts.
    let more = fixture.app.continue_reply(first.reply.id, listen().0).unwrap();
    let own = more.reply.summary.as_ref().unwrap().speedup.unwrap();
    let whole = more.reply.speedup.unwrap();
    near(whole.plain_ms, alone.plain_ms + own.plain_ms);
    near(whole.elapsed_ms, alone.elapsed_ms + own.elapsed_ms);
    assert_eq!(whole.replies, 1);
    let shown = |fixture: &Fixture| fixture.app.messages(first.conversation.id).unwrap();
    assert_eq!(shown(&fixture).last().unwrap().speedup, Some(whole));
    let replayed = fixture.app.speedups(more.reply.id).unwrap();
    near(replayed.last().unwrap().unwrap().plain_ms, whole.plain_ms);

    let pairs = fixture.app.pair_speedups().unwrap();
    assert_eq!(pairs.len(), 1, "{pairs:?}");
    assert_eq!(
        (Some(&pairs[0].target), Some(&pairs[0].draft)),
        (first.reply.target.as_ref(), first.reply.draft.as_ref())
    );
    assert_eq!(pairs[0].speedup.replies, 1);
    near(pairs[0].speedup.saved_ms, whole.saved_ms);

    // Replies stored by an older version have no speed-up, and are measured by their traces.
    let database = rusqlite::Connection::open(fixture.folder.path().join("foretoken.db")).unwrap();
    database.execute("UPDATE messages SET summary = json_remove(summary, '$.speedup')", []).unwrap();
    near(shown(&fixture).last().unwrap().speedup.unwrap().plain_ms, whole.plain_ms);
    // As after a kill.
    database.execute("UPDATE messages SET summary = NULL", []).unwrap();
    near(shown(&fixture).last().unwrap().speedup.unwrap().plain_ms, whole.plain_ms);

    // A second part that is regenerated follows the first part as well.
    let again = fixture.app.regenerate(more.reply.id, listen().0).unwrap();
    let own = again.reply.summary.as_ref().unwrap().speedup.unwrap();
    near(again.reply.speedup.unwrap().plain_ms, alone.plain_ms + own.plain_ms);
    near(shown(&fixture).last().unwrap().speedup.unwrap().plain_ms, alone.plain_ms + own.plain_ms);
}

#[test]
fn switching_the_draft_in_mid_conversation_keeps_the_target_and_its_cache() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (first, events) = fixture.send(None, "Count from one to twelve.");
    let drafted: Vec<_> = rounds(&events).into_iter().flat_map(|round| round.drafted).collect();
    assert!(drafted.iter().any(|d| d.drafter == DrafterKind::Model));
    let id = Some(first.conversation.id);

    let status = fixture.set(|settings| let_draft(settings, DRAFT_NGRAM));
    assert_eq!((status.why.state, status.draft.as_str()), (Speculating::On, DRAFT_NGRAM));
    let (second, events) = fixture.send(id, "Count from one to twelve again.");
    let drafted: Vec<_> = rounds(&events).into_iter().flat_map(|round| round.drafted).collect();
    assert!(!drafted.is_empty() && drafted.iter().all(|d| d.drafter != DrafterKind::Model));
    let before = first.reply.summary.unwrap();
    let summary = second.reply.summary.unwrap();
    assert!(summary.reused_tokens >= before.prompt_tokens + before.tokens - 1, "{summary:?}");

    let status = fixture.set(|settings| let_draft(settings, DRAFT_NONE));
    assert_eq!((status.why.state, status.why.off), (Speculating::Off, Some(OffReason::NoDraft)));
    let (third, events) = fixture.send(id, "And once more.");
    assert!(rounds(&events).iter().all(|round| round.drafted.is_empty()));
    assert!(third.reply.summary.unwrap().reused_tokens > summary.prompt_tokens);
    assert_eq!(third.reply.draft, None);
}

#[test]
fn a_stopped_reply_keeps_its_text() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 0);
    let app = Arc::clone(&fixture.app);
    let stopper: Events = Arc::new(move |event| {
        if matches!(&event, ReplyEvent::Round { round } if round.index == 3) {
            app.stop();
        }
    });
    let reply = fixture.app.send(None, "Tell me a story about a fox.", stopper).unwrap().reply;
    assert_eq!(reply.finish, Some(Finish::Cancelled));
    assert_eq!(fixture.app.trace(reply.id).unwrap().len(), 4);
    assert!(!reply.text.is_empty());
}

#[test]
fn a_fixed_seed_gives_the_same_text_with_every_draft() {
    let fixture = Fixture::new();
    let sampling = Sampling { temperature: 0.9, seed: Some(11), ..Sampling::default() };
    let mut texts = Vec::new();
    for draft in ["starter-draft", DRAFT_NGRAM, DRAFT_NONE] {
        fixture.set(|settings| {
            settings.sampling = sampling.clone();
            let_draft(settings, draft);
        });
        texts.push(fixture.send(None, "Tell me a story about a cat.").0.reply.text);
    }
    assert_eq!((&texts[0], &texts[1]), (&texts[2], &texts[2]));
}

#[test]
fn a_second_message_has_to_wait_for_the_first() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let app = Arc::clone(&fixture.app);
    let refusal = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&refusal);
    let meddler: Events = Arc::new(move |_| {
        let error = app.send(None, "Me first!", listen().0).unwrap_err();
        seen.lock().unwrap().replace(error.code);
    });
    fixture.app.send(None, "Count from one to three.", meddler).unwrap();
    assert_eq!(*refusal.lock().unwrap(), Some(ErrorCode::Busy));
    assert_eq!(fixture.app.conversations().unwrap().len(), 1);
}

#[test]
fn a_prompt_that_cannot_be_answered_is_refused_with_a_message_and_not_stored() {
    let fixture = Fixture::new();
    assert_eq!(fixture.refused(None, " \n ").0, ErrorCode::EmptyPrompt);
    let error = fixture.app.send(None, "long ".repeat(3000).as_str(), listen().0).unwrap_err();
    assert_eq!(error.code, ErrorCode::MessageTooLong);
    assert!(error.message.contains("context window holds 1024"), "{}", error.message);
    let size = error.prompt.unwrap();
    assert!(size.context == 1024 && size.tokens > 3000, "{size:?}");
    assert_eq!(fixture.refused(Some(99), "Hello").0, ErrorCode::NotFound);
    assert!(fixture.app.conversations().unwrap().is_empty());
}

#[test]
fn replies_before_and_after_dropped_turns_are_checked_with_their_own_context() {
    let fixture = Fixture::new();
    fixture.set(|settings| {
        settings.max_tokens = 24;
        settings.context_overflow = ContextOverflow::Stop;
    });
    let (first, _) = fixture.send(None, &format!("Tell me a story. {}", "It is about a fox. ".repeat(50)));
    let conversation = first.conversation.id;
    let (second, _) = fixture.send(Some(conversation), &"And a lantern. ".repeat(60));
    let third = "And a long road. ".repeat(100);
    assert_eq!(fixture.refused(Some(conversation), &third).0, ErrorCode::PromptTooLong);
    let left = fixture.app.leave_out_oldest(conversation, Some(third.as_str().into())).unwrap();
    let messages = fixture.app.messages(conversation).unwrap();
    assert!(left.seen_from.is_some_and(|from| from > messages[0].id), "{left:?}");
    let (third, _) = fixture.send(Some(conversation), &third);
    let summary = third.reply.summary.unwrap();
    assert!(summary.prompt_tokens <= 1024 - 256, "{} tokens", summary.prompt_tokens);
    for reply in [first.reply.id, second.reply.id, third.reply.id] {
        let check = fixture.app.check_reply(reply, Box::new(|_| ())).unwrap();
        assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
    }
}

/// Sends a long turn, a short one, and a prompt whose reply fills the context. Returns that reply
/// and its events.
fn fill_the_context(fixture: &Fixture) -> (Reply, Vec<ReplyEvent>) {
    let ask = |conversation, filler: usize, max_tokens| {
        fixture.app.save_settings(Settings { max_tokens, ..fixture.app.settings() }).unwrap();
        fixture.send(conversation, &format!("Tell me a story about a fox. {}", "It is long. ".repeat(filler)))
    };
    let conversation = Some(ask(None, 185, 16).0.conversation.id);
    ask(conversation, 40, 16);
    ask(conversation, 0, 0)
}

#[test]
fn a_reply_that_fills_the_context_continues_without_the_oldest_turns_and_identically_with_every_draft() {
    let fixture = Fixture::new();
    let seeded = Sampling { temperature: 0.9, seed: Some(11), ..Sampling::default() };
    for sampling in [Sampling::greedy(), seeded] {
        let mut texts = Vec::new();
        for draft in ["starter-draft", DRAFT_NGRAM, DRAFT_NONE] {
            fixture.set(|settings| {
                settings.sampling = sampling.clone();
                let_draft(settings, draft);
            });
            let (reply, events) = fill_the_context(&fixture);
            let ended: Vec<_> = events
                .iter()
                .filter_map(|event| match event {
                    ReplyEvent::PartEnded { reply } => Some(reply),
                    _ => None,
                })
                .collect();
            let messages = fixture.app.messages(reply.conversation.id).unwrap();
            let [.., question, first, last] = &messages[..] else { panic!("{messages:?}") };
            assert_eq!(ended, [first]);
            assert_eq!((first.finish, last), (Some(Finish::ContextFull), &reply.reply));
            assert_eq!((first.parent, last.parent), (Some(question.id), Some(first.id)));
            assert!(reply.conversation.seen_from.is_some_and(|start| start > messages[0].id));
            assert!(reply.conversation.seen_from.is_some_and(|start| start <= question.id));
            for part in [first, last] {
                let check = fixture.app.check_reply(part.id, Box::new(|_| ())).unwrap();
                assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
            }
            texts.push((first.text.clone(), last.text.clone()));
        }
        assert_eq!((&texts[0], &texts[1]), (&texts[2], &texts[2]));
    }
}

#[test]
fn with_stop_a_reply_ends_with_the_context_and_continues_without_the_oldest_turns_on_request() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (rolled, _) = fill_the_context(&fixture);
    fixture.set(|settings| settings.context_overflow = ContextOverflow::Stop);
    let (full, events) = fill_the_context(&fixture);
    assert!(!events.iter().any(|event| matches!(event, ReplyEvent::PartEnded { .. })));
    assert_eq!((full.reply.finish, full.conversation.seen_from), (Some(Finish::ContextFull), None));
    let more = fixture.app.continue_reply(full.reply.id, listen().0).unwrap();
    assert_eq!(more.reply.text, rolled.reply.text);
    assert!(more.conversation.seen_from.is_some());
}

#[test]
fn all_parts_of_a_reply_together_are_no_longer_than_the_longest_reply() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (whole, _) = fill_the_context(&fixture);
    let messages = fixture.app.messages(whole.conversation.id).unwrap();
    let [.., question, first, _] = &messages[..] else { panic!("{messages:?}") };
    let tokens = |message: &Message| message.summary.as_ref().unwrap().tokens;
    fixture.set(|settings| settings.max_tokens = tokens(first) + 9);
    fixture.app.see_from(whole.conversation.id, Some(messages[0].id)).unwrap();
    let again = fixture.app.regenerate(first.id, listen().0).unwrap();
    let messages = fixture.app.messages(whole.conversation.id).unwrap();
    let [.., asked, part, _] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!((asked, &part.text, tokens(part)), (question, &first.text, tokens(first)));
    assert_eq!((tokens(&again.reply), again.reply.finish), (9, Some(Finish::Length)));
}

#[test]
fn any_reply_can_be_regenerated_identically_and_checked_on_its_branch() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (first, _) = fixture.send(None, "What is speculative decoding?");
    let (thanked, _) = fixture.send(Some(first.conversation.id), "Thank you.");
    let again = fixture.app.regenerate(first.reply.id, listen().0).unwrap();
    assert_eq!(again.reply.text, first.reply.text);
    assert_eq!(fixture.app.messages(first.conversation.id).unwrap().len(), 2);
    let check = fixture.app.check_reply(thanked.reply.id, Box::new(|_| ())).unwrap();
    assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
}

#[test]
fn a_continued_reply_equals_an_uninterrupted_one_and_both_parts_are_checked() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 0);
    let (whole, _) = fixture.send(None, "What is speculative decoding?");
    fixture.set(|settings| settings.max_tokens = 12);
    let (cut, _) = fixture.send(None, "What is speculative decoding?");
    fixture.set(|settings| settings.max_tokens = 0);
    let more = fixture.app.continue_reply(cut.reply.id, listen().0).unwrap();
    assert_eq!(cut.reply.text.clone() + &more.reply.text, whole.reply.text);
    for part in [cut.reply.id, more.reply.id] {
        let check = fixture.app.check_reply(part, Box::new(|_| ())).unwrap();
        assert!(matches!(check, ReplyCheck::Text { difference: None, .. }), "{check:?}");
    }
}

#[test]
fn a_draft_with_another_vocabulary_is_listed_with_the_reason_and_never_used() {
    let fixture = Fixture::new();
    let other = random_model(fixture.folder.path(), Format::F16);
    let entry = fixture.app.add_model(other.path().to_str().unwrap()).unwrap();
    let status = fixture.set(|settings| let_draft(settings, &entry.id));
    let problem = option(&status, &entry.id).problem.clone().unwrap();
    assert_eq!(problem.kind, ProblemKind::OtherVocabulary);
    assert!(problem.reason.contains("vocabular"), "{}", problem.reason);
    assert_eq!((status.draft.as_str(), status.why.state), ("starter-draft", Speculating::On));
    let (reply, _) = fixture.send(None, "Hello!");
    assert!(reply.reply.draft.unwrap().starts_with("Starter draft"));

    fixture.app.remove_model(&entry.id).unwrap();
    assert!(other.path().exists(), "the file stays");
    assert!(fixture.app.settings().drafts.is_empty());
    fixture.wait_for(|status| status.targets.iter().all(|target| target.id != entry.id));
}

#[test]
fn a_target_selects_the_draft_last_used_with_it_or_the_best_fitting_one() {
    let fixture = Fixture::new();
    let status = fixture.set(|_| ());
    assert_eq!(status.draft, "starter-draft");
    assert_eq!(status.drafts[0].merit, Some(DraftMerit::KnownPair));

    // Neither draft of the starter fits this target, so the previous draft does not stay.
    let endless = endless_model(fixture.folder.path()).path().display().to_string();
    fixture.app.add_model(&endless).unwrap();
    let status = switch(&fixture, &endless);
    assert_eq!(status.draft, DRAFT_NGRAM);
    assert_eq!(status.why.drafter.as_deref(), Some("n-gram"));
    let problems = ["starter", "starter-draft"].map(|id| option(&status, id).problem.clone().unwrap().kind);
    assert_eq!(problems, [ProblemKind::LargerThanTarget, ProblemKind::OtherVocabulary]);
    let ids: Vec<_> = status.drafts[..2].iter().map(|option| option.id.as_str()).collect();
    assert_eq!(ids, [DRAFT_NGRAM, DRAFT_NONE], "unusable drafts are last");

    let status = fixture.set(|settings| let_draft(settings, DRAFT_NONE));
    assert_eq!((status.draft.as_str(), status.why.state), (DRAFT_NONE, Speculating::Off));
    assert_eq!(switch(&fixture, "starter").draft, "starter-draft");
    fixture.set(|settings| let_draft(settings, DRAFT_NGRAM));
    assert_eq!(switch(&fixture, &endless).draft, DRAFT_NONE);
    let fixture = fixture.restart();
    assert_eq!(fixture.status().draft, DRAFT_NONE);
    let status = switch(&fixture, "starter");
    assert_eq!(status.draft, DRAFT_NGRAM);
    assert_eq!(status.drafts[0].id, "starter-draft", "a choice changes no order");
}

#[test]
fn a_missing_draft_is_forgotten_and_replaced_at_the_next_start() {
    let fixture = Fixture::new();
    let path = fixture.folder.path().join("models").join("mine.gguf");
    std::fs::copy(foretoken_tests::repository().join("starter/starter-draft-Q8_0.gguf"), &path).unwrap();
    let mine = path.display().to_string();
    let status = fixture.set(|settings| let_draft(settings, &mine));
    assert_eq!((status.draft.as_str(), status.why.state), (mine.as_str(), Speculating::On));

    fixture.app.delete_model(&mine).unwrap();
    let status = fixture.wait_for(|status| status.drafts.iter().all(|option| option.id != mine));
    assert_eq!(status.draft, mine, "it keeps working");
    fixture.set(|settings| settings.max_tokens = 20);
    assert!(fixture.send(None, "Hello!").0.reply.draft.is_some());

    let fixture = fixture.restart();
    assert_eq!(fixture.status().draft, "starter-draft");
    assert!(fixture.app.settings().drafts.is_empty());
}

/// This computer, on which no draft can be loaded.
struct WithoutDrafts;

impl Hardware for WithoutDrafts {
    fn survey(&self) -> Survey {
        ThisComputer.survey()
    }

    fn open(&self, choice: &DeviceChoice) -> Opened {
        ThisComputer.open(choice)
    }

    fn candidates(&self) -> Vec<Candidate> {
        ThisComputer.candidates()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> foretoken_model::Result<Box<dyn Model>> {
        if source.path().to_str().unwrap().contains("draft") {
            return Err(candle_core::Error::Msg("the weights are damaged".to_owned()).into());
        }
        ThisComputer.load(source, opened)
    }
}

#[test]
fn a_draft_that_cannot_be_loaded_is_replaced_by_the_next_best_and_listed_with_the_reason() {
    let fixture = Fixture::on(tempfile::tempdir().unwrap(), Box::new(WithoutDrafts));
    let status = fixture.status();
    assert_eq!((status.draft.as_str(), status.why.state), (DRAFT_NGRAM, Speculating::On));
    assert_eq!(status.why.drafter.as_deref(), Some("n-gram"));
    let [DraftRemark::Unusable { detail }] = &status.why.remarks[..] else { panic!("{:?}", status.why) };
    assert!(detail.contains("the weights are damaged"), "{detail}");
    let problem = option(&status, "starter-draft").problem.clone().unwrap();
    assert_eq!(problem.kind, ProblemKind::CannotBeLoaded);
    assert!(problem.reason.contains("the weights are damaged"), "{}", problem.reason);
}

#[test]
fn a_target_that_cannot_be_loaded_leaves_the_old_one_in_place_with_a_message() {
    let fixture = Fixture::new();
    let path = fixture.folder.path().join("broken.gguf");
    std::fs::write(&path, b"GGUF, but not really").unwrap();
    let refused = fixture.app.add_model(path.to_str().unwrap()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadModel);
    assert!(refused.message.contains("broken.gguf"), "{}", refused.message);
    let missing = fixture.app.add_model("/nowhere/model.gguf").unwrap_err();
    // Windows writes the path with backslashes.
    assert!(missing.message.replace('\\', "/").contains("/nowhere/model.gguf"), "{}", missing.message);

    let status = fixture.set(|settings| settings.target = path.to_str().unwrap().into());
    assert_eq!(status.phase, EnginePhase::Ready);
    assert!(detail(&status).contains("broken.gguf"));
    assert_eq!((status.target.unwrap().id.as_str(), status.draft.as_str()), ("starter", "starter-draft"));
    fixture.send(None, "Hello!");
}

#[test]
fn a_model_without_a_chat_template_is_listed_with_the_reason() {
    let fixture = Fixture::new();
    let bare = random_model(fixture.folder.path(), Format::Q8_0);
    let entry = fixture.app.add_model(bare.path().to_str().unwrap()).unwrap();
    assert_eq!(entry.kind, ModelKind::Added);
    let problem = entry.problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::NoTemplate);
    assert!(problem.reason.contains("has no chat template"), "{}", problem.reason);
}

#[test]
fn a_model_deleted_while_loaded_keeps_working_and_a_bundled_one_replaces_it_at_the_next_start() {
    let fixture = Fixture::new();
    let path = fixture.folder.path().join("models").join("mine.gguf");
    std::fs::copy(foretoken_tests::repository().join("starter/starter-target-Q8_0.gguf"), &path).unwrap();
    let target = path.display().to_string();
    let settings = Settings { target: target.clone(), max_tokens: 20, ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    let loaded = |status: &EngineStatus| status.target.as_ref().is_some_and(|entry| entry.id == target);
    let mine = fixture.wait_for(loaded).target.unwrap();
    assert_eq!((mine.kind, mine.name.as_str()), (ModelKind::Local, "mine.gguf"));
    assert!(mine.size_bytes > 8_000_000 && mine.memory_bytes > mine.size_bytes && mine.fits, "{mine:?}");

    fixture.app.delete_model(&mine.id).unwrap();
    assert!(!path.exists());
    let status = fixture.wait_for(|status| status.targets.iter().all(|target| target.id != mine.id));
    assert_eq!(status.target.unwrap().id, mine.id);
    fixture.send(None, "Hello!");

    let fixture = fixture.restart();
    let status = fixture.status();
    assert!(detail(&status).contains("mine.gguf"), "explains the bundled model");
    assert_eq!(status.target.unwrap().kind, ModelKind::Bundled);
    assert_eq!(fixture.app.settings().target, mine.id, "it may be on a disk that returns later");
    let refused = fixture.app.delete_model("starter").unwrap_err();
    assert!(refused.message.contains("cannot be removed"), "{}", refused.message);
}

#[test]
fn a_first_launch_uses_smollm2_or_the_starter_if_that_is_broken() {
    let resources = tempfile::tempdir().unwrap();
    let path = resources.path().join("smollm2/SmolLM2-135M-Instruct-Q4_1.gguf");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Any model will do: this one has the vocabulary of the starter's draft, which therefore drafts
    // for it.
    std::fs::copy(foretoken_tests::repository().join("starter/starter-target-Q8_0.gguf"), &path).unwrap();
    let start = || Fixture::of(tempfile::tempdir().unwrap(), Some(resources.path()), Box::new(ThisComputer));
    let fixture = start();
    let status = fixture.status();
    let target = status.target.unwrap();
    assert_eq!(
        (target.id.as_str(), target.kind, status.draft.as_str()),
        ("smollm2", ModelKind::Bundled, "starter-draft")
    );
    assert_eq!((status.why.state, status.message), (Speculating::On, None));
    fixture.send(None, "Hello!");
    assert!(fixture.app.delete_model("smollm2").unwrap_err().message.contains("cannot be removed"));

    std::fs::write(&path, b"GGUF, but not really").unwrap();
    let status = start().status();
    assert!(detail(&status).contains("SmolLM2-135M-Instruct-Q4_1.gguf"), "explains the starter");
    assert_eq!(status.target.unwrap().id, "starter");
}

#[test]
fn the_catalogue_lists_the_needs_of_each_pair() {
    let fixture = Fixture::new();
    let families = fixture.app.catalogue();
    assert_eq!(families.len(), foretoken_library::catalogue().len());
    for (family, known) in families.iter().zip(foretoken_library::catalogue()) {
        let beside = family.drafts.iter().map(|draft| draft.memory_bytes).max().unwrap_or(0);
        for (target, known) in family.targets.iter().zip(known.targets) {
            assert_eq!(target.id, format!("{}:{}", target.repository, target.file.as_deref().unwrap()));
            assert!(target.memory_bytes > known.loaded_bytes() + beside, "{target:?}");
        }
    }
}

#[test]
fn conversations_can_be_renamed_pinned_searched_deleted_and_restored() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (reply, _) = fixture.send(None, "Repeat after me: marmalade.");
    let id = reply.conversation.id;
    assert_eq!(fixture.app.rename_conversation(id, " Breakfast ").unwrap().title, "Breakfast");
    assert!(fixture.app.pin_conversation(id, true).unwrap().pinned);
    let hits = fixture.app.search_messages("marmal").unwrap();
    assert!(hits.iter().any(|hit| hit.excerpt.contains("\u{2}marmalade\u{3}")), "{hits:?}");
    fixture.app.delete_conversation(id).unwrap();
    assert!(fixture.app.conversations().unwrap().is_empty());
    assert!(fixture.app.search_messages("marmalade").unwrap().is_empty());
    assert_eq!(fixture.app.restore_conversation(id).unwrap().title, "Breakfast");
    assert_eq!(fixture.app.messages(id).unwrap().len(), 2);
}

#[test]
fn cancelling_a_loading_draft_keeps_the_target_without_a_draft() {
    let fixture = Fixture::new();
    let [target, draft] = ["target", "draft"].map(|name| {
        let folder = fixture.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        large_model(&folder).path().display().to_string()
    });
    fixture.app.add_model(&target).unwrap();
    fixture.app.add_model(&draft).unwrap();
    fixture.app.save_settings(Settings { target: target.clone(), ..fixture.app.settings() }).unwrap();
    fixture.wait_for(|status| {
        status.phase == EnginePhase::Ready && status.target.as_ref().is_some_and(|entry| entry.id == target)
    });
    let drafts = [(target.clone(), draft)].into();
    fixture.app.save_settings(Settings { drafts, ..fixture.app.settings() }).unwrap();
    fixture.wait_for(|status| status.loading.as_ref().is_some_and(|loading| loading.draft));
    fixture.app.cancel_loading().unwrap();
    let status = fixture.wait_for(|status| status.loading.is_none() && status.draft == DRAFT_NONE);
    assert_eq!(status.target.unwrap().id, target);
    assert_eq!(fixture.app.settings().target, target);
}

/// Runs trials of the drafts on a conversation; returns all reports.
fn advice(fixture: &Fixture, conversation: Option<i64>) -> Vec<Advice> {
    let (sender, received) = mpsc::channel();
    let on_advice = Box::new(move |advice| sender.send(advice).unwrap());
    fixture.app.advise(conversation, on_advice).unwrap();
    received.try_iter().collect()
}

#[test]
fn every_draft_is_tried_on_the_conversation_and_on_a_sample_without_one() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
    for conversation in [None, Some(reply.conversation.id)] {
        let advice = advice(&fixture, conversation);
        let of = |id: &str| advice.iter().filter(|advice| advice.id == id).collect::<Vec<_>>();
        for id in ["starter-draft", DRAFT_NGRAM] {
            let states: Vec<_> = of(id).iter().map(|advice| advice.state).collect();
            assert_eq!(states, [AdviceState::Probing, AdviceState::Done], "{id}");
            let probe = of(id)[1].probe.clone().unwrap();
            assert!((0.0..=1.0).contains(&probe.acceptance) && probe.tokens > 40, "{probe:?}");
            assert!(probe.plain_tokens_per_second > 0.0 && probe.speedup >= 1.0, "{probe:?}");
        }
        assert!(of("starter-draft")[1].probe.clone().unwrap().acceptance > 0.2);
        assert!(of(DRAFT_NONE).is_empty());
    }
    let merit = option(&fixture.status(), "starter-draft").merit.unwrap();
    assert!(matches!(merit, DraftMerit::Tried { .. } | DraftMerit::NoFaster), "{merit:?}");
    let (again, _) = fixture.send(Some(reply.conversation.id), "And then?");
    assert_ne!(again.reply.text, "");
}

/// Writes a draft head for the starter, with random weights.
fn head_for_the_starter(folder: &Path) -> String {
    let mut head = RandomHead::new(starter_target().config().unwrap(), Flags::default());
    head.entering = vec![2, 4, 6];
    head.gguf(folder, GgmlDType::Q8_0).unwrap().path().display().to_string()
}

#[test]
fn a_head_is_listed_as_made_for_its_target_can_be_tried_and_drafts() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    std::fs::create_dir(&models).unwrap();
    let head = head_for_the_starter(&models);
    let fixture = Fixture::at(folder);
    fixture.set(|_| ());
    assert_eq!(option(&fixture.status(), &head).merit, Some(DraftMerit::MadeForTarget));
    let advice = advice(&fixture, None);
    let of_head: Vec<_> =
        advice.iter().filter(|advice| advice.id == head).map(|advice| advice.state).collect();
    assert_eq!(of_head, [AdviceState::Probing, AdviceState::Done]);
    fixture.set(|settings| let_draft(settings, &head));
    assert_eq!(fixture.status().draft, head);
    let rounds = rounds(&fixture.send(None, "Tell me a story about a fox.").1);
    assert!(rounds.iter().flat_map(|round| &round.drafted).any(|one| one.drafter == DrafterKind::Head));
    let as_target = fixture.status().targets.into_iter().find(|entry| entry.id == head).unwrap();
    assert!(as_target.problem.unwrap().reason.contains("draft head"));
}

#[test]
fn a_model_with_an_mtp_block_uses_it_first_and_one_without_uses_a_file_with_the_block() {
    let folder = tempfile::tempdir().unwrap();
    let models = folder.path().join("models");
    std::fs::create_dir(&models).unwrap();
    let turns = "{% for message in messages %}{{ message.content }}\n{% endfor %}";
    let whole = family("qwen35").with_template(turns).with_mtp();
    let mut stripped = RandomFamily { label: "stripped", ..whole.clone() };
    stripped.tensors.retain(|name, _| !name.starts_with("mtp."));
    let target = whole.gguf(&models, GgmlDType::Q8_0).path().display().to_string();
    let without = stripped.gguf(&models, GgmlDType::Q8_0).path().display().to_string();
    let beside = whole.mtp_gguf(&models, GgmlDType::Q8_0).display().to_string();
    let fixture = Fixture::at(folder);
    fixture.set(|_| ());

    let status = switch(&fixture, &target);
    let own = &status.drafts[0];
    assert_eq!((status.draft.as_str(), own.id.as_str(), own.label.as_str()), (DRAFT_MTP, DRAFT_MTP, "MTP"));
    assert_eq!((own.merit, status.why.state), (Some(DraftMerit::MadeForTarget), Speculating::On));
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert_eq!(reply.reply.draft.as_deref(), Some("MTP"));
    let drafted = |events: &[ReplyEvent]| {
        let drafted = rounds(events).into_iter().flat_map(|round| round.drafted);
        drafted.filter(|one| one.drafter == DrafterKind::Head).count()
    };
    assert!(drafted(&events) > 0);

    let status = switch(&fixture, &without);
    let problem = option(&status, DRAFT_MTP).problem.clone().unwrap();
    assert_eq!((status.draft.as_str(), problem.kind), (beside.as_str(), ProblemKind::NotInFile));
    assert!(drafted(&fixture.send(None, "Tell me a story about a fox.").1) > 0);
    let as_target = status.targets.into_iter().find(|entry| entry.id == beside).unwrap();
    assert!(as_target.problem.unwrap().reason.contains("draft head"));
}

#[test]
fn trials_end_when_they_are_cancelled() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let (sender, received) = mpsc::channel();
    let app = Arc::clone(&fixture.app);
    let trials = std::thread::spawn(move || app.advise(None, Box::new(move |a| sender.send(a).unwrap())));
    let first = received.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(first.state, AdviceState::Probing);
    fixture.app.stop_advice();
    trials.join().unwrap().unwrap();
    assert_eq!(received.try_iter().last().unwrap().state, AdviceState::Waiting, "some drafts were not tried");
    assert_ne!(fixture.send(None, "Hello").0.reply.text, "");
}

#[test]
fn loading_shows_its_progress_and_can_be_cancelled() {
    let fixture = Fixture::new();
    let target = large_model(fixture.folder.path()).path().display().to_string();
    fixture.app.add_model(&target).unwrap();
    while fixture.statuses.try_recv().is_ok() {}
    fixture.app.save_settings(Settings { target, ..fixture.app.settings() }).unwrap();
    let loading = fixture.wait_for(|status| status.loading.is_some()).loading.unwrap();
    assert!(loading.percent < 100, "{loading:?}");
    fixture.app.cancel_loading().unwrap();
    let status = fixture.wait_for(|status| status.loading.is_none() && status.phase == EnginePhase::Ready);
    assert_eq!(status.target.unwrap().id, "starter", "the old target stayed");
    assert_eq!(fixture.app.settings().target, "starter");
    fixture.set(|_| ());
    assert_ne!(fixture.send(None, "Hello").0.reply.text, "");
}

#[test]
fn a_check_confirms_a_reply_and_finds_a_changed_one() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.system_prompt = "Be brief.".into());
    let (first, _) = fixture.send(None, "Tell me a story about a fox.");
    let (second, _) = fixture.send(Some(first.conversation.id), "Count from one to twelve.");
    // Later settings do not affect it.
    fixture.set(|settings| let_draft(settings, DRAFT_NONE));
    for reply in [&first.reply, &second.reply] {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&received);
        let on_progress = Box::new(move |progress| sink.lock().unwrap().push(progress));
        let check = fixture.app.check_reply(reply.id, on_progress).unwrap();
        let tokens = reply.summary.as_ref().unwrap().tokens;
        assert_eq!(check, ReplyCheck::Text { tokens, seed: None, difference: None });
        assert_eq!(received.lock().unwrap().last(), Some(&CheckProgress { done: tokens, total: tokens }));
    }

    // Changes one stored token, as if a draft had altered the reply.
    let mut rounds = fixture.app.trace(second.reply.id).unwrap();
    let at = rounds.iter().position(|round| round.extra.is_some()).unwrap();
    let position: usize = rounds[..at].iter().map(|round| round.emitted().count()).sum();
    let position = position + rounds[at].accepted();
    let extra = rounds[at].extra.as_mut().unwrap();
    let right = extra.token;
    extra.token = if right == 300 { 301 } else { 300 };
    let wrong = extra.token;
    store_rounds(&fixture, second.reply.id, &rounds);
    let ReplyCheck::Text { difference: Some(found), .. } =
        fixture.app.check_reply(second.reply.id, Box::new(|_| ())).unwrap()
    else {
        panic!("a changed reply passed as the target's own");
    };
    assert_eq!(found.position as usize, position);
    let (with, without) = (found.with.unwrap(), found.without.unwrap());
    assert_eq!((with.token, without.token), (wrong, right));
    assert!(with.logit < without.logit && found.gap == Some(without.logit - with.logit) && !found.near_tie);
}

#[test]
fn a_reply_of_the_reproducible_mode_is_checked_with_its_random_seed() {
    let fixture = Fixture::new();
    let sampling = Sampling { temperature: 0.9, mode: Mode::Reproducible, ..Sampling::default() };
    fixture.set(|settings| settings.sampling = sampling.clone());
    let (reply, _) = fixture.send(None, "Tell me a story about a cat.");
    let check = fixture.app.check_reply(reply.reply.id, Box::new(|_| ())).unwrap();
    let ReplyCheck::Text { seed: Some(seed), difference: None, .. } = check else { panic!("{check:?}") };
    assert_eq!(reply.reply.summary.unwrap().settings.unwrap().sampling.seed, Some(seed));
}

#[test]
fn a_reply_of_the_fastest_mode_was_judged_by_the_targets_own_probabilities() {
    let fixture = Fixture::new();
    for tree in [Tree::Off, Tree::Width(3)] {
        fixture.set(|settings| {
            settings.sampling = Sampling { temperature: 0.9, repetition_penalty: 1.1, ..Sampling::default() };
            settings.speculation.tree = tree;
        });
        let (reply, events) = fixture.send(None, "Tell me a story about a cat.");
        let judged: usize = rounds(&events).iter().map(Round::judged).sum();
        let check = fixture.app.check_reply(reply.reply.id, Box::new(|_| ())).unwrap();
        let ReplyCheck::Distribution { judged: compared, different, largest_difference } = check else {
            panic!("{check:?}");
        };
        assert_eq!((compared as usize, different), (judged, 0), "{tree:?}");
        assert!(judged > 10 && largest_difference < 1e-6, "{tree:?}: {largest_difference}");

        let mut rounds = fixture.app.trace(reply.reply.id).unwrap();
        let accepted =
            rounds.iter_mut().flat_map(|round| &mut round.drafted).find(|d| d.target_probability.is_some());
        *accepted.unwrap().target_probability.as_mut().unwrap() += 0.25;
        store_rounds(&fixture, reply.reply.id, &rounds);
        let check = fixture.app.check_reply(reply.reply.id, Box::new(|_| ())).unwrap();
        let ReplyCheck::Distribution { different: 1, largest_difference, .. } = check else {
            panic!("{check:?}")
        };
        assert!((largest_difference - 0.25).abs() < 1e-5);
    }
}

#[test]
fn a_reply_that_cannot_be_checked_is_refused_with_a_message() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.keep_traces = false);
    let (reply, events) = fixture.send(None, "Tell me a story about a fox.");
    assert!(!rounds(&events).is_empty() && fixture.app.trace(reply.reply.id).unwrap().is_empty());
    let stored = fixture.app.messages(reply.conversation.id).unwrap();
    assert_eq!(stored[1].text, reply.reply.text);
    let refusal = |id: i64| fixture.app.check_reply(id, Box::new(|_| ())).unwrap_err();
    assert!(refusal(reply.reply.id).message.contains("trace"), "{}", refusal(reply.reply.id).message);
    assert_eq!(refusal(stored[0].id).code, ErrorCode::NotFound);
    assert_eq!(refusal(999).code, ErrorCode::NotFound);

    fixture.set(|settings| settings.keep_traces = true);
    let (reply, _) = fixture.send(None, "Tell me a story about a fox.");
    fixture.set(|settings| settings.target = "starter-draft".into());
    let error = refusal(reply.reply.id);
    assert!(error.code == ErrorCode::BadModel && error.message.contains("Starter"), "{}", error.message);
}

#[test]
fn traces_are_small_and_can_be_deleted() {
    let fixture = Fixture::new();
    fixture.set(|settings| settings.max_tokens = 300);
    let (reply, events) = fixture.send(None, "Tell me a long story about a fox and a lighthouse.");
    let drafted: usize = rounds(&events).iter().map(|round| round.drafted.len()).sum();
    let storage = fixture.app.trace_storage().unwrap();
    assert_eq!(storage.replies, 1);
    assert!(storage.bytes < 60 * drafted as u64, "{} bytes for {drafted} drafted tokens", storage.bytes);
    assert_eq!(fixture.app.delete_traces(Some(30)).unwrap().replies, 1, "the reply is newer");
    assert_eq!(fixture.app.delete_traces(None).unwrap(), TraceStorage { bytes: 0, replies: 0 });
    assert!(fixture.app.trace(reply.reply.id).unwrap().is_empty());
    assert_eq!(fixture.app.messages(reply.conversation.id).unwrap()[1].text, reply.reply.text);
}

fn bout(prompt: &str) -> ArenaRequest {
    let setup =
        |draft: &str, speculation| Setup { draft: draft.to_owned(), speculation, mode: Mode::Reproducible };
    ArenaRequest {
        prompt: prompt.to_owned(),
        setups: [setup("starter-draft", Speculation::fixed(3)), setup(DRAFT_NONE, Speculation::default())],
        pairs: 3,
        max_tokens: 32,
    }
}

#[test]
fn two_set_ups_take_turns_to_write_the_same_text_and_the_arena_is_stored() {
    let fixture = Fixture::new();
    fixture.set(|settings| let_draft(settings, DRAFT_NGRAM));
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    let on_event = Box::new(move |event| sink.lock().unwrap().push(event));
    let arena = fixture.app.run_arena(bout("Tell me a story about a fox."), on_event).unwrap();
    let order: Vec<u32> = arena.runs.iter().map(|run| run.setup).collect();
    assert_eq!(order, [0, 1, 1, 0, 0, 1]);
    assert_eq!(arena.first_difference, None);
    assert!(arena.texts[0] == arena.texts[1] && !arena.texts[0].is_empty());
    let drafts: Vec<_> = arena.setups.iter().map(|setup| setup.draft.as_str()).collect();
    assert!(drafts[0].starts_with("Starter draft") && drafts[1] == "no draft", "{drafts:?}");
    assert!(arena.runs.iter().all(|run| run.tokens == 32 && run.curve.last().unwrap().1 == 32));
    assert!(arena.runs.iter().all(|run| run.acceptance_rate.is_some() == (run.setup == 0)));
    assert!(arena.verdict.pairs == 3 && arena.verdict.lowest <= arena.verdict.highest, "{:?}", arena.verdict);
    let finished: Vec<ArenaRun> = received
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            ArenaEvent::Finished { run } => Some(run.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(finished, arena.runs);

    // The choices for conversations are unchanged.
    let status = fixture.status();
    assert_eq!((status.draft.as_str(), status.why.state), (DRAFT_NGRAM, Speculating::On));
    let fixture = fixture.restart();
    let id = arena.id;
    assert_eq!(fixture.app.arenas().unwrap(), [arena]);
    fixture.app.delete_arena(id).unwrap();
    assert!(fixture.app.arenas().unwrap().is_empty());
    assert_eq!(fixture.app.delete_arena(id).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn an_invalid_or_stopped_arena_stores_nothing() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    let refusal = |change: fn(&mut ArenaRequest)| {
        let mut request = bout("Tell me a story.");
        change(&mut request);
        fixture.app.run_arena(request, Box::new(|_| ())).unwrap_err()
    };
    assert_eq!(refusal(|request| request.prompt = "  ".into()).code, ErrorCode::EmptyPrompt);
    assert!(refusal(|request| request.pairs = 0).message.contains("pairs"));
    assert!(refusal(|request| request.max_tokens = 4_000).message.contains("tokens"));
    assert!(
        refusal(|request| request.setups[1].speculation = Speculation::fixed(99))
            .message
            .contains("draft length")
    );
    let gone = refusal(|request| request.setups[0].draft = "/nowhere/draft.gguf".into());
    assert!(gone.message.contains("draft.gguf"), "{}", gone.message);

    let app = Arc::clone(&fixture.app);
    let stopper = Box::new(move |event| {
        if matches!(event, ArenaEvent::Finished { .. }) {
            app.stop();
        }
    });
    let error = fixture.app.run_arena(bout("Tell me a story."), stopper).unwrap_err();
    assert_eq!(error.code, ErrorCode::Cancelled);
    assert!(fixture.app.arenas().unwrap().is_empty());
    // The next reply is drafted as usual.
    let (_, events) = fixture.send(None, "Count from one to twelve.");
    assert!(rounds(&events).iter().any(|round| round.accepted() > 0));
}

#[test]
fn the_status_shows_the_memory_of_the_models() {
    let fixture = Fixture::new();
    let MemoryUse { target_bytes, draft_bytes, process_bytes, free_bytes, .. } = fixture.set(|_| ()).memory;
    assert!(target_bytes > draft_bytes && draft_bytes > 0);
    assert!(process_bytes > 1_000_000 && free_bytes > 1_000_000);
    assert_eq!(fixture.set(|settings| let_draft(settings, DRAFT_NONE)).memory.draft_bytes, 0);
}

/// Replaces the stored rounds of a reply.
fn store_rounds(fixture: &Fixture, reply: i64, rounds: &[Round]) {
    let mut store = Store::open(&fixture.folder.path().join("foretoken.db")).unwrap();
    let text = store.message(reply).unwrap().text;
    let created_at = store.message(reply).unwrap().created_at;
    store.delete_traces(Some(created_at + 1)).unwrap();
    let rounds: Vec<(u32, String)> =
        rounds.iter().map(|round| (round.index, serde_json::to_string(round).unwrap())).collect();
    store.append_rounds(reply, &text, &rounds).unwrap();
}
