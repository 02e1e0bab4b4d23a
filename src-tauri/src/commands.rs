//! The commands the page can call, each passing on to [`App`], and the table of them that both sides
//! are built from.

use std::sync::Arc;
use std::time::Duration;

use foretoken_engine::trace::Round;
use serde::Serialize;
use tauri::ipc::Channel;
use tauri::{AppHandle, State};
use tauri_plugin_dialog::DialogExt;

use crate::app::App;
use crate::error::Result;
use crate::ipc::{
    Advice, AppInfo, Arena, ArenaEvent, ArenaRequest, CatalogueFamily, CheckProgress, CommandError,
    Conversation, Download, EngineStatus, ErrorCode, FileDrag, Message, ModelEntry, Reply, ReplyCheck,
    ReplyEvent, Repository, SearchHit, Settings, TokenSource, TraceStorage,
};
use crate::pace::{Pacer, Teller};

type Shared<'a> = State<'a, Arc<App>>;

/// Registers the commands and tells, for the page's types, what each takes and returns.
macro_rules! commands {
    ($($name:ident($($argument:ident: $type:ty),*) -> $returns:ty;)*) => {
        pub fn handler() -> impl Fn(tauri::ipc::Invoke<tauri::Wry>) -> bool + Send + Sync + 'static {
            tauri::generate_handler![$($name),*]
        }

        #[cfg(test)]
        pub(crate) fn signatures() -> Vec<crate::bindings::Signature> {
            vec![$(crate::bindings::Signature {
                name: stringify!($name),
                arguments: vec![$((stringify!($argument), <$type as crate::bindings::Crosses>::names())),*],
                returns: <$returns as crate::bindings::Crosses>::names(),
            }),*]
        }
    };
}

commands! {
    app_info() -> AppInfo;
    settings() -> Settings;
    save_settings(settings: Settings) -> Settings;
    watch_engine(on_status: Channel<EngineStatus>) -> ();
    add_model(path: String) -> ModelEntry;
    remove_model(id: String) -> ();
    delete_model(id: String) -> ();
    choose_model_file() -> Option<String>;
    choose_model_folder() -> Option<String>;
    watch_file_drags(on_drag: Channel<FileDrag>) -> ();
    catalogue() -> Vec<CatalogueFamily>;
    find_repository(name: String) -> Repository;
    watch_downloads(on_change: Channel<Vec<Download>>) -> ();
    start_download(repository: String, file: Option<String>) -> Download;
    pause_download(id: String) -> ();
    resume_download(id: String) -> ();
    cancel_download(id: String) -> ();
    dismiss_download(id: String) -> ();
    hub_token() -> TokenSource;
    set_hub_token(token: Option<String>) -> TokenSource;
    list_conversations() -> Vec<Conversation>;
    messages(conversation: i64) -> Vec<Message>;
    trace(message: i64) -> Vec<Round>;
    rename_conversation(conversation: i64, title: String) -> Conversation;
    pin_conversation(conversation: i64, pinned: bool) -> Conversation;
    delete_conversation(conversation: i64) -> ();
    restore_conversation(conversation: i64) -> Conversation;
    search_messages(query: String) -> Vec<SearchHit>;
    send(conversation: Option<i64>, text: String, on_events: Channel<Vec<ReplyEvent>>) -> Reply;
    regenerate(message: i64, on_events: Channel<Vec<ReplyEvent>>) -> Reply;
    stop() -> ();
    pace(interval_ms: u32) -> ();
    cancel_loading() -> ();
    advise(conversation: Option<i64>, on_advice: Channel<Advice>) -> ();
    stop_advice() -> ();
    check_reply(message: i64, on_progress: Channel<Vec<CheckProgress>>) -> ReplyCheck;
    run_arena(request: ArenaRequest, on_events: Channel<Vec<ArenaEvent>>) -> Arena;
    arenas() -> Vec<Arena>;
    delete_arena(id: i64) -> ();
    trace_storage() -> TraceStorage;
    delete_traces(older_than_days: Option<u32>) -> TraceStorage;
    save_file(name: String, text: String) -> String;
}

/// Runs what may take a while on a thread of its own.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let outcome = tauri::async_runtime::spawn_blocking(work).await;
    outcome.unwrap_or_else(|error| Err(CommandError::new(ErrorCode::Internal, error)))
}

#[tauri::command]
fn app_info(app: Shared<'_>) -> AppInfo {
    app.info()
}

#[tauri::command]
fn settings(app: Shared<'_>) -> Settings {
    app.settings()
}

#[tauri::command(async)]
fn save_settings(app: Shared<'_>, settings: Settings) -> Result<Settings> {
    app.save_settings(settings)
}

#[tauri::command]
fn watch_engine(app: Shared<'_>, on_status: Channel<EngineStatus>) {
    app.watch_engine(move |status| on_status.send(status.clone()).is_ok());
}

#[tauri::command(async)]
fn add_model(app: Shared<'_>, path: String) -> Result<ModelEntry> {
    app.add_model(&path)
}

#[tauri::command(async)]
fn remove_model(app: Shared<'_>, id: String) -> Result<()> {
    app.remove_model(&id)
}

#[tauri::command(async)]
fn delete_model(app: Shared<'_>, id: String) -> Result<()> {
    app.delete_model(&id)
}

#[tauri::command]
async fn choose_model_file(handle: AppHandle) -> Result<Option<String>> {
    blocking(move || {
        let dialog = handle.dialog().file().set_title("Choose a model").add_filter("GGUF models", &["gguf"]);
        Ok(dialog.blocking_pick_file().map(|path| path.to_string()))
    })
    .await
}

#[tauri::command]
async fn choose_model_folder(handle: AppHandle) -> Result<Option<String>> {
    blocking(move || {
        let dialog = handle.dialog().file().set_title("Choose a folder with a model");
        Ok(dialog.blocking_pick_folder().map(|path| path.to_string()))
    })
    .await
}

#[tauri::command]
fn watch_file_drags(app: Shared<'_>, on_drag: Channel<FileDrag>) {
    app.watch_file_drags(move |drag| on_drag.send(drag.clone()).is_ok());
}

#[tauri::command(async)]
fn catalogue(app: Shared<'_>) -> Vec<CatalogueFamily> {
    app.catalogue()
}

#[tauri::command]
async fn find_repository(app: Shared<'_>, name: String) -> Result<Repository> {
    let app = Arc::clone(&app);
    blocking(move || app.find_repository(&name)).await
}

#[tauri::command]
fn watch_downloads(app: Shared<'_>, on_change: Channel<Vec<Download>>) -> Result<()> {
    app.watch_downloads(move |downloads| on_change.send(downloads.clone()).is_ok())
}

#[tauri::command]
async fn start_download(app: Shared<'_>, repository: String, file: Option<String>) -> Result<Download> {
    let app = Arc::clone(&app);
    blocking(move || app.start_download(&repository, file.as_deref())).await
}

#[tauri::command(async)]
fn pause_download(app: Shared<'_>, id: String) -> Result<()> {
    app.pause_download(&id)
}

#[tauri::command(async)]
fn resume_download(app: Shared<'_>, id: String) -> Result<()> {
    app.resume_download(&id)
}

#[tauri::command(async)]
fn cancel_download(app: Shared<'_>, id: String) -> Result<()> {
    app.cancel_download(&id)
}

#[tauri::command(async)]
fn dismiss_download(app: Shared<'_>, id: String) -> Result<()> {
    app.dismiss_download(&id)
}

#[tauri::command]
async fn hub_token(app: Shared<'_>) -> Result<TokenSource> {
    let app = Arc::clone(&app);
    blocking(move || app.hub_token()).await
}

#[tauri::command]
async fn set_hub_token(app: Shared<'_>, token: Option<String>) -> Result<TokenSource> {
    let app = Arc::clone(&app);
    blocking(move || app.set_hub_token(token.as_deref())).await
}

#[tauri::command(async)]
fn list_conversations(app: Shared<'_>) -> Result<Vec<Conversation>> {
    app.conversations()
}

#[tauri::command(async)]
fn messages(app: Shared<'_>, conversation: i64) -> Result<Vec<Message>> {
    app.messages(conversation)
}

#[tauri::command(async)]
fn trace(app: Shared<'_>, message: i64) -> Result<Vec<Round>> {
    app.trace(message)
}

#[tauri::command(async)]
fn rename_conversation(app: Shared<'_>, conversation: i64, title: String) -> Result<Conversation> {
    app.rename_conversation(conversation, &title)
}

#[tauri::command(async)]
fn pin_conversation(app: Shared<'_>, conversation: i64, pinned: bool) -> Result<Conversation> {
    app.pin_conversation(conversation, pinned)
}

#[tauri::command(async)]
fn delete_conversation(app: Shared<'_>, conversation: i64) -> Result<()> {
    app.delete_conversation(conversation)
}

#[tauri::command(async)]
fn restore_conversation(app: Shared<'_>, conversation: i64) -> Result<Conversation> {
    app.restore_conversation(conversation)
}

#[tauri::command(async)]
fn search_messages(app: Shared<'_>, query: String) -> Result<Vec<SearchHit>> {
    app.search_messages(&query)
}

#[tauri::command]
async fn send(
    app: Shared<'_>,
    conversation: Option<i64>,
    text: String,
    on_events: Channel<Vec<ReplyEvent>>,
) -> Result<Reply> {
    let app = Arc::clone(&app);
    blocking(move || paced(&app, on_events, |tell| app.send(conversation, &text, Arc::new(tell)))).await
}

#[tauri::command]
async fn regenerate(app: Shared<'_>, message: i64, on_events: Channel<Vec<ReplyEvent>>) -> Result<Reply> {
    let app = Arc::clone(&app);
    blocking(move || paced(&app, on_events, |tell| app.regenerate(message, Arc::new(tell)))).await
}

#[tauri::command]
fn stop(app: Shared<'_>) {
    app.stop();
}

#[tauri::command]
fn pace(app: Shared<'_>, interval_ms: u32) {
    app.pace.set(Duration::from_millis(interval_ms.into()));
}

#[tauri::command(async)]
fn cancel_loading(app: Shared<'_>) -> Result<()> {
    app.cancel_loading()
}

#[tauri::command]
async fn advise(app: Shared<'_>, conversation: Option<i64>, on_advice: Channel<Advice>) -> Result<()> {
    let app = Arc::clone(&app);
    let tell = move |advice| {
        let _ = on_advice.send(advice);
    };
    blocking(move || app.advise(conversation, Box::new(tell))).await
}

#[tauri::command]
fn stop_advice(app: Shared<'_>) {
    app.stop_advice();
}

#[tauri::command]
async fn check_reply(
    app: Shared<'_>,
    message: i64,
    on_progress: Channel<Vec<CheckProgress>>,
) -> Result<ReplyCheck> {
    let app = Arc::clone(&app);
    blocking(move || paced(&app, on_progress, |tell| app.check_reply(message, Box::new(tell)))).await
}

#[tauri::command]
async fn run_arena(
    app: Shared<'_>,
    request: ArenaRequest,
    on_events: Channel<Vec<ArenaEvent>>,
) -> Result<Arena> {
    let app = Arc::clone(&app);
    blocking(move || paced(&app, on_events, |tell| app.run_arena(request, Box::new(tell)))).await
}

#[tauri::command(async)]
fn arenas(app: Shared<'_>) -> Result<Vec<Arena>> {
    app.arenas()
}

#[tauri::command(async)]
fn delete_arena(app: Shared<'_>, id: i64) -> Result<()> {
    app.delete_arena(id)
}

#[tauri::command(async)]
fn trace_storage(app: Shared<'_>) -> Result<TraceStorage> {
    app.trace_storage()
}

#[tauri::command(async)]
fn delete_traces(app: Shared<'_>, older_than_days: Option<u32>) -> Result<TraceStorage> {
    app.delete_traces(older_than_days)
}

#[tauri::command]
async fn save_file(app: Shared<'_>, name: String, text: String) -> Result<String> {
    let app = Arc::clone(&app);
    blocking(move || app.save_file(&name, &text)).await
}

/// Does `work`, telling the page of it as often as it can show. When it returns, everything was told. A page
/// that went away costs the work nothing: what matters is in the store.
fn paced<E: Serialize + Send + 'static, T>(
    app: &App,
    channel: Channel<Vec<E>>,
    work: impl FnOnce(Teller<E>) -> Result<T>,
) -> Result<T> {
    let tell = move |events| {
        if let Err(error) = channel.send(events) {
            tracing::debug!(%error, "the page no longer listens");
        }
    };
    let pacer =
        Pacer::start(&app.pace, tell).map_err(|error| CommandError::new(ErrorCode::Internal, error))?;
    let outcome = work(pacer.teller());
    pacer.finish();
    outcome
}
