//! The application with the window's own program as what renders its chat templates.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use foretoken_app::App;
use foretoken_app::ipc::{EngineMessage, EnginePhase, EngineStatus, ErrorCode, Settings};
use foretoken_engine::session::ThisComputer;
use foretoken_library::Folders;
use foretoken_model::Renderer;
use foretoken_tests::write_starter_folder;

const PATIENCE: Duration = Duration::from_secs(120);

/// Does what hurts where a person asks for it.
const OBEDIENT: &str = "\
{%- set last = messages[-1].content -%}
{%- if last == 'deep' -%}
{%- set ns = namespace(x=[]) -%}{%- for i in range(99999) -%}{%- set ns.x = [ns.x] -%}{%- endfor -%}
{%- elif last == 'large' -%}
{{ last | indent(1000000000000000) }}
{%- elif last == 'long' -%}
{%- set s = last * 3000000 -%}{%- for i in range(99999) -%}{%- set t = s | upper -%}{%- endfor -%}
{%- endif -%}
{%- for m in messages -%}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{%- endfor -%}
{{ '<|im_start|>assistant\n' }}";

/// A sum of more terms than any stack holds.
fn terms() -> String {
    format!("{{{{ x{} }}}}", " + x".repeat(60_000))
}

fn model(folder: &Path, template: &str) -> String {
    write_starter_folder("starter-draft", folder);
    std::fs::write(folder.join("chat_template.jinja"), template).unwrap();
    folder.display().to_string()
}

#[test]
fn a_session_goes_on_after_its_models_template_hurt_and_one_that_cannot_be_compiled_is_listed_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    let renderer = Renderer::program(env!("CARGO_BIN_EXE_foretoken").into());
    let folders = Folders::at(folder.path());
    let app = Arc::new(App::start_on(folders, None, Arc::new(ThisComputer), renderer, None).unwrap());
    let (sender, statuses) = mpsc::channel();
    app.watch_engine(move |status| sender.send(status.clone()).is_ok());
    let wait_for = |wanted: &dyn Fn(&EngineStatus) -> bool| loop {
        let status = statuses.recv_timeout(PATIENCE).expect("the status never came");
        if wanted(&status) {
            return status;
        }
    };
    let choose = |id: &str| {
        let settings = Settings { target: id.to_owned(), max_tokens: 4, ..app.settings() };
        app.save_settings(settings).unwrap();
    };
    wait_for(&|status| status.phase == EnginePhase::Ready);

    let obedient = model(&folder.path().join("obedient"), OBEDIENT);
    assert_eq!(app.add_model(&obedient).unwrap().problem, None);
    choose(&obedient);
    let loaded = |status: &EngineStatus| {
        status.phase == EnginePhase::Ready
            && status.target.as_ref().is_some_and(|target| target.id == obedient)
    };
    wait_for(&loaded);
    let send = |text: &str| app.send(None, text, Arc::new(|_| ()));
    send("Hello").unwrap();
    for (text, why) in [
        ("deep", "it needs more than this program allows"),
        ("large", "it takes too much memory"),
        ("long", "it takes too long"),
    ] {
        let error = send(text).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadModel);
        assert!(error.message.contains(why), "{}", error.message);
        send("Hello").unwrap();
    }

    let hostile = model(&folder.path().join("hostile"), &terms());
    assert_eq!(app.add_model(&hostile).unwrap().problem, None, "it was not compiled");
    choose(&hostile);
    let refused = |status: &EngineStatus| {
        status.phase == EnginePhase::Ready
            && matches!(&status.message, Some(EngineMessage::Error { detail, .. }) if detail.contains("template"))
    };
    let status = wait_for(&refused);
    assert_eq!(status.target.unwrap().id, obedient, "the one before stays");
    send("Hello").unwrap();
}
