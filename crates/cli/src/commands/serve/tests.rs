use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use foretoken_engine::session::Remedy;
use foretoken_engine::trace::{Finish, Summary};
use foretoken_model::Error as EngineError;
use foretoken_model::error::Result as EngineResult;
use foretoken_senses::picture::PictureReader;
use foretoken_server::{Event, Order, ReplySink};
use foretoken_tests::client::{Answer, get, post};
use foretoken_tests::soon;

use super::session_thread::{Failure, Replying};
use super::*;

/// Names of models in the order in which they were loaded, and with a minus, unloaded.
type Log = Arc<Mutex<Vec<String>>>;

/// A model that fails on requests by their text, and whose reload takes a moment.
struct Scripted {
    name: String,
    log: Log,
    reloads: u32,
    /// Times that the draft was loaded again.
    drafts: u32,
    draft_failed: bool,
}

impl Scripted {
    fn new(name: &str, log: &Log, reloads: u32) -> Self {
        log.lock().unwrap().push(name.to_owned());
        Self { name: name.to_owned(), log: Arc::clone(log), reloads, drafts: 0, draft_failed: false }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.log.lock().unwrap().push(format!("-{}", self.name));
    }
}

impl Replying for Scripted {
    fn write(&mut self, order: Order, sink: &ReplySink) -> EngineResult<Summary> {
        let foretoken_server::Prompt::Text(text) = order.prompt else { panic!() };
        match text.as_str() {
            "panic" => panic!("a scripted panic"),
            "gpu" => Err(EngineError::EmptyPrompt),
            text => {
                self.draft_failed = text == "draft";
                sink.send(Event::Started(9));
                let drafts = if self.drafts == 0 { "" } else { ", another draft" };
                sink.send(Event::Text(format!("{} reloads{drafts}", self.reloads)));
                Ok(Summary::of(&[], Finish::Stop, 9, 4, 20.0))
            }
        }
    }

    fn draft_failed(&self) -> bool {
        self.draft_failed
    }

    fn recover_draft(&mut self) {
        (self.drafts, self.draft_failed) = (self.drafts + 1, false);
    }

    fn remedy(&self, error: &EngineError) -> Option<Remedy> {
        matches!(error, EngineError::EmptyPrompt).then_some(Remedy::Cpu)
    }

    fn recover(self, failure: Failure) -> Result<Self> {
        thread::sleep(Duration::from_millis(300));
        match (self.reloads, failure) {
            (2, _) => panic!("a scripted panic while loading"),
            (reloads, _) => Ok(Self::new(&self.name, &self.log, reloads + 1)),
        }
    }
}

struct ScriptedLoader(Log);

impl Loader for ScriptedLoader {
    type Model = Scripted;

    fn load(&self, name: &str) -> Result<Scripted> {
        match name {
            "broken" => Err(Error::Usage("a scripted error.".to_owned())),
            name => Ok(Scripted::new(name, &self.0, 0)),
        }
    }
}

/// A server of the models "fox", which is loaded, "owl" and "broken".
struct Fixture {
    server: Server,
    at: SocketAddr,
    log: Log,
    session: JoinHandle<Result<()>>,
}

impl Fixture {
    fn start(idle: Option<Duration>) -> Self {
        let log = Log::default();
        let (jobs, received) = mpsc::channel();
        let status = Arc::new(Status::of("fox"));
        let names = ["fox", "owl", "broken"].map(str::to_owned).to_vec();
        let count: Count = Box::new(|name, _| Ok(name.len()));
        let writer = SessionThread {
            names,
            count,
            status: Arc::clone(&status),
            jobs,
            embedder: None,
            pictures: PictureReader::new(None),
            sees: false,
        };
        let address = Address { host: LOOPBACK.to_owned(), port: 0, key: String::new() };
        let server = Server::start(&address, Arc::new(writer)).unwrap();
        let (loader, loaded) = (ScriptedLoader(Arc::clone(&log)), Scripted::new("fox", &log, 0));
        let slot = Slot { loader, name: "fox".to_owned(), loaded: Some(loaded) };
        let session = thread::spawn(move || write_all(slot, &status, received, idle));
        Self { at: server.address(), server, log, session }
    }

    fn ask(&self, text: &str) -> Answer {
        post(self.at, "/v1/completions", &serde_json::json!({ "prompt": text }).to_string())
    }

    fn ask_model(&self, model: &str) -> Answer {
        let body = serde_json::json!({ "model": model, "prompt": "a" });
        post(self.at, "/v1/completions", &body.to_string())
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

#[test]
fn a_failed_session_is_loaded_again_and_health_says_so_meanwhile() {
    let fixture = Fixture::start(None);
    let health = || get(fixture.at, "/health").status;
    let text = |answer: Answer| answer.json()["choices"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!((health(), text(fixture.ask("a")).as_str()), (200, "0 reloads"));
    // A draft that failed on its GPU is loaded again after the reply, and nothing else.
    assert_eq!((fixture.ask("draft").status, health()), (200, 200));
    assert_eq!(text(fixture.ask("a")), "0 reloads, another draft");
    assert_eq!((fixture.ask("panic").status, health()), (500, 503));
    assert_eq!(fixture.ask("a").status, 503, "no request waits for a model that is gone");
    soon(|| health() == 200);
    assert_eq!(text(fixture.ask("a")), "1 reloads");
    assert_eq!(fixture.ask("gpu").status, 400);
    soon(|| health() == 200);
    assert_eq!(text(fixture.ask("a")), "2 reloads");
    // The model cannot be loaded again, so the session ends and nothing claims to be well.
    assert_eq!(fixture.ask("panic").status, 500);
    soon(|| fixture.session.is_finished());
    assert_eq!((health(), fixture.ask("a").status), (503, 503));
    assert!(matches!(fixture.session.join().unwrap(), Err(Error::Unrecovered)));
    fixture.server.finish();
}

#[test]
fn a_request_loads_the_model_that_it_names_in_place_of_the_one_before() {
    let fixture = Fixture::start(None);
    let model = |answer: Answer| answer.json()["model"].as_str().unwrap().to_owned();
    assert_eq!(model(fixture.ask_model("owl")), "owl");
    assert_eq!(fixture.log(), ["fox", "-fox", "owl"]);
    // A request without a name does not change the model.
    assert_eq!(model(fixture.ask("a")), "owl");
    let broken = fixture.ask_model("broken");
    let expected = "The model 'broken' cannot be loaded: a scripted error.";
    assert_eq!((broken.status, broken.message().as_str()), (500, expected));
    assert_eq!(model(fixture.ask("a")), "owl");
    assert_eq!(fixture.log(), ["fox", "-fox", "owl", "-owl", "owl"]);
    assert_eq!(fixture.ask_model("wolf").status, 404);
    fixture.server.finish();
}

#[test]
fn an_idle_model_is_unloaded_and_the_next_request_loads_it_again() {
    let fixture = Fixture::start(Some(Duration::from_millis(50)));
    soon(|| fixture.log() == ["fox", "-fox"]);
    assert_eq!(get(fixture.at, "/health").status, 200);
    assert_eq!(fixture.ask("a").status, 200);
    soon(|| fixture.log() == ["fox", "-fox", "fox", "-fox"]);
    fixture.server.finish();
}
