//! `chat` with its lines from a pipe.

use std::path::{Path, PathBuf};

use crate::broken_models::starter_draft;
use crate::program::{Run, finished, program};

fn chat(arguments: &[&str], lines: &[&str]) -> Run {
    finished(program(&[&["chat", "--temperature", "0"], arguments].concat()), &lines.join("\n"))
}

/// Runs `chat` with its data in `data`.
fn chat_in(data: &Path, arguments: &[&str], lines: &[&str]) -> Run {
    let mut command = program(&[&["chat", "--temperature", "0", "--max-tokens", "24"], arguments].concat());
    command.env("FORETOKEN_DATA_DIR", data);
    finished(command, &lines.join("\n"))
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A question of more than a page of the cache.
fn long_question() -> String {
    "Tell me a story about a fox who finds a lantern. ".repeat(24)
}

/// Standard error from the first occurrence of `text`.
#[track_caller]
fn from<'a>(err: &'a str, text: &str) -> &'a str {
    let at = err.find(text);
    &err[at.unwrap_or_else(|| panic!("'{text}' is not in: {err}"))..]
}

#[test]
fn a_conversation_from_a_pipe_is_answered_line_by_line() {
    let run = chat(&[], &["Hello", "", "Count from one to five.", "/quit", "Hello"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out.lines().filter(|line| !line.is_empty()).count(), 2, "{}", run.out);
    assert!(run.out.ends_with('\n') && !run.out.contains('\u{1b}'));
    assert!(run.err.contains("tiny model for a first try"));
    assert!(run.err.contains("Target starter, draft starter-draft, on CPU, "));
}

#[test]
fn the_default_target_is_smollm2_if_installed_with_an_ngram_drafter() {
    let folder = tempfile::tempdir().unwrap();
    // Any model can stand in for SmolLM2.
    std::fs::copy(starter_draft(), folder.path().join("SmolLM2-135M-Instruct-Q4_1.gguf")).unwrap();
    let mut command = program(&["chat", "--temperature", "0", "--max-tokens", "4"]);
    command.env("FORETOKEN_SMOLLM2_DIR", folder.path());
    let run = finished(command, "Hello");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("Target smollm2, draft ngram, on CPU, "), "{}", run.err);
    assert!(!run.err.contains("tiny model"));
}

#[test]
fn changing_the_draft_in_a_conversation_keeps_the_targets_cache() {
    let lines = [
        "Hello",
        "/draft ngram",
        "What is speculative decoding?",
        "/stats",
        "/draft none",
        "And what is a draft?",
        "/stats",
        "/draft starter-draft",
        "/length 7",
        "Thank you",
        "/stats",
    ];
    let run = chat(&[], &lines);
    assert_eq!(run.code, 0, "{}", run.err);
    let rest = from(&run.err, "the draft is now ngram");
    let second = from(rest, " prompt tokens, ");
    assert!(!second.starts_with(" prompt tokens, 0 of them"), "nothing was reused: {rest}");
    let rest = from(second, "the draft is now none");
    assert!(from(rest, " rounds: ").contains(" rounds: 0 tokens drafted"), "{rest}");
    let rest = from(rest, "the draft is now starter-draft");
    let last = from(from(rest, "draft length 7"), " rounds: ");
    assert!(!last.starts_with(" rounds: 0 tokens drafted"), "{last}");
}

#[test]
fn a_conversation_is_the_same_with_every_drafter() {
    let lines = ["Tell me a story about a fox.", "What was it called?"];
    let plain = chat(&["--draft", "none", "--max-tokens", "40"], &lines);
    let drafted = chat(&["--max-tokens", "40"], &lines);
    assert_eq!(plain.out, drafted.out);
    assert!(
        plain.out.starts_with("Once upon a time") && plain.out.contains("A larger model from the Library"),
        "{}",
        plain.out
    );
}

#[test]
fn a_full_context_drops_the_oldest_turns_with_every_drafter() {
    let about_a_fox =
        |filler: usize| format!("Tell me a story about a fox. {}", "It is long. ".repeat(filler));
    // The third reply fills the context, and the fourth message does not fit.
    let lines = [about_a_fox(185), about_a_fox(40), about_a_fox(0), about_a_fox(185), about_a_fox(1)];
    let lines = lines.each_ref().map(String::as_str);
    let plain = chat(&["--draft", "none"], &lines);
    assert_eq!((plain.code, plain.err.matches("ended by the model").count()), (0, 5), "{}", plain.err);
    assert_eq!(chat(&[], &lines).out, plain.out);
    let dropped = "the context is full: the model no longer sees the ";
    assert_eq!(plain.err.matches(dropped).count(), 2, "{}", plain.err);
    assert!(plain.err.contains(&format!("{dropped}2 oldest messages")), "{}", plain.err);
    assert!(!plain.err.contains("too long"), "{}", plain.err);
}

#[test]
fn a_shorter_context_ends_a_reply_earlier_with_the_same_beginning() {
    let story = ["Tell me a story about a fox."];
    let (whole, cut) = (chat(&[], &story), chat(&["--context", "60"], &story));
    assert!(cut.err.contains("stopped because the context is full"), "{}", cut.err);
    let (whole, cut) = (whole.out.trim_end(), cut.out.trim_end());
    assert!(whole.starts_with(cut) && cut.len() < whole.len(), "{cut}");
}

#[test]
fn a_new_conversation_starts_without_the_previous_messages() {
    let prompt_tokens = |lines: &[&str]| {
        let run = chat(&[], lines);
        let numbers = run.err.lines().filter_map(|line| line.split_once(" prompt tokens, "));
        numbers.map(|(tokens, _)| tokens.parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    let again = prompt_tokens(&["Hello", "/stats", "/new", "Hello", "/stats"]);
    assert_eq!((again.len(), again[0]), (2, again[1]));
    let going_on = prompt_tokens(&["Hello", "/stats", "Hello", "/stats"]);
    assert!(going_on[1] > 2 * going_on[0], "{going_on:?}");
}

#[test]
fn a_resumed_conversation_continues_as_if_it_had_not_ended_with_its_context_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let question = long_question();
    let whole = chat(&["--max-tokens", "24"], &[&question, "And then?"]);
    let first = chat_in(folder.path(), &[], &[&question]);
    assert!(!first.err.contains("resumed"), "{}", first.err);
    let second = chat_in(folder.path(), &["--resume"], &["And then?", "/stats"]);
    assert_eq!((second.code, first.out + &second.out), (0, whole.out), "{}", second.err);
    let reminder =
        "resumed 2 messages, the last after: Tell me a story about a fox who finds a lantern. Tell me a s…";
    assert!(second.err.contains(reminder), "{}", second.err);
    let restored = |run: &Run| {
        let counts = run.err.lines().find_map(|line| line.strip_suffix(" from the disk"))?;
        counts.rsplit(' ').next()?.parse::<u32>().ok()
    };
    assert!(restored(&second) > Some(256), "{}", second.err);
    // A third part continues both; a private one is left out.
    let private = chat_in(folder.path(), &["--resume", "--private"], &["Why?"]);
    assert!(private.err.contains("resumed 4 messages, the last after: And then?\n"), "{}", private.err);
    let third = chat_in(folder.path(), &["--resume"], &["/quit"]);
    assert!(third.err.contains("resumed 4 messages"), "{}", third.err);
    // Another conversation takes its place.
    chat_in(folder.path(), &[], &["Hello"]);
    let other = chat_in(folder.path(), &["--resume"], &["Hello", "/stats"]);
    assert!(other.err.contains("resumed 2 messages, the last after: Hello\n"), "{}", other.err);
    let contexts = files(&folder.path().join("contexts"));
    let pages = contexts.iter().filter(|file| file.parent().is_some_and(|parent| parent.ends_with("p")));
    assert_eq!(pages.count(), 0, "pages of the replaced conversation are left");
}

#[test]
fn a_private_conversation_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = chat_in(folder.path(), &["--private", "--cold"], &["Hello"]);
    assert_eq!((run.code, files(folder.path())), (0, Vec::new()), "{}", run.err);
    let run = chat_in(folder.path(), &["--resume"], &["Hello"]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("error: there is no earlier chat to resume"), "{}", run.err);
}

#[test]
fn a_conversation_or_context_that_is_damaged_or_another_models_is_read_again_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let question = long_question();
    let whole = chat(&["--max-tokens", "24"], &[&question, "And then?"]);
    let first = chat_in(folder.path(), &[], &[&question]);
    let saved = folder.path().join("chat.json");
    let resume = |arguments: &[&str]| {
        let before = std::fs::read(&saved).unwrap();
        let run = chat_in(folder.path(), arguments, &["And then?", "/stats"]);
        std::fs::write(&saved, before).unwrap();
        run
    };
    // Another model continues the conversation.
    let other = resume(&["--resume", "--target", "starter-draft", "--draft", "none"]);
    assert_eq!(other.code, 0, "{}", other.err);
    assert!(
        other.err.contains("resumed 2 messages") && !other.err.contains("from the disk"),
        "{}",
        other.err
    );

    chat_in(folder.path(), &[], &[&question]);
    for file in files(&folder.path().join("contexts")) {
        let mut bytes = std::fs::read(&file).unwrap();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
            std::fs::write(&file, bytes).unwrap();
        }
    }
    let run = resume(&["--resume"]);
    assert_eq!((run.code, first.out + &run.out), (0, whole.out), "{}", run.err);
    assert!(!run.err.contains("from the disk"), "{}", run.err);
    assert_eq!(run.err.matches("WARN").count(), 1, "{}", run.err);

    // A model that is gone is named; so is a conversation that cannot be read.
    let text = std::fs::read_to_string(&saved).unwrap();
    std::fs::write(&saved, text.replace("\"starter\"", "\"/nowhere/gone.gguf\"")).unwrap();
    let run = resume(&["--resume"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("/nowhere/gone.gguf"), "{}", run.err);
    std::fs::write(&saved, &text[..text.len() / 2]).unwrap();
    let run = chat_in(folder.path(), &["--resume"], &["And then?"]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("error: there is no earlier chat to resume"), "{}", run.err);
    assert!(!saved.exists(), "it was not set aside");
}

#[test]
fn contexts_that_cannot_be_written_or_are_of_another_version_cost_a_line_in_the_log() {
    let (folder, question) = (tempfile::tempdir().unwrap(), long_question());
    let whole = chat(&["--max-tokens", "24"], &[&question, "And then?"]).out;
    let warnings = |run: &Run| run.err.matches("WARN").count();
    // Nobody can write or read below a file.
    let contexts = folder.path().join("contexts");
    std::fs::write(&contexts, "").unwrap();
    let first = chat_in(folder.path(), &[], &[&question]);
    assert_eq!((first.code, warnings(&first)), (0, 1), "{}", first.err);
    let second = chat_in(folder.path(), &["--resume", "--private"], &["And then?"]);
    assert_eq!((second.code, warnings(&second), first.out + &second.out), (0, 1, whole.clone()));

    std::fs::remove_file(contexts).unwrap();
    let first = chat_in(folder.path(), &[], &[&question]);
    assert_eq!((first.code, warnings(&first)), (0, 0), "{}", first.err);
    let text = files(&folder.path().join("contexts")).into_iter().find(|file| file.ends_with("terminal"));
    let mut bytes = std::fs::read(text.as_ref().unwrap()).unwrap();
    bytes[7] = b'2';
    std::fs::write(text.unwrap(), bytes).unwrap();
    let second = chat_in(folder.path(), &["--resume"], &["And then?"]);
    assert_eq!((second.code, warnings(&second), first.out + &second.out), (0, 1, whole));
}

#[test]
fn a_failed_command_prints_an_error_and_the_conversation_continues() {
    let long = "a story ".repeat(1500);
    let lines = [
        "/draft missing",
        "/length 99",
        "/draft",
        "/think",
        "/think off",
        "/colour",
        "/stats",
        &long,
        "/help",
        "Hello",
    ];
    let run = chat(&[], &lines);
    assert_eq!((run.code, run.out.lines().count()), (0, 1), "{}", run.err);
    for sentence in [
        "no model called 'missing'",
        "the draft is unchanged",
        "expected auto or a number from 0 to 16 after /length, found '99'",
        "expected a model, mtp, ngram or none after /draft",
        "expected on or off after /think",
        "this model's chat template has no switch for thinking",
        "unknown command /colour",
        "no reply yet",
        "the prompt is too long",
        "/draft MODEL|mtp|ngram|none",
    ] {
        from(&run.err, sentence);
    }
}

#[test]
fn colours_show_which_drafts_were_accepted_without_changing_the_text() {
    let story = ["Tell me a story about a fox."];
    let mut command = program(&["chat", "--temperature", "0", "--max-tokens", "60"]);
    command.env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
    let coloured = finished(command, story[0]);
    let plain = chat(&["--max-tokens", "60"], &story);
    const ACCEPTED: &str = "\u{1b}[4m\u{1b}[32m";
    const BONUS: &str = "\u{1b}[34m";
    const RECOVERED: &str = "\u{1b}[33m";
    const REJECTED: &str = "\u{1b}[9m\u{1b}[31m";
    for style in [ACCEPTED, BONUS, RECOVERED, REJECTED] {
        assert!(coloured.out.contains(style), "{style:?}: {}", coloured.out);
    }
    // Without the rejected tokens and the colour codes, only the text is left.
    let kept = coloured.out.split("\u{1b}[0m").filter_map(|piece| piece.split(REJECTED).next());
    let kept = [ACCEPTED, BONUS, RECOVERED]
        .iter()
        .fold(kept.collect::<String>(), |text, style| text.replace(style, ""));
    assert_eq!(kept, plain.out);
}

#[test]
fn a_file_longer_than_the_context_is_searched_for_every_question() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("towns.md");
    let town = |number| format!("## Town {number}\nIt rained in town {number}. The river rose.\n");
    let keeper = "## Lighthouse\nThe keeper of the lighthouse is called Ines.\n";
    std::fs::write(&path, (0..500).map(town).collect::<String>() + keeper).unwrap();
    let file = format!("/file {}", path.display());
    let lines = [file.as_str(), "Who is the keeper of the lighthouse?", "And what about town 77?"];
    let data = folder.path().join("data");
    let run = chat_in(&data, &[], &lines);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("this file is too long for the context"), "{}", run.err);
    let kept = files(&data).into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let kept = kept.collect::<String>();
    for found in ["[1] towns.md, Lighthouse", "called Ines", "[1] towns.md, Town 77", "in town 77."] {
        assert!(kept.contains(found), "{found} is not in what --resume keeps");
    }
    assert!(!kept.contains("in town 300."));
}
