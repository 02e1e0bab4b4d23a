//! Pictures in the real window: attached, seen by a small random model with drafts, proved, kept,
//! and refused where the model cannot see.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};

use candle_core::quantized::GgmlDType;
use foretoken_engine::speculation::Speculation;
use foretoken_engine::trace::Summary;
use foretoken_model::Picture;
use foretoken_model::sampling::Sampling;
use foretoken_store::{AttachmentKind, Store};
use foretoken_tests::screenshot_portal::ScreenshotPortal;
use foretoken_tests::session_bus::SessionBus;
use foretoken_tests::window::Window;
use foretoken_tests::{RandomVision, made_up_picture, scanned_pdf};
use serde_json::json;

use super::contexts::texts;

/// Template of a model that sees.
const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}:\
    {% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
    {% if part['type'] == 'text' %}{{ part.text }}{% else %}<image>{% endif %}{% endfor %}{% endif %}\
    <|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}";

fn write_png(path: &Path, picture: &Picture) -> PathBuf {
    let file = std::fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(file, picture.width() as u32, picture.height() as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(picture.pixels()).unwrap();
    path.to_owned()
}

/// Writes a model that sees into a folder.
fn write_vision(folder: &Path) -> PathBuf {
    let mut vision = RandomVision::smolvlm();
    vision.text = vision.text.with_template(TEMPLATE);
    std::fs::create_dir_all(folder).unwrap();
    vision.write_gguf(folder, GgmlDType::F32).0
}

/// A model that sees, chosen in the window of `data`. Returns its path.
fn choose_vision(folder: &Path, data: &Path) -> PathBuf {
    let model = write_vision(folder);
    let settings = json!({
        "speculation": Speculation::fixed(4), "sampling": Sampling::greedy(), "max_tokens": 40,
        "added_models": [model], "target": model, "drafts": { model.to_str().unwrap(): "ngram" },
        "appearance": { "theme": "dark" },
    });
    Store::open(&data.join("foretoken.db")).unwrap().save_settings(&settings.to_string()).unwrap();
    model
}

async fn attach(window: &Window, path: &Path) {
    window.find_hidden("attach").await.send_keys(path.to_str().unwrap()).await.unwrap();
}

/// Waits until a thumbnail shows its picture.
async fn wait_for_thumbnails(window: &Window, count: usize) {
    let script = "return [...document.querySelectorAll('[data-testid=attachment-thumbnail]')]
        .filter((image) => image.complete && image.naturalWidth > 0).length";
    let shown = async || window.page.execute(script, vec![]).await.unwrap();
    window.wait("the thumbnails are drawn", async || shown().await == json!(count)).await;
}

#[tokio::test]
async fn a_picture_that_another_program_copied_is_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let picture = write_png(&folder.path().join("fox.png"), &made_up_picture("fox", 60, 40));
    let window = Window::open(&folder.path().join("data")).await;
    window.copy_picture(&picture);
    window.click("composer").await;
    window.send_input(&["key", "ctrl+v"]);
    wait_for_thumbnails(&window, 1).await;
    assert!(window.text("attachment").await.contains("Pasted picture.png"));
    window.photograph("pasted-picture").await;
    window.close().await;
}

#[tokio::test]
async fn a_picture_is_attached_seen_with_drafts_proved_and_there_after_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    choose_vision(&folder.path().join("models"), &data);
    let picture = write_png(&folder.path().join("fox.png"), &made_up_picture("fox", 60, 40));
    let other = write_png(&folder.path().join("hen.png"), &made_up_picture("hen", 40, 60));
    let window = Window::open(&data).await;

    attach(&window, &picture).await;
    wait_for_thumbnails(&window, 1).await;
    let counted = async || window.text("attachment").await.contains(" tokens");
    window.wait("its tokens are counted", async || counted().await).await;
    window.photograph("picture-composer").await;
    window.ask("What is there? the cat and the dog and the cat and the dog").await;
    window.wait_for_reply(1).await;
    let first = window.text("message-reply").await;
    wait_for_thumbnails(&window, 1).await;
    window.click("attachment-open").await;
    window.find("attachment-picture").await;
    window.photograph("picture-question").await;

    window.click("reply-more").await;
    window.click("check-reply").await;
    window.find("check-result").await;
    let verdict = window.attribute("[data-testid='check-result']", "data-verdict").await;
    assert_eq!(verdict.as_deref(), Some("identical"));

    window.page.refresh().await.unwrap();
    window.click("conversation-item").await;
    wait_for_thumbnails(&window, 1).await;
    // The same question about another picture, in a conversation of its own.
    window.click("new-chat").await;
    attach(&window, &other).await;
    wait_for_thumbnails(&window, 1).await;
    window.ask("What is there? the cat and the dog and the cat and the dog").await;
    window.wait_for_reply(1).await;
    assert_ne!(window.text("message-reply").await, first, "the reply depends on the picture");
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversations = store.conversations().unwrap();
    let messages = store.messages(conversations[1].id).unwrap();
    let files = store.attached(messages[0].id).unwrap();
    assert_eq!((files[0].name.as_str(), files[0].kind), ("fox.png", AttachmentKind::Picture));
    assert!(files[0].text.starts_with("data:image/png;base64,iVBOR"), "the file as it came");
}

#[tokio::test]
async fn a_conversation_with_a_picture_is_ready_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    choose_vision(&folder.path().join("models"), &data);
    let picture = write_png(&folder.path().join("fox.png"), &made_up_picture("fox", 60, 40));
    let window = Window::open(&data).await;
    attach(&window, &picture).await;
    wait_for_thumbnails(&window, 1).await;
    window.ask(&"What is there? the cat and the dog. ".repeat(8)).await;
    window.wait_for_reply(1).await;
    window.wait("its context is written", async || texts(&data) == 1).await;
    window.close().await;

    let window = Window::open(&data).await;
    window.click("conversation-item").await;
    window.ask("And there?").await;
    window.wait_for_reply(2).await;
    window.click("reply-more").await;
    window.click("check-reply").await;
    window.find("check-result").await;
    let verdict = window.attribute("[data-testid='check-result']", "data-verdict").await;
    assert_eq!(verdict.as_deref(), Some("identical"));
    window.close().await;

    let store = Store::open(&data.join("foretoken.db")).unwrap();
    let conversation = store.conversations().unwrap()[0].id;
    let reply = store.messages(conversation).unwrap().pop().unwrap();
    let summary: Summary = serde_json::from_str(reply.summary.as_ref().unwrap()).unwrap();
    // The words of a random model are other tokens when they are read again.
    assert!(summary.restored_tokens > 256, "{} tokens were restored", summary.restored_tokens);
}

#[tokio::test]
async fn a_screenshot_is_attached_cancelled_and_refused_where_the_desktop_offers_none() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    choose_vision(&folder.path().join("models"), &data);
    let picture = write_png(&folder.path().join("part of it.png"), &made_up_picture("fox", 60, 40));
    let bus = SessionBus::start();
    let window = Window::open_with(&data, &[("DBUS_SESSION_BUS_ADDRESS", &bus.address)]).await;
    window.click("attach-screenshot").await;
    let refused = "offers no screenshots to programs";
    window.wait("the reason is shown", async || window.body().await.contains(refused)).await;

    let portal = ScreenshotPortal::open(&bus);
    portal.select(Some(&picture));
    window.click("attach-screenshot").await;
    wait_for_thumbnails(&window, 1).await;
    assert!(portal.asked_for_dialog() && !window.body().await.contains(refused));
    assert!(window.text("attachment").await.contains("Screenshot.png"));
    window.photograph("screenshot").await;

    portal.select(None);
    window.click("attachment-remove").await;
    window.click("attach-screenshot").await;
    window.ask("What is there?").await;
    window.wait_for_reply(1).await;
    assert!(window.all("[data-testid='attachment'], [data-testid='attachment-problem']").await.is_empty());
    window.close().await;
}

#[tokio::test]
async fn a_damaged_picture_and_a_model_that_does_not_see_are_named_before_sending() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    crate::e2e::always_drafting(&data);
    let window = Window::open(&data).await;
    let damaged = folder.path().join("damaged.png");
    std::fs::write(&damaged, *b"\x89PNG\r\n\x1a\n\0\0\0").unwrap();
    attach(&window, &damaged).await;
    window
        .wait("the damaged picture is refused", async || {
            window
                .body()
                .await
                .contains("damaged.png: the picture cannot be used: it is damaged or cut short")
                && window.all("[data-testid='attachment']").await.is_empty()
        })
        .await;
    attach(&window, &write_png(&folder.path().join("fox.png"), &made_up_picture("fox", 60, 40))).await;
    window.find("pictures-unseen").await;
    window.photograph("picture-unseen").await;
    window.ask("What is there?").await;
    window
        .wait("the question is refused", async || window.body().await.contains("cannot see pictures"))
        .await;
    window.close().await;
    let store = Store::open(&data.join("foretoken.db")).unwrap();
    assert!(store.conversations().unwrap().is_empty(), "a refused question leaves nothing");
}

/// Texts of the attachments' chips.
async fn chips(window: &Window) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll('[data-testid=attachment]')].map((chip) => chip.innerText)";
    let found = window.page.execute(script, vec![]).await.unwrap();
    serde_json::from_value(found).unwrap()
}

#[tokio::test]
async fn pages_of_a_scan_are_attached_as_pictures_and_a_model_that_sees_them_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    crate::e2e::always_drafting(&data);
    let window = Window::open(&data).await;
    let scan = folder.path().join("scan.pdf");
    std::fs::write(&scan, scanned_pdf(&[made_up_picture("fox", 60, 40), made_up_picture("hen", 40, 60)]))
        .unwrap();
    attach(&window, &scan).await;
    wait_for_thumbnails(&window, 2).await;
    let names = chips(&window).await;
    assert!(names[0].contains("scan.pdf, page 1") && names[1].contains("scan.pdf, page 2"), "{names:?}");
    window
        .wait("what was left out is named", async || window.body().await.contains("2 of its 3 pages"))
        .await;
    window.find("vision-find").await;
    window.photograph("scan-unseen").await;

    let model = write_vision(&folder.path().join("models"));
    window.configure(json!({ "added_models": [model] })).await;
    window.click("vision-use").await;
    let counted = async || chips(&window).await.iter().all(|chip| chip.contains(" tokens"));
    window.wait("the model that sees counts the pages", counted).await;
    assert!(window.all("[data-testid='pictures-unseen']").await.is_empty());
    let high = chips(&window).await[0].clone();
    window.click("attachment-open").await;
    window
        .page
        .execute("document.querySelector('[data-testid=attachment-detail-normal]').click()", vec![])
        .await
        .unwrap();
    let changed = async || {
        let chip = chips(&window).await[0].clone();
        chip.contains(" tokens") && chip != high
    };
    window.wait("less detail takes other tokens", changed).await;
    window.photograph("scan-detail").await;
    window.close().await;
}
