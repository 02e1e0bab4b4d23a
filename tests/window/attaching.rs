//! Attached files in the real window: their text as the web view extracts it, and as the model
//! reads it.
#![cfg(target_os = "linux")]

use std::io::Read;
use std::path::{Path, PathBuf};

use fantoccini::elements::Element;
use foretoken_store::{AttachmentKind, Store};
use foretoken_tests::office;
use foretoken_tests::window::Window;
use serde_json::json;

use crate::e2e::always_drafting;

/// A PDF with one page that shows `words`.
fn pdf(words: &str) -> String {
    let content = format!("BT /F1 12 Tf 20 700 Td ({words}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R \
         /Resources << /Font << /F1 3 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let (mut file, mut table) = ("%PDF-1.4\n".to_owned(), "0000000000 65535 f \n".to_owned());
    for (at, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let place = file.len();
    format!("{file}xref\n0 6\n{table}trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{place}\n%%EOF")
}

fn write(folder: &Path, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

pub async fn attach(window: &Window, path: &Path) {
    window.find_hidden("attach").await.send_keys(path.to_str().unwrap()).await.unwrap();
}

/// Words of the attached files in the composer. The driver's text has none that are scrolled out of
/// view.
async fn attached(window: &Window) -> Vec<String> {
    let mut words = Vec::new();
    for chip in window.all("[data-testid='attachment']").await {
        words.extend(chip.prop("textContent").await.ok().flatten());
    }
    words
}

/// Number of attached files in the composer whose tokens are counted.
async fn counted(window: &Window) -> usize {
    let words = attached(window).await;
    words.iter().filter(|words| words.contains(" tokens") && !words.contains("counting")).count()
}

#[tokio::test]
async fn attached_files_are_read_by_the_page_counted_by_the_shell_and_seen_by_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    always_drafting(&data);
    let window = Window::open(&data).await;
    window.configure(json!({ "max_tokens": 8, "appearance": { "theme": "dark" } })).await;
    window.ask("What is in them?").await;
    window.wait_for_reply(1).await;

    let notes = "def fox():\n    return 'lantern'\n".repeat(4);
    attach(&window, &write(folder.path(), "fox.py", &notes)).await;
    window.wait("the text is counted", async || counted(&window).await == 1).await;
    attach(&window, &write(folder.path(), "lantern.pdf", pdf("A fox found a lantern."))).await;
    window.wait("the PDF is read in the window's own web view", async || counted(&window).await == 2).await;
    window.click("attachment-open").await;
    window.find("attachment-text").await;
    window.photograph("attachments").await;
    window.click("attachment-open").await;
    window.ask("What is in them?").await;
    window.wait_for_reply(2).await;
    window.click("context-open").await;
    window.photograph("context").await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let messages = store.messages(store.conversations().unwrap()[0].id).unwrap();
    let files = store.attached(messages[2].id).unwrap();
    assert_eq!(files[0].text, notes);
    assert_eq!((files[1].name.as_str(), files[1].text.as_str()), ("lantern.pdf", "A fox found a lantern."));
    let kinds: Vec<_> = messages[2].attachments.iter().map(|file| file.kind).collect();
    assert_eq!(kinds, [AttachmentKind::Text, AttachmentKind::Pdf]);
    assert_eq!(messages[2].text, "What is in them?");
    let read = |at: usize| -> u64 {
        let summary: serde_json::Value =
            serde_json::from_str(messages[at].summary.as_deref().unwrap()).unwrap();
        summary["prompt_tokens"].as_u64().unwrap()
    };
    // Eight lines of code and a sentence: no tokenizer needs fewer tokens.
    assert!(read(3) > 2 * read(1) + 60, "{} after {}", read(3), read(1));
}

#[tokio::test]
async fn a_document_longer_than_the_context_is_searched_and_its_excerpts_open() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let window = Window::open_with_smollm2(&data).await;
    window.configure(json!({ "max_tokens": 24 })).await;
    window.ask("Hello!").await;
    window.wait_for_reply(1).await;
    let town = |number: usize| format!("## Town {number}\nIt rained in town {number}. The river rose. ");
    let text: String = (0..4_000).map(town).map(|words| words + &"A bridge was built. ".repeat(5)).collect();
    let keeper = "\n## The lighthouse\nThe keeper of the lighthouse is called Ines.\n";
    attach(&window, &write(folder.path(), "towns.md", text + keeper)).await;
    window
        .wait("the file is marked as searched", async || {
            let chips = window.all("[data-testid='attachment']").await;
            match chips.first() {
                Some(chip) => chip.text().await.is_ok_and(|words| words.contains("searched")),
                None => false,
            }
        })
        .await;
    window.photograph("searched-file").await;
    window.ask("Who is the keeper of the lighthouse?").await;
    window.wait_for_reply(2).await;
    window.click("excerpts").await;
    window.photograph("excerpts").await;
    let chips = window.all("[data-testid='attachment-open']").await;
    let names = words_of(&chips).await;
    let place = names.iter().position(|words| words.contains("The lighthouse"));
    chips[place.unwrap_or_else(|| panic!("{names:?}"))].click().await.unwrap();
    let shown = window.text("attachment-text").await;
    assert!(shown.contains("called Ines"), "{shown}");
    window.photograph("excerpt").await;
    window.click("attachment-whole").await;
    let place = "const pre = document.querySelector('[data-testid=attachment-text] pre');
        const [range] = CSS.highlights.get('mark') ?? [];
        if (!pre || !range) return '';
        const [shown, marked] = [pre.getBoundingClientRect(), range.getBoundingClientRect()];
        return marked.top >= shown.top && marked.top < shown.bottom ? String(range) : '';";
    window
        .wait("the document is shown at the excerpt", async || {
            let marked = window.page.execute(place, vec![]).await.unwrap();
            marked.as_str().is_some_and(|words| words.contains("called Ines"))
        })
        .await;
    window.photograph("excerpt-in-document").await;
    window.close().await;
}

/// Sentences below the composer about files that were not attached.
async fn problems(window: &Window) -> Vec<String> {
    words_of(&window.all("[data-testid='attachment-problem']").await).await
}

#[tokio::test]
async fn documents_of_every_format_are_attached_and_searched_and_hostile_ones_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let window = Window::open_with_smollm2(&data).await;
    window.configure(json!({ "max_tokens": 16 })).await;
    let page = "<!DOCTYPE html><html><body><h1>Wolves</h1><p>A wolf sleeps.</p></body></html>";
    let scene = |number: usize| format!("# 第{number}章\n下雨了，河水上涨，村民们修了一座桥。\n");
    let chinese = (0..800).map(scene).collect::<String>() + "# 灯塔\n看守灯塔的人名叫伊内斯。\n";
    let files: [(&str, Vec<u8>, &str); 8] = [
        ("a.docx", office::word(office::paragraph("A fox found a lantern.").as_bytes()), "A fox found"),
        ("b.xlsx", office::workbook(office::row("A hen saw it.").as_bytes()), "A hen saw it."),
        ("c.pptx", office::slides("A goose flew away."), "# Slide 1\nA goose flew away."),
        ("d.epub", office::book("A badger dug a hole."), "A badger dug a hole."),
        ("e.html", page.into(), "A wolf sleeps."),
        ("f.pdf", pdf("A heron stood still.").into(), "A heron stood still."),
        ("g.txt", "An owl.".into(), "An owl."),
        ("h.txt", chinese.into(), "看守灯塔的人名叫伊内斯。"),
    ];
    for (number, (name, bytes, _)) in files.iter().enumerate() {
        attach(&window, &write(folder.path(), name, bytes)).await;
        window.wait(&format!("{name} is counted"), async || counted(&window).await > number).await;
        assert_eq!(problems(&window).await, [""; 0]);
    }
    for ((name, ..), words) in files.iter().zip(&attached(&window).await) {
        assert!(words.contains(name), "{words}");
        assert_eq!(words.contains("searched"), *name == "h.txt", "{words}");
    }
    window.photograph("documents").await;

    let million = office::row("7").repeat(1_000_000);
    for (name, bytes, reason) in [
        (
            "bomb.docx",
            office::word(std::io::repeat(b' ').take(300 << 20)),
            "unpacks to more than can be read",
        ),
        ("million.xlsx", office::workbook(million.as_bytes()), "more text, rows or cells"),
        ("cut.pptx", office::slides("A goose flew away.")[..200].to_vec(), "may be damaged"),
        ("noise.docx", vec![0; 100], "is not text"),
    ] {
        attach(&window, &write(folder.path(), name, bytes)).await;
        let named = async || {
            let problems = problems(&window).await;
            problems.iter().any(|problem| problem.contains(name) && problem.contains(reason))
        };
        window.wait(&format!("{name} is refused"), named).await;
        assert_eq!(counted(&window).await, files.len(), "{name}");
    }
    window.photograph("refused-documents").await;

    window.ask("谁是灯塔的看守人？").await;
    window.wait_for_reply(1).await;
    window.click("excerpts").await;
    let chips = words_of(&window.all("[data-testid='attachment-open']").await).await;
    assert!(chips.iter().any(|words| words.contains("灯塔")), "{chips:?}");
    window.photograph("documents-excerpts").await;
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let messages = store.messages(store.conversations().unwrap()[0].id).unwrap();
    let attached = store.attached(messages[0].id).unwrap();
    assert_eq!(attached.len(), files.len());
    for (file, (name, _, expected)) in attached.iter().zip(&files) {
        assert_eq!(file.name, *name);
        assert!(file.text.contains(expected), "{name}: {}", &file.text[..file.text.len().min(200)]);
    }
    assert!(messages[0].excerpts.as_deref().is_some_and(|excerpts| excerpts.contains("伊内斯")));
}

/// Words of chips.
async fn words_of(chips: &[Element]) -> Vec<String> {
    let mut words = Vec::new();
    for chip in chips {
        words.push(chip.text().await.unwrap_or_default());
    }
    words
}
