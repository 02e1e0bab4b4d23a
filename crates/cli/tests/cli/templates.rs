//! Hostile chat templates in the built program: each ends in one sentence, and the next template
//! renders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::quantized::gguf_file::Value;
use foretoken_model::Error;
use foretoken_model::{ChatMessage, ChatTemplate, Renderer, Role};
use foretoken_tests::is_nightly;

use crate::broken_models::Folder;
use crate::program::run;

/// Far more than the program's own time limit, for a busy computer.
const SOON: Duration = Duration::from_secs(60);

const MEMORY: &str = "it takes too much memory";
const TIME: &str = "it takes too long";
const TOO_MUCH: &str = "it needs more than this program allows";

/// `many`, repeated `times` times between `begin` and `end`.
fn repeated(begin: &str, many: &str, times: usize, end: &str) -> String {
    format!("{begin}{}{end}", many.repeat(times))
}

/// Templates and the reason why each fails.
fn hostile() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("terms", repeated("{{ x", " + x", 60_000, " }}"), TOO_MUCH),
        ("attributes", repeated("{{ x", ".b", 100_000, " }}"), TOO_MUCH),
        (
            "a deep list",
            "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor %}".into(),
            TOO_MUCH,
        ),
        ("folded constants", repeated("{{ ''", " + 'a' * 100000000", 20, " }}"), MEMORY),
        ("indented", "{{ 'x' | indent(1000000000000000) }}".into(), MEMORY),
        (
            "doubled",
            "{% set ns = namespace(t='aaaaaaaa') %}{% for i in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}"
                .into(),
            MEMORY,
        ),
        (
            "gigabytes",
            "{% set s = messages[0].content * 1000000 %}{% for i in range(10000) %}{{ s }}{% endfor %}".into(),
            MEMORY,
        ),
        ("quoted again and again", repeated("{{ messages", " | tojson", 40, " }}"), MEMORY),
        (
            "endless",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}".into(),
            TIME,
        ),
        (
            "few and slow steps",
            "{% set s = messages[0].content * 9000000 %}{% for i in range(99999) %}{% set t = s | upper %}\
             {% endfor %}"
                .into(),
            TIME,
        ),
        ("brackets", format!("{{{{ {}1{} }}}}", "(".repeat(8000), ")".repeat(8000)), "recursion"),
        ("lists", format!("{{{{ {}1{} }}}}", "[".repeat(8000), "]".repeat(8000)), "recursion"),
        ("blocks", repeated("", "{% if x %}", 4000, &"{% endif %}".repeat(4000)), "recursion"),
        // A panic inside the template library.
        ("nothing backwards", "{% for m in [][::-1] %}{{ m }}{% endfor %}".into(), TOO_MUCH),
        ("an endless source", "a".repeat(300_000), "it has 300000 bytes"),
    ]
}

fn messages() -> Vec<ChatMessage> {
    vec![ChatMessage::new(Role::User, "Hello")]
}

fn program() -> Arc<Renderer> {
    Renderer::program(env!("CARGO_BIN_EXE_foretoken-cli").into())
}

fn rendered(source: &str, renderer: &Arc<Renderer>) -> Result<String, String> {
    let template = ChatTemplate::new("model.gguf".into(), source.into(), None, None, renderer);
    template.and_then(|template| template.render(&messages(), true)).map_err(|error| match error {
        Error::Template { reason, .. } => reason,
        other => panic!("{other}"),
    })
}

#[test]
fn a_hostile_template_ends_in_a_sentence_and_the_next_template_renders() {
    let renderer = program();
    let good = "{{ messages[0].content }} {{ 1 + 1 }}";
    for (name, source, why) in hostile() {
        let begun = Instant::now();
        let reason = rendered(&source, &renderer).expect_err(name);
        // On a busy computer, the time limit may come before the memory limit.
        assert!(reason.contains(why) || why == MEMORY && reason == TIME, "{name}: {reason}");
        assert!(begun.elapsed() < SOON, "{name}: {:?}", begun.elapsed());
        assert_eq!(rendered(good, &renderer).as_deref(), Ok("Hello 2"), "after {name}");
    }
}

#[test]
fn a_model_with_a_hostile_template_is_rejected_in_a_sentence_and_still_listed() {
    let folder = Folder::new();
    let messages = folder.file("messages.json", r#"[{"role": "user", "content": "Hello"}]"#);
    // Outside of nightly runs one for each reason: the test above renders them all.
    let every = is_nightly();
    let tried = hostile().into_iter().filter(|(name, ..)| match *name {
        "few and slow steps" => false,
        "terms" | "doubled" | "brackets" | "an endless source" => true,
        _ => every,
    });
    for (name, source, why) in tried {
        let path = folder.model("hostile.gguf", |values| {
            values.insert("tokenizer.chat_template".into(), Value::String(source));
        });
        let generate = ["generate", "--target", &path, "--prompt", "Hello", "--max-tokens", "4"];
        let render = ["render", "--model", &path, "--messages", &messages];
        for arguments in [&generate[..], &render] {
            let run = run(arguments);
            assert_eq!((run.code, run.out.as_str()), (1, ""), "{name}: {}", run.err);
            assert_eq!(run.err.lines().count(), 1, "{name}: {}", run.err);
            assert!(run.err.starts_with("error: the chat template of "), "{name}: {}", run.err);
            assert!(run.err.contains(why) && run.err.contains("--raw"), "{name}: {}", run.err);
        }
        let inspected = run(&["inspect", &path]);
        assert_eq!(inspected.code, 0, "{name}: {}", inspected.err);
    }
}

#[test]
fn sixteen_kilobytes_of_terms_render_or_fail_cleanly() {
    let renderer = program();
    let sum = rendered(&repeated("{{ 1", "+1", 8000, " }}"), &renderer);
    assert!(sum == Ok("8001".into()) || sum == Err(TOO_MUCH.into()), "{sum:?}");
    let attributes = rendered(&repeated("{{ x", ".b", 8000, " }}"), &renderer).unwrap_err();
    assert!(attributes.contains("undefined") || attributes == TOO_MUCH, "{attributes}");
}

#[test]
fn a_renderer_that_was_killed_is_replaced() {
    let renderer = program();
    let good = "{{ messages[0].content }}";
    assert_eq!(rendered(good, &renderer).as_deref(), Ok("Hello"));
    for _ in 0..3 {
        // Ends the process in the middle of its work, as the system may do at any time.
        assert_eq!(rendered("{{ 'x' | indent(1000000000000000) }}", &renderer), Err(MEMORY.into()));
        assert_eq!(rendered(good, &renderer).as_deref(), Ok("Hello"));
    }
}

#[test]
fn conversations_reach_the_renderer_process_unchanged() {
    let source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{{ bos_token }}{{ eos_token }}\
                  {{ add_generation_prompt }}";
    let contents =
        ["\"quoted\" \\ and\nlines\r\n", "\u{0}\u{1b}\u{85}\u{2028} é🦊", "{{ messages }} {% raw %}", ""];
    let messages: Vec<ChatMessage> = contents
        .iter()
        .zip([Role::System, Role::User, Role::Assistant, Role::User])
        .map(|(content, role)| ChatMessage::new(role, *content))
        .collect();
    let of = |renderer: Arc<Renderer>| {
        let template =
            ChatTemplate::new("model.gguf".into(), source.into(), Some("<s>"), Some("</s>"), &renderer)
                .unwrap();
        [true, false].map(|open| template.render(&messages, open).unwrap())
    };
    let (there, here) = (of(program()), of(Renderer::in_this_process()));
    assert_eq!(there, here);
    assert!(there[0].contains(contents[1]) && there[0].ends_with("<s></s>True"), "{there:?}");
}

#[test]
fn a_renderer_process_ends_with_its_parent_even_while_rendering() {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut child = Command::new(env!("CARGO_BIN_EXE_foretoken-cli"))
        .arg("--serve-untrusted-input")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let source = "{% set s = 'a' * 9000000 %}{% for i in range(99999) %}{% set t = s | upper %}{% endfor %}";
    let prompt = serde_json::json!({"messages": [], "add_generation_prompt": true});
    let ask = serde_json::json!({"source": {"text": source, "bos": null, "eos": null}, "prompt": prompt});
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "template {ask}").unwrap();
    drop(stdin);
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            panic!("it goes on for nobody");
        }
        std::thread::yield_now();
    }
}

#[test]
fn help_does_not_list_the_child_process() {
    assert!(!run(&["--help"]).out.contains("untrusted"));
}
