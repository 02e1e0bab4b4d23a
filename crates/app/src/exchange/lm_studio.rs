//! A conversation file of LM Studio: messages in a row, each in one version or several. What follows a message follows
//! the version that was chosen.

use foretoken_store::Tree;
use serde::Deserialize;

use super::reply_tree::{Head, Said, Shown, tree as reply_tree};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    name: Option<String>,
    pinned: Option<bool>,
    /// In milliseconds since 1970.
    created_at: Option<f64>,
    user_last_messaged_at: Option<f64>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    versions: Vec<Version>,
    #[serde(default)]
    currently_selected: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    role: String,
    #[serde(default)]
    content: Vec<Part>,
    /// A reply's.
    #[serde(default)]
    steps: Vec<Step>,
    sender_info: Option<Sender>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sender {
    sender_name: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    content: Vec<Part>,
    style: Option<Style>,
}

#[derive(Deserialize)]
struct Style {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    /// Of other parts than text there is none.
    text: Option<String>,
}

pub fn tree(conversation: Conversation) -> Tree {
    let Conversation { name, pinned, created_at, user_last_messaged_at, messages } = conversation;
    let mut said = Vec::new();
    let mut before: Option<String> = None;
    for (number, Message { versions, currently_selected }) in messages.into_iter().enumerate() {
        let chosen = currently_selected.min(versions.len().saturating_sub(1));
        let parent = before.clone();
        let key = |version: usize| format!("{number}.{version}");
        if !versions.is_empty() {
            before = Some(key(chosen));
        }
        said.extend(versions.into_iter().enumerate().map(|(version, wrote)| Said {
            key: key(version),
            parent: parent.clone(),
            at: None,
            shown: shown(wrote),
        }));
    }
    let head = Head {
        title: name,
        created_at: created_at.map(|at| at as i64),
        updated_at: user_last_messaged_at.map(|at| at as i64),
        pinned: pinned == Some(true),
        current: before,
    };
    reply_tree(head, said)
}

fn shown(Version { role, content, steps, sender_info }: Version) -> Option<Shown> {
    let reply = match role.as_str() {
        "user" => false,
        "assistant" => true,
        _ => return None,
    };
    let text =
        |parts: Vec<Part>| parts.into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n\n");
    let mut texts = vec![text(content)];
    texts.extend(steps.into_iter().map(|Step { content, style }| match style.and_then(|style| style.kind) {
        Some(kind) if kind == "thinking" => format!("<think>\n{}\n</think>", text(content).trim()),
        _ => text(content),
    }));
    texts.retain(|text| !text.is_empty());
    Some(Shown { reply, text: texts.join("\n\n"), model: sender_info.and_then(|sender| sender.sender_name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_branches_and_the_chosen_one_is_gone_on_with() {
        let json = r#"{"name":"Foxes","pinned":false,"createdAt":1700000000000,"tokenCount":9,"systemPrompt":"Be brief.","messages":[
            {"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"Why?"},{"type":"file","fileIdentifier":"x"}]}],"currentlySelected":0},
            {"versions":[
                {"type":"multiStep","role":"assistant","senderInfo":{"senderName":"qwen"},"steps":[
                    {"type":"contentBlock","style":{"type":"thinking","ended":true},"content":[{"type":"text","text":"Hm."}]},
                    {"type":"contentBlock","content":[{"type":"text","text":"One."}]},{"type":"debugInfoBlock","debugInfo":"x"}]},
                {"type":"multiStep","role":"assistant","steps":[{"type":"contentBlock","content":[{"type":"text","text":"Two."}]}]}],"currentlySelected":0},
            {"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"And?"}]}],"currentlySelected":7}]}"#;
        let tree = tree(serde_json::from_str(json).unwrap());
        let lines: Vec<_> = tree.nodes.iter().map(|node| (node.text.as_str(), node.parent)).collect();
        assert_eq!(
            lines,
            [
                ("Why?", None),
                ("<think>\nHm.\n</think>\n\nOne.", Some(0)),
                ("And?", Some(1)),
                ("Two.", Some(0))
            ]
        );
        assert_eq!((tree.leaf, tree.created_at), (Some(2), 1_700_000_000_000));
        assert_eq!(tree.nodes[1].target.as_deref(), Some("qwen"));
    }
}
