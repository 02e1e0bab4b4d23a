//! Prompts and resources of servers that behave and that do not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use foretoken_tools::{Error, ResourceText, Result, ServerState, Toolbox};

use super::{call, config, started, state};

fn values(values: &[(&str, &str)]) -> BTreeMap<String, String> {
    values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn prompt(toolbox: &Toolbox, name: &str) -> Result<String> {
    toolbox.prompt("test", name, &values(&[]), &|| false)
}

/// Reads text in UTF-8, as a reader of files does.
fn read(bytes: &[u8]) -> std::result::Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "it is neither text nor a document".to_owned())
}

fn resource(toolbox: &Toolbox, name: &str) -> Result<ResourceText> {
    toolbox.resource("test", &format!("note://{name}"), &values(&[]), &read, &|| false)
}

fn names(toolbox: &Toolbox) -> Vec<String> {
    toolbox.prompts().into_iter().map(|prompt| prompt.name).collect()
}

#[test]
fn prompts_are_listed_and_fetched_with_arguments() {
    let toolbox = started("");
    let greet = toolbox.prompts().remove(0);
    assert_eq!((greet.server.as_str(), greet.name.as_str()), ("test", "greet"));
    assert_eq!((greet.title.as_str(), greet.description.as_str()), ("Greet someone", "A greeting."));
    let arguments: Vec<_> =
        greet.arguments.iter().map(|argument| (argument.name.as_str(), argument.is_required)).collect();
    assert_eq!(arguments, [("name", true), ("tone", false)]);
    let text = |given: &[(&str, &str)]| toolbox.prompt("test", "greet", &values(given), &|| false);
    assert_eq!(text(&[("name", "fox"), ("tone", "kind")]).unwrap(), "Greet fox. Be kind.");
    assert_eq!(text(&[("name", "fox"), ("tone", "")]).unwrap(), "Greet fox.");
    assert_eq!(text(&[]), Err(Error::MissingArgument("name".to_owned())));
    let unknown = Error::UnknownArgument { prompt: "greet".to_owned(), name: "hue".to_owned() };
    assert_eq!(text(&[("name", "fox"), ("hue", "red")]), Err(unknown));
    assert_eq!(
        prompt(&toolbox, "mixed").unwrap(),
        "User: Look:\n\nUser: [image, image/png, 3 bytes]\n\nUser: A fox.\n\nAssistant: I see."
    );
    assert_eq!(prompt(&toolbox, "none"), Err(Error::NoPrompt("none".to_owned())));
    toolbox.switch_off("test");
    assert_eq!(prompt(&toolbox, "mixed"), Err(Error::NotRunning("test".to_owned())));
    assert!(toolbox.prompts().is_empty() && toolbox.resources().is_empty());
}

#[test]
fn resources_are_listed_with_templates_and_read_as_text() {
    let toolbox = started("");
    let listed = toolbox.resources();
    let fox = &listed[0];
    assert_eq!((fox.uri.as_str(), fox.title.as_str(), fox.size), ("note://fox", "The fox", Some(6)));
    let template = listed.last().unwrap();
    assert_eq!(template.variables, ["animal", "path"], "a template with other expressions is left out");
    let text = |name: &str| resource(&toolbox, name).unwrap().text;
    assert_eq!(
        resource(&toolbox, "fox").unwrap(),
        ResourceText { name: "fox.txt".to_owned(), text: "A [31mfox.".to_owned() }
    );
    assert_eq!(text("blob"), "A fox.");
    assert_eq!(text("several"), "A fox.\n\n[file, note://several, 12 bytes]");
    let unlisted = resource(&toolbox, "a/b.txt").unwrap();
    assert_eq!((unlisted.name.as_str(), unlisted.text.as_str()), ("b.txt", "note://a/b.txt"));
    let given = values(&[("animal", "red fox"), ("path", "a/b.md")]);
    let filled = toolbox.resource("test", &template.uri, &given, &read, &|| false).unwrap();
    assert_eq!((filled.name.as_str(), filled.text.as_str()), ("b.md", "note://red%20fox/a/b.md"));
    let missing = toolbox.resource("test", &template.uri, &values(&[]), &read, &|| false);
    assert_eq!(missing, Err(Error::MissingArgument("animal".to_owned())));
    let reason = |name: &str| resource(&toolbox, name).unwrap_err().to_string();
    assert_eq!(reason("picture"), "picture cannot be used as text: it is neither text nor a document.");
    assert_eq!(reason("damaged"), "damaged cannot be used as text: it is damaged or cut short.");
}

#[test]
fn a_changed_list_is_fetched_again() {
    let toolbox = started("");
    assert_eq!(prompt(&toolbox, "news").unwrap(), "changed");
    let end = Instant::now() + Duration::from_secs(10);
    while !names(&toolbox).contains(&"new".to_owned()) {
        assert!(Instant::now() < end, "the change was not noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(toolbox.resources().iter().any(|resource| resource.uri == "note://new"));
}

#[test]
fn a_prompt_or_resource_that_hangs_ends_in_time_or_when_it_is_stopped() {
    let toolbox = started("");
    let begun = Instant::now();
    let stopped = toolbox.prompt("test", "hang", &values(&[]), &|| true);
    assert_eq!(stopped, Err(Error::Stopped));
    assert!(begun.elapsed() < Duration::from_secs(2));
    let late = Error::TimedOut(Duration::from_secs(2));
    assert_eq!(prompt(&toolbox, "hang"), Err(late.clone()));
    assert_eq!(resource(&toolbox, "hang"), Err(late));
    assert_eq!(resource(&toolbox, "blob").unwrap().text, "A fox.", "others are still answered");
}

#[test]
fn a_prompt_or_resource_without_end_ends_its_server_with_a_sentence() {
    let reason = |error: Error| assert!(error.to_string().contains("more than 8 MB"), "{error}");
    reason(prompt(&started(""), "huge").unwrap_err());
    let toolbox = started("");
    reason(resource(&toolbox, "huge").unwrap_err());
    assert!(matches!(state(&toolbox), ServerState::Failed(_)));
    assert!(toolbox.resources().is_empty());
}

#[test]
fn prompts_that_are_long_empty_or_beside_noise_are_cut_refused_and_found() {
    let toolbox = started("");
    let big = prompt(&toolbox, "big").unwrap();
    assert!(big.len() < 70_000 && big.ends_with("[234464 more bytes were left out]"), "{}", big.len());
    let empty = prompt(&toolbox, "empty").unwrap_err().to_string();
    assert_eq!(empty, "empty cannot be used as text: it is empty.");
    assert_eq!(prompt(&toolbox, "binary").unwrap(), "[31mafter");
}

#[test]
fn lists_of_prompts_that_are_long_endless_or_none_leave_the_tools_alone() {
    for (mode, most, remark) in [
        ("endless", 128, "The server lists many prompts; the first 128 are used."),
        ("many", 128, "The server lists many prompts; the first 128 are used."),
        ("odd", 0, "its answer is no list of prompts"),
        ("hangs", 0, "The server's prompts could not be listed. There was no answer within 5 seconds."),
    ] {
        let toolbox = started(mode);
        assert_eq!(state(&toolbox), ServerState::Ready, "{mode}");
        assert_eq!(names(&toolbox).len(), most, "{mode}");
        let log = toolbox.servers().remove(0).log;
        assert!(log.iter().any(|line| line.contains(remark)), "{mode}: {log:?}");
        assert_eq!(call(&toolbox, "fail", serde_json::json!({})).unwrap().text, "no such file", "{mode}");
        assert_eq!(resource(&toolbox, "blob").unwrap().text, "A fox.", "{mode}");
    }
}

#[test]
fn a_list_of_prompts_without_end_ends_its_server() {
    let toolbox = Toolbox::new().unwrap();
    toolbox.switch_on("test", &config("floods"));
    toolbox.wait(&|| false);
    let end = Instant::now() + Duration::from_secs(10);
    while state(&toolbox) == ServerState::Ready {
        assert!(Instant::now() < end, "the flood was not noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(state(&toolbox), ServerState::Failed(Error::TooLarge(8 << 20)));
}
