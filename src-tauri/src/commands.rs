//! The commands that the page can call, each declared only here: its arguments, its result, and the
//! call of [`App`].

use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use foretoken_documents::DocumentText;
use foretoken_engine::trace::{Round, Speedup};
use serde::Serialize;
use tauri::ipc::{Channel, InvokeResponseBody, IpcResponse};
use tauri::{AppHandle, Manager, WebviewWindow};
use tauri_plugin_dialog::DialogExt;

use foretoken_app::App;
use foretoken_app::error::Result;
use foretoken_app::ipc::{
    Advice, AppInfo, Arena, ArenaEvent, ArenaRequest, Attached, CallDecision, CatalogueFamily, CheckProgress,
    CommandError, ContextUse, Conversation, ConversationFolder, ConversationSetup, Desktop,
    DocumentSearchStatus, Download, EngineChange, ErrorCode, Export, FileDrag, FilledArgument, Folder,
    FoundRepository, ImportProgress, ImportableServers, Imported, ImportedTrace, Message, ModelEntry,
    PairSpeedup, Preset, PresetValues, Recommendation, Reply, ReplyCheck, ReplyEvent, Repository, SearchHit,
    SearchService, Sent, ServerContents, ServerRequest, ServerStatus, Settings, Theme, TokenCount,
    TokenSource, ToolRule, ToolsStatus, TraceStorage, TrayWords, Unsent, UnsentEdit, UnsentFile,
    UpdateStatus, ViewState,
};
use foretoken_app::pace::{EventSender, Pace, Pacer};

use crate::attach_words::AttachWords;
use crate::clipboard;
use crate::closing::Closing;
use crate::drag::Drags;
use crate::file_manager;
use crate::imported_traces::ImportedTraces;
use crate::login;
use crate::notices::Notices;
use crate::preview::Preview;
use crate::printing;
use crate::quick;
use crate::screenshot;
use crate::shortcut::QuickShortcut;
use crate::theme::SystemTheme;
use crate::tray::{self, Tray};
use crate::updates::Updates;
use crate::window::{self, MAIN};

/// Makes a Tauri command of each function. It runs on its own thread where it may take long, and
/// its types are exported to the page. Its first name is the [`Shell`].
macro_rules! commands {
    ($(fn $name:ident($shell:ident $(, $argument:ident: $type:ty)*) -> $returns:ty { $($body:tt)* })*) => {
        $(#[tauri::command]
        async fn $name(handle: AppHandle, $($argument: $type),*) -> Result<$returns> {
            let work = move || -> Result<$returns> {
                let $shell = Shell(&handle);
                $($body)*
            };
            let outcome = tauri::async_runtime::spawn_blocking(work).await;
            outcome.unwrap_or_else(|error| Err(CommandError::new(ErrorCode::Internal, error)))
        })*

        pub fn handler() -> impl Fn(tauri::ipc::Invoke<tauri::Wry>) -> bool + Send + Sync + 'static {
            tauri::generate_handler![$($name),*]
        }

        #[cfg(test)]
        pub(crate) fn signatures() -> Vec<crate::bindings::Signature> {
            vec![$(crate::bindings::Signature {
                name: stringify!($name),
                arguments: vec![$((stringify!($argument), stringify!($type))),*],
                returns: stringify!($returns),
            }),*]
        }
    };
}

commands! {
    fn app_info(shell) -> AppInfo { Ok(shell.app()?.info()) }
    fn take_notices(shell) -> Vec<String> { Ok(shell.app()?.take_notices()) }
    fn open_folder(shell, folder: Folder) -> () { file_manager::open(&shell.app()?.folder(folder)) }
    fn settings(shell) -> Settings { Ok(shell.app()?.settings()) }
    fn save_settings(shell, settings: Settings) -> Settings {
        let app = shell.app()?;
        let Settings { appearance: before, start_at_login, .. } = app.settings();
        if settings.start_at_login != start_at_login {
            login::start_at_login(shell.0, settings.start_at_login)?;
        }
        let saved = app.save_settings(settings)?;
        if saved.appearance.theme != before.theme {
            shell.show_theme(saved.appearance.theme);
        }
        if saved.appearance.text_size != before.text_size {
            window::zoom(&shell.window()?, saved.appearance.text_size);
        }
        shell.state::<Tray>()?.follow(shell.0);
        shell.state::<QuickShortcut>()?.follow(shell.0);
        shell.state::<Updates>()?.follow(shell.0);
        Ok(saved)
    }
    fn desktop(shell) -> Desktop {
        Ok(Desktop {
            tray: tray::is_offered(),
            shortcut: shell.state::<QuickShortcut>()?.problem(),
            screenshots: screenshot::IS_OFFERED,
        })
    }
    fn watch_updates(shell, on_change: Channel<UpdateStatus>) -> () {
        shell.state::<Updates>()?.watch(move |status| on_change.send(status.clone()).is_ok());
        Ok(())
    }
    fn check_for_updates(shell) -> () {
        shell.state::<Updates>()?.check(shell.0);
        Ok(())
    }
    fn download_update(shell) -> () {
        shell.state::<Updates>()?.download(shell.0);
        Ok(())
    }
    fn cancel_update(shell) -> () {
        shell.state::<Updates>()?.cancel();
        Ok(())
    }
    fn install_update(shell) -> () { shell.state::<Updates>()?.install(shell.0) }
    fn hide_quick(shell) -> () {
        quick::hide(shell.0);
        Ok(())
    }
    fn continue_in_main(shell, conversation: i64) -> () {
        quick::continue_in_main(shell.0, conversation);
        Ok(())
    }
    fn name_tray(shell, words: TrayWords) -> () {
        shell.state::<Tray>()?.name(shell.0, words);
        Ok(())
    }
    fn view_state(shell) -> Option<ViewState> { shell.app()?.view_state() }
    fn save_view_state(shell, state: ViewState) -> () { shell.app()?.save_view_state(&state) }
    fn unsent(shell) -> Vec<Unsent> { shell.app()?.unsent() }
    fn save_unsent(shell, unsent: Unsent) -> () { shell.app()?.save_unsent(&unsent) }
    fn unsent_files(shell, conversation: Option<i64>) -> Vec<UnsentFile> {
        shell.app()?.unsent_files(conversation)
    }
    fn add_unsent_file(shell, conversation: Option<i64>, file: Attached) -> i64 {
        shell.app()?.add_unsent_file(conversation, file)
    }
    fn remove_unsent_files(shell, ids: Vec<i64>) -> () { shell.app()?.remove_unsent_files(&ids) }
    fn unsent_edits(shell) -> Vec<UnsentEdit> { shell.app()?.unsent_edits() }
    fn save_unsent_edit(shell, edit: UnsentEdit) -> () { shell.app()?.save_unsent_edit(edit) }
    fn remove_unsent_edit(shell, message: i64) -> () { shell.app()?.remove_unsent_edit(message) }
    fn quit(shell) -> () {
        shell.state::<Closing>()?.allow();
        shell.window()?.close().map_err(internal)
    }
    fn toggle_fullscreen(shell) -> () {
        let window = shell.window()?;
        window.is_fullscreen().and_then(|full| window.set_fullscreen(!full)).map_err(internal)
    }
    fn print(shell) -> () { printing::print(&shell.window()?).map_err(internal) }
    fn notify(shell, title: String, body: String) -> () {
        shell.state::<Notices>()?.show(shell.0, &title, &body).map_err(internal)
    }
    fn show_preview(shell, document: String) -> String { Ok(shell.state::<Preview>()?.show(document)) }
    fn built_in_presets(shell) -> Vec<Preset> { Ok(shell.app()?.built_in_presets()) }
    fn open_setup(shell, conversation: Option<i64>) -> ConversationSetup {
        shell.app()?.open_setup(conversation)
    }
    fn setup(shell, conversation: Option<i64>) -> ConversationSetup { shell.app()?.setup_of(conversation) }
    fn save_setup(
        shell,
        conversation: Option<i64>,
        preset: Option<String>,
        values: Option<PresetValues>
    ) -> ConversationSetup {
        shell.app()?.save_setup(conversation, preset, values)
    }
    fn server_status(shell) -> ServerStatus { Ok(shell.app()?.server_status()) }
    fn server_requests(shell) -> Vec<ServerRequest> { Ok(shell.app()?.server_requests()) }
    fn add_server(shell, name: String, address: String, key: Option<String>) -> Settings {
        shell.app()?.add_server(&name, &address, key.as_deref())
    }
    fn test_server(shell, name: String) -> Settings { shell.app()?.test_server(&name) }
    fn remove_server(shell, name: String) -> Settings { shell.app()?.remove_server(&name) }
    fn tools_status(shell) -> ToolsStatus { shell.app()?.tools_status() }
    fn switch_tool_server(shell, name: String, on: bool) -> ToolsStatus {
        shell.app()?.switch_tool_server(&name, on)
    }
    fn add_tool_servers(shell, text: String) -> ToolsStatus { shell.app()?.add_tool_servers(&text) }
    fn remove_tool_server(shell, name: String) -> ToolsStatus { shell.app()?.remove_tool_server(&name) }
    fn importable_tool_servers(shell) -> Vec<ImportableServers> { shell.app()?.importable_tool_servers() }
    fn import_tool_servers(shell, program: String) -> ToolsStatus {
        shell.app()?.import_tool_servers(&program)
    }
    fn set_search_key(shell, service: SearchService, key: Option<String>) -> ToolsStatus {
        shell.app()?.set_search_key(service, key.as_deref())
    }
    fn set_tool_rule(shell, server: Option<String>, digest: String, rule: ToolRule) -> () {
        shell.app()?.set_tool_rule(server.as_deref(), &digest, rule)
    }
    fn server_contents(shell, start: bool) -> ServerContents { shell.app()?.server_contents(start) }
    fn fetch_prompt(shell, server: String, name: String, arguments: Vec<FilledArgument>) -> String {
        shell.app()?.fetch_prompt(&server, &name, arguments)
    }
    fn fetch_resource(shell, server: String, uri: String, arguments: Vec<FilledArgument>) -> Attached {
        shell.app()?.fetch_resource(&server, &uri, arguments)
    }
    fn stop_fetching(shell) -> () {
        shell.app()?.stop_fetching();
        Ok(())
    }
    fn decide_call(shell, call: i64, decision: CallDecision) -> () {
        shell.app()?.decide_call(call, decision);
        Ok(())
    }
    fn watch_engine(shell, on_change: Channel<EngineChange>) -> () {
        shell.app()?.watch_engine_changes(move |change| on_change.send(change).is_ok());
        Ok(())
    }
    fn look_for_devices(shell) -> () {
        shell.app()?.look_for_devices();
        Ok(())
    }
    fn add_model(shell, path: String) -> ModelEntry { shell.app()?.add_model(&path) }
    fn remove_model(shell, id: String) -> () { shell.app()?.remove_model(&id) }
    fn delete_model(shell, id: String) -> () { shell.app()?.delete_model(&id) }
    fn choose_model_file(shell, title: String, filter: String) -> Option<String> {
        let dialog = shell.0.dialog().file().set_title(title).add_filter(filter, &["gguf"]);
        Ok(dialog.blocking_pick_file().map(|path| path.to_string()))
    }
    fn choose_model_folder(shell, title: String) -> Option<String> {
        let dialog = shell.0.dialog().file().set_title(title);
        Ok(dialog.blocking_pick_folder().map(|path| path.to_string()))
    }
    fn name_attach_dialog(shell, title: String, readable: String, all: String) -> () {
        shell.state::<AttachWords>()?.set(title, readable, all);
        Ok(())
    }
    fn watch_file_drags(shell, on_drag: Channel<FileDrag>) -> () {
        shell.state::<Drags>()?.watch(move |drag| on_drag.send(drag.clone()).is_ok());
        Ok(())
    }
    fn catalogue(shell) -> Vec<CatalogueFamily> { Ok(shell.app()?.catalogue()) }
    fn recommendations(shell) -> Vec<Recommendation> { Ok(shell.app()?.recommendations()) }
    fn find_repository(shell, name: String) -> Repository { shell.app()?.find_repository(&name) }
    fn cancel_hub_requests(shell) -> () { shell.app()?.cancel_hub_requests() }
    fn search_hub(shell, words: String) -> Vec<FoundRepository> { shell.app()?.search_hub(&words) }
    fn watch_downloads(shell, on_change: Channel<Vec<Download>>) -> () {
        shell.app()?.watch_downloads(move |downloads| on_change.send(downloads.clone()).is_ok())
    }
    fn start_download(shell, repository: String, file: Option<String>) -> Download {
        shell.app()?.start_download(&repository, file.as_deref())
    }
    fn pause_download(shell, id: String) -> () { shell.app()?.pause_download(&id) }
    fn resume_download(shell, id: String) -> () { shell.app()?.resume_download(&id) }
    fn cancel_download(shell, id: String) -> () { shell.app()?.cancel_download(&id) }
    fn dismiss_download(shell, id: String) -> () { shell.app()?.dismiss_download(&id) }
    fn hub_token(shell) -> TokenSource { shell.app()?.hub_token() }
    fn set_hub_token(shell, token: Option<String>) -> TokenSource {
        shell.app()?.set_hub_token(token.as_deref())
    }
    fn list_conversations(shell) -> Vec<Conversation> { shell.app()?.conversations() }
    fn messages(shell, conversation: i64) -> Vec<Message> { shell.app()?.messages(conversation) }
    fn trace(shell, message: i64) -> Stored<Vec<Round>> {
        Ok(Stored(shell.app()?.trace_json(message)?, PhantomData))
    }
    fn speedups(shell, message: i64) -> Vec<Option<Speedup>> { shell.app()?.speedups(message) }
    fn trace_speedups(_shell, rounds: Vec<Round>) -> Vec<Option<Speedup>> {
        Ok(App::trace_speedups(&rounds))
    }
    fn pair_speedups(shell) -> Vec<PairSpeedup> { shell.app()?.pair_speedups() }
    fn rename_conversation(shell, conversation: i64, title: String) -> Conversation {
        shell.app()?.rename_conversation(conversation, &title)
    }
    fn pin_conversation(shell, conversation: i64, pinned: bool) -> Conversation {
        shell.app()?.pin_conversation(conversation, pinned)
    }
    fn delete_conversation(shell, conversation: i64) -> () {
        shell.app()?.delete_conversation(conversation)
    }
    fn restore_conversation(shell, conversation: i64) -> Conversation {
        shell.app()?.restore_conversation(conversation)
    }
    fn list_folders(shell) -> Vec<ConversationFolder> { shell.app()?.conversation_folders() }
    fn create_folder(shell, name: String) -> ConversationFolder { shell.app()?.create_folder(&name) }
    fn rename_folder(shell, folder: i64, name: String) -> ConversationFolder {
        shell.app()?.rename_folder(folder, &name)
    }
    fn delete_folder(shell, folder: i64) -> () { shell.app()?.delete_folder(folder) }
    fn restore_folder(shell, folder: i64) -> ConversationFolder { shell.app()?.restore_folder(folder) }
    fn move_conversation(shell, conversation: i64, folder: Option<i64>) -> Conversation {
        shell.app()?.move_conversation(conversation, folder)
    }
    fn write_title(shell, conversation: i64) -> Option<Conversation> {
        shell.app()?.write_title(conversation)
    }
    fn duplicate_conversation(shell, conversation: i64, up_to: Option<i64>, title: String) -> Conversation {
        shell.app()?.duplicate_conversation(conversation, up_to, &title)
    }
    fn export_conversations(shell, export: Export) -> String { shell.app()?.export_conversations(&export) }
    fn choose_conversation_files(shell, title: String, filter: String) -> Vec<String> {
        let dialog = shell.0.dialog().file().set_title(title);
        let files = dialog.add_filter(filter, &["json", "zip"]).blocking_pick_files();
        Ok(files.into_iter().flatten().map(|path| path.to_string()).collect())
    }
    fn import_conversations(
        shell,
        path: String,
        on_progress: Channel<Vec<ImportProgress>>
    ) -> Imported {
        let app = shell.app()?;
        shell.paced(on_progress, |send| app.import_conversations(&path, &mut |progress| send(progress)))
    }
    fn stop_import(shell) -> () {
        shell.app()?.stop_import();
        Ok(())
    }
    fn search_messages(shell, query: String) -> Vec<SearchHit> { shell.app()?.search_messages(&query) }
    fn attachment(shell, id: i64) -> Attached { shell.app()?.attachment(id) }
    fn read_document(shell, file: String) -> DocumentText { Ok(shell.app()?.read_document(&file)) }
    fn count_attachment(shell, file: Attached) -> TokenCount { shell.app()?.count_attachment(&file) }
    fn document_search_status(shell) -> DocumentSearchStatus { shell.app()?.document_search_status() }
    fn dropped_file(shell, path: String) -> Bytes { Ok(Bytes(shell.state::<Drags>()?.read(&path)?)) }
    fn clipboard_picture(shell) -> Bytes { Ok(Bytes(clipboard::picture(shell.0)?)) }
    fn take_screenshot(_shell) -> Bytes { Ok(Bytes(screenshot::take()?)) }
    fn keep_imported_trace(shell, name: String, text: String) -> Option<u32> {
        Ok(shell.state::<ImportedTraces>()?.keep(name, text))
    }
    fn imported_traces(shell) -> Vec<ImportedTrace> { Ok(shell.state::<ImportedTraces>()?.list()) }
    fn imported_trace(shell, id: u32) -> Bytes {
        Ok(Bytes(shell.state::<ImportedTraces>()?.text(id).unwrap_or_default().into_bytes()))
    }
    fn forget_imported_trace(shell, id: u32) -> () {
        shell.state::<ImportedTraces>()?.forget(id);
        Ok(())
    }
    fn word_tokens(shell, word: String) -> Vec<String> { Ok(shell.app()?.word_tokens(&word)) }
    fn context_use(shell, conversation: Option<i64>) -> ContextUse { shell.app()?.context_use(conversation) }
    fn send(shell, conversation: Option<i64>, sent: Sent, on_events: Channel<Vec<ReplyEvent>>) -> Reply {
        let app = shell.app()?;
        shell.paced(on_events, |send| app.send(conversation, sent, Arc::new(send)))
    }
    fn send_instead(shell, message: i64, sent: Sent, on_events: Channel<Vec<ReplyEvent>>) -> Reply {
        let app = shell.app()?;
        shell.paced(on_events, |send| app.send_instead(message, sent, Arc::new(send)))
    }
    fn regenerate(shell, message: i64, on_events: Channel<Vec<ReplyEvent>>) -> Reply {
        let app = shell.app()?;
        shell.paced(on_events, |send| app.regenerate(message, Arc::new(send)))
    }
    fn continue_reply(shell, message: i64, on_events: Channel<Vec<ReplyEvent>>) -> Reply {
        let app = shell.app()?;
        shell.paced(on_events, |send| app.continue_reply(message, Arc::new(send)))
    }
    fn follow_reply(shell, on_events: Channel<Vec<ReplyEvent>>) -> Option<Reply> {
        let app = shell.app()?;
        shell.paced(on_events, |send| app.follow_reply(Arc::new(send)))
    }
    fn choose_branch(shell, message: i64) -> Vec<Message> { shell.app()?.choose_branch(message) }
    fn delete_message(shell, message: i64) -> Vec<Message> { shell.app()?.delete_message(message) }
    fn restore_message(shell, message: i64) -> Vec<Message> { shell.app()?.restore_message(message) }
    fn leave_out_oldest(shell, conversation: i64, next: Option<Sent>) -> Conversation {
        shell.app()?.leave_out_oldest(conversation, next)
    }
    fn see_from(shell, conversation: i64, question: Option<i64>) -> Conversation {
        shell.app()?.see_from(conversation, question)
    }
    fn see_all(shell, conversation: i64) -> Conversation { shell.app()?.see_all(conversation) }
    fn stop(shell) -> () {
        shell.app()?.stop();
        Ok(())
    }
    fn pace(shell, interval_ms: u32) -> () {
        shell.state::<Arc<Pace>>()?.set(Duration::from_millis(interval_ms.into()));
        Ok(())
    }
    fn cancel_loading(shell) -> () { shell.app()?.cancel_loading() }
    fn advise(shell, conversation: Option<i64>, on_advice: Channel<Advice>) -> () {
        let send = move |advice| drop(on_advice.send(advice));
        shell.app()?.advise(conversation, Box::new(send))
    }
    fn stop_advice(shell) -> () {
        shell.app()?.stop_advice();
        Ok(())
    }
    fn check_reply(shell, message: i64, on_progress: Channel<Vec<CheckProgress>>) -> ReplyCheck {
        let app = shell.app()?;
        shell.paced(on_progress, |send| app.check_reply(message, Box::new(send)))
    }
    fn run_arena(shell, request: ArenaRequest, on_events: Channel<Vec<ArenaEvent>>) -> Arena {
        let app = shell.app()?;
        shell.paced(on_events, |send| app.run_arena(request, Box::new(send)))
    }
    fn arenas(shell) -> Vec<Arena> { shell.app()?.arenas() }
    fn delete_arena(shell, id: i64) -> () { shell.app()?.delete_arena(id) }
    fn trace_storage(shell) -> TraceStorage { shell.app()?.trace_storage() }
    fn delete_traces(shell, older_than_days: Option<u32>) -> TraceStorage {
        shell.app()?.delete_traces(older_than_days)
    }
    fn save_file(shell, name: String, text: String) -> String { shell.app()?.save_file(&name, &text) }
}

/// The running application, as a command sees it.
struct Shell<'a>(&'a AppHandle);

impl Shell<'_> {
    fn app(&self) -> Result<Arc<App>> {
        self.state::<Arc<App>>()
    }

    fn state<T: Clone + Send + Sync + 'static>(&self) -> Result<T> {
        let state = self.0.try_state::<T>().map(|state| state.inner().clone());
        state.ok_or_else(|| CommandError::new(ErrorCode::Internal, "Foretoken is still starting. Try again."))
    }

    fn window(&self) -> Result<WebviewWindow> {
        let closed = || CommandError::new(ErrorCode::Internal, "The window is closed.");
        self.0.get_webview_window(MAIN).ok_or_else(closed)
    }

    /// Applies the theme to the page and to the window around it.
    fn show_theme(&self, theme: Theme) {
        if let (Ok(system), Some(window)) = (self.state::<SystemTheme>(), self.0.get_webview_window(MAIN)) {
            system.show(&window, theme);
        }
    }

    /// Runs `work` and sends its events to the page at the page's pace; all are sent on return.
    /// Send errors are ignored, since results are in the store.
    fn paced<E: Serialize + Send + 'static, T>(
        &self,
        channel: Channel<Vec<E>>,
        work: impl FnOnce(EventSender<E>) -> Result<T>,
    ) -> Result<T> {
        let send = move |events| {
            if let Err(error) = channel.send(events) {
                tracing::debug!(%error, "the page closed the channel");
            }
        };
        let pacer = Pacer::start(&self.state()?, send);
        let pacer = pacer.map_err(|error| CommandError::new(ErrorCode::Internal, error))?;
        let outcome = work(pacer.sender());
        pacer.finish();
        outcome
    }
}

fn internal(error: impl Display) -> CommandError {
    CommandError::new(ErrorCode::Internal, error)
}

/// A `T` as stored JSON, sent without parsing it.
struct Stored<T>(String, PhantomData<T>);

impl<T> IpcResponse for Stored<T> {
    fn body(self) -> tauri::Result<InvokeResponseBody> {
        Ok(InvokeResponseBody::Json(self.0))
    }
}

/// The bytes of a file.
struct Bytes(Vec<u8>);

impl IpcResponse for Bytes {
    fn body(self) -> tauri::Result<InvokeResponseBody> {
        Ok(InvokeResponseBody::Raw(self.0))
    }
}
