//! Files of conversations, our own and other programs': each is imported completely or not at all.

use std::fs;

use super::ipc::Running;
use super::{Memory, Target, corpus, folder};

const WORDS: &[&str] = &[
    "foretoken-conversation",
    "version",
    "messages",
    "parent",
    "role",
    "user",
    "assistant",
    "attached",
    "rounds",
    "setup",
    "seen_from",
    "shown",
    "created_at",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "null",
    "mapping",
    "current_node",
    "create_time",
    "author",
    "parts",
    "content_type",
    "versions",
    "currentlySelected",
    "singleStep",
    "multiStep",
    "history",
    "currentId",
    "parentId",
    "PK\u{3}\u{4}",
    "PK\u{5}\u{6}",
    "conversations.json",
];

/// Imports after which the application is restarted.
const IMPORTS: u32 = 500;

pub fn target() -> Target {
    let mut running = Running::start();
    let folder = folder();
    let mut imports = 0;
    let seeds = corpus("import");
    Target {
        name: "import",
        longest: 2 * seeds.iter().map(Vec::len).max().unwrap(),
        seeds,
        words: WORDS,
        head: usize::MAX,
        memory: Memory { each: 256, beside: 16 << 20 },
        run: Box::new(move |input| {
            imports += 1;
            if imports % IMPORTS == 0 {
                running = Running::start();
            }
            let path = folder.path().join("conversations.json");
            fs::write(&path, input).unwrap();
            let app = running.app();
            let before = app.conversations().unwrap();
            let outcome = app.import_conversations(path.to_str().unwrap(), &mut |_| ());
            let after = app.conversations().unwrap();
            match outcome {
                Ok(imported) => {
                    assert_eq!(after.len(), before.len() + imported.added as usize);
                    for conversation in &after {
                        app.messages(conversation.id).unwrap();
                    }
                    None
                }
                Err(error) => {
                    assert_eq!(after, before, "a refused file was partly imported: {}", error.message);
                    // The message may contain names from the file.
                    Some("The file was refused.".into())
                }
            }
        }),
    }
}
