//! Stopping a job affects the intended one, even while it is queued, and no later one.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use foretoken_app::conversations::reply::Events;
use foretoken_app::ipc::{ErrorCode, Reply, ReplyEvent, Settings};
use foretoken_engine::session::{Hardware, ThisComputer};
use foretoken_engine::trace::Finish;
use foretoken_forward::Model;
use foretoken_forward::device::{Candidate, DeviceChoice, Opened};
use foretoken_model::ModelSource;
use foretoken_model::Result;

use super::{Fixture, Survey, listen};

/// This computer, which loads nothing while the gate is shut.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn shut(&self, shut: bool) {
        *self.0.0.lock().unwrap() = shut;
        self.0.1.notify_all();
    }
}

impl Hardware for Gate {
    fn survey(&self) -> Survey {
        ThisComputer.survey()
    }

    fn open(&self, choice: &DeviceChoice) -> Opened {
        ThisComputer.open(choice)
    }

    fn candidates(&self) -> Vec<Candidate> {
        ThisComputer.candidates()
    }

    fn load(&self, source: &ModelSource, opened: &Opened) -> Result<Box<dyn Model>> {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |shut| *shut).unwrap());
        ThisComputer.load(source, opened)
    }
}

/// Sends `text` on a thread, and returns once the application has taken the job.
fn sent(fixture: &Fixture, text: &str) -> JoinHandle<Reply> {
    let (app, text) = (Arc::clone(&fixture.app), text.to_owned());
    let send = move || loop {
        // It may collide with the job below.
        match app.send(None, text.as_str(), listen().0) {
            Err(error) if error.code == ErrorCode::Busy => thread::yield_now(),
            replied => return replied.unwrap(),
        }
    };
    let sending = thread::spawn(send);
    while fixture.app.check_reply(0, Box::new(|_| ())).unwrap_err().code != ErrorCode::Busy {
        assert!(!sending.is_finished());
        thread::yield_now();
    }
    sending
}

#[test]
fn a_queued_reply_is_stopped_by_its_own_stop() {
    let gate = Gate::default();
    let fixture = Fixture::on(tempfile::tempdir().unwrap(), Box::new(gate.clone()));
    fixture.set(|settings| settings.max_tokens = 0);
    gate.shut(true);
    let settings = Settings { target: "starter-draft".into(), ..fixture.app.settings() };
    fixture.app.save_settings(settings).unwrap();
    assert!(!fixture.app.is_busy());
    let queued = sent(&fixture, "Tell me a story about a fox.");
    assert!(fixture.app.is_busy());
    fixture.app.stop();
    gate.shut(false);
    assert_eq!(queued.join().unwrap().reply.finish, Some(Finish::Cancelled));
    assert!(!fixture.app.is_busy());
}

#[test]
fn a_stop_for_an_earlier_reply_does_not_affect_the_next() {
    let fixture = Fixture::new();
    fixture.set(|_| ());
    fixture.app.stop();
    assert_ne!(fixture.send(None, "Count from one to ten.").0.reply.finish, Some(Finish::Cancelled));
    let app = Arc::clone(&fixture.app);
    let stopper: Events = Arc::new(move |event| {
        if matches!(event, ReplyEvent::Started { .. }) {
            app.stop();
        }
    });
    let stopped = fixture.app.send(None, "Count from one to ten.", stopper).unwrap();
    assert_eq!(stopped.reply.finish, Some(Finish::Cancelled));
    fixture.app.stop();
    assert_ne!(fixture.send(None, "Count from one to ten.").0.reply.finish, Some(Finish::Cancelled));
}

/// Returns events as they arrive.
fn channel() -> (Events, mpsc::Receiver<ReplyEvent>) {
    let (sender, received) = mpsc::channel();
    (Arc::new(move |event| drop(sender.send(event))), received)
}

#[test]
fn a_page_loaded_during_a_reply_receives_all_of_it_and_can_stop_it() {
    let fixture = super::scripted::fixture();
    let app = Arc::clone(&fixture.app);
    assert!(app.follow_reply(listen().0).unwrap().is_none(), "no reply is running");
    let (events, received) = channel();
    let asked = {
        let app = Arc::clone(&app);
        thread::spawn(move || app.send(None, "wait for two words", events).unwrap())
    };
    let mut before = Vec::new();
    while !matches!(before.last(), Some(ReplyEvent::Text { delta }) if delta == "words") {
        before.push(received.recv().unwrap());
    }
    // The page that asked is gone; another one is loaded.
    drop(received);
    let (events, received) = channel();
    let follower = {
        let app = Arc::clone(&app);
        thread::spawn(move || app.follow_reply(events).unwrap().unwrap())
    };
    let received_first = received.recv().unwrap();
    assert_eq!(received_first, before[0], "it begins with the reply's first event");
    assert!(matches!(received.recv().unwrap(), ReplyEvent::Prompt { .. }));
    assert_eq!(received.recv().unwrap(), ReplyEvent::Text { delta: "for two words".to_owned() });
    app.stop();
    let reply = follower.join().unwrap();
    assert_eq!(reply, asked.join().unwrap());
    assert_eq!(reply.reply.finish, Some(Finish::Cancelled));
    assert!(received.recv().is_err(), "no event is repeated");
    assert!(app.follow_reply(listen().0).unwrap().is_none());
}

#[test]
fn a_stop_while_a_long_prompt_is_encoded_keeps_the_question() {
    let model = tempfile::tempdir().unwrap();
    foretoken_tests::write_starter_folder("starter-draft", model.path());
    let config = model.path().join("config.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    json["max_position_embeddings"] = 8_000_000.into();
    std::fs::write(&config, json.to_string()).unwrap();
    let fixture = Fixture::new();
    let id = fixture.app.add_model(&model.path().display().to_string()).unwrap().id;
    fixture.set(|settings| settings.target.clone_from(&id));
    let status = fixture.status();
    assert_eq!(status.target.map(|target| target.id), Some(id));
    let text = "Once upon a time, 1234 foxes. ".repeat(60_000);
    let asked = sent(&fixture, &text);
    fixture.app.stop();
    let reply = asked.join().unwrap();
    assert_eq!((reply.reply.finish, reply.reply.text.as_str()), (Some(Finish::Cancelled), ""));
    assert_eq!(fixture.app.messages(reply.conversation.id).unwrap().len(), 2);
}
