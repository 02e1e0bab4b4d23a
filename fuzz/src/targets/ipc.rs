//! Commands of the window with arbitrary arguments, on an application without a window and with a
//! scripted writer.

use std::sync::Arc;

use foretoken_app::App;
use foretoken_app::cancel::Cancel;
use foretoken_app::engine::replier::{Chat, Ending, Event, Replier};
use foretoken_app::error::Result;
use foretoken_app::ipc::{ArenaRequest, CommandError, PromptSize, Sent, Settings};
use foretoken_engine::session::ThisComputer;
use foretoken_engine::trace::Finish;
use foretoken_library::Folders;
use foretoken_model::Renderer;
use serde::Deserialize;
use tempfile::TempDir;

use super::{Memory, Target, corpus, folder};

const WORDS: &[&str] = &[
    "{\"command\":\"send\",\"conversation\":null,\"sent\":{\"text\":\"Hello\"}}",
    "{\"command\":\"conversations\"}",
    "regenerate",
    "messages",
    "trace",
    "rename_conversation",
    "delete_conversation",
    "restore_conversation",
    "search_messages",
    "save_settings",
    "add_model",
    "run_arena",
    "\"conversation\":1",
    "\"message\":2",
    "\"id\":\"starter\"",
    "ngram",
    "auto",
    "off",
    "fixed",
    "max_tokens",
    "temperature",
    "NEAR",
    "AND",
    "\\\"",
    "*",
    "older_than_days",
];

/// Commands after which the application is restarted, so that conversations do not grow without
/// limit.
const COMMANDS: u32 = 2_000;

/// A command with its arguments, as the page sends them, except read-only ones and the one that
/// changes the keyring.
#[derive(Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
enum Call {
    SaveSettings { settings: Box<Settings> },
    AddModel { path: String },
    RemoveModel { id: String },
    DeleteModel { id: String },
    FindRepository { name: String },
    CancelHubRequests,
    StartDownload { repository: String, file: Option<String> },
    PauseDownload { id: String },
    ResumeDownload { id: String },
    CancelDownload { id: String },
    DismissDownload { id: String },
    Conversations,
    Messages { conversation: i64 },
    Trace { message: i64 },
    RenameConversation { conversation: i64, title: String },
    PinConversation { conversation: i64, pinned: bool },
    DeleteConversation { conversation: i64 },
    RestoreConversation { conversation: i64 },
    SearchMessages { query: String },
    Send { conversation: Option<i64>, sent: Sent },
    Attachment { id: i64 },
    ContextUse { conversation: Option<i64> },
    Regenerate { message: i64 },
    CancelLoading,
    Advise { conversation: Option<i64> },
    CheckReply { message: i64 },
    RunArena { request: Box<ArenaRequest> },
    Arenas,
    DeleteArena { id: i64 },
    DeleteTraces { older_than_days: Option<u32> },
    SaveFile { name: String, text: String },
}

impl Call {
    fn make(self, app: &Arc<App>) -> Result<()> {
        match self {
            Self::SaveSettings { settings } => app.save_settings(*settings).map(drop),
            Self::AddModel { path } => app.add_model(&path).map(drop),
            Self::RemoveModel { id } => app.remove_model(&id),
            Self::DeleteModel { id } => app.delete_model(&id),
            Self::FindRepository { name } => app.find_repository(&name).map(drop),
            Self::CancelHubRequests => app.cancel_hub_requests(),
            Self::StartDownload { repository, file } => {
                app.start_download(&repository, file.as_deref()).map(drop)
            }
            Self::PauseDownload { id } => app.pause_download(&id),
            Self::ResumeDownload { id } => app.resume_download(&id),
            Self::CancelDownload { id } => app.cancel_download(&id),
            Self::DismissDownload { id } => app.dismiss_download(&id),
            Self::Conversations => app.conversations().map(drop),
            Self::Messages { conversation } => app.messages(conversation).map(drop),
            Self::Trace { message } => app.trace_json(message).map(drop),
            Self::RenameConversation { conversation, title } => {
                app.rename_conversation(conversation, &title).map(drop)
            }
            Self::PinConversation { conversation, pinned } => {
                app.pin_conversation(conversation, pinned).map(drop)
            }
            Self::DeleteConversation { conversation } => app.delete_conversation(conversation),
            Self::RestoreConversation { conversation } => app.restore_conversation(conversation).map(drop),
            Self::SearchMessages { query } => app.search_messages(&query).map(drop),
            Self::Send { conversation, sent } => app.send(conversation, sent, Arc::new(|_| ())).map(drop),
            Self::Attachment { id } => app.attachment(id).map(drop),
            Self::ContextUse { conversation } => app.context_use(conversation).map(drop),
            Self::Regenerate { message } => app.regenerate(message, Arc::new(|_| ())).map(drop),
            Self::CancelLoading => app.cancel_loading(),
            Self::Advise { conversation } => app.advise(conversation, Box::new(|_| ())),
            Self::CheckReply { message } => app.check_reply(message, Box::new(|_| ())).map(drop),
            Self::RunArena { request } => app.run_arena(*request, Box::new(|_| ())).map(drop),
            Self::Arenas => app.arenas().map(drop),
            Self::DeleteArena { id } => app.delete_arena(id),
            Self::DeleteTraces { older_than_days } => app.delete_traces(older_than_days).map(drop),
            Self::SaveFile { name, text } => app.save_file(&name, &text).map(drop),
        }
    }
}

/// Replies with the question.
struct Echo;

/// Context length in bytes of a conversation.
const CONTEXT: usize = 1000;

impl Replier for Echo {
    fn reply(
        &mut self,
        chat: &Chat,
        _settings: &Settings,
        _cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending> {
        let conversation = &chat.messages;
        on(Event::Started { target: "Echo", draft: None });
        on(Event::Text { delta: conversation.last().map_or("", |message| &message.content) });
        Ok(Ending { finish: Finish::Stop, summary: None })
    }

    fn measure(&mut self, chat: &Chat, _settings: &Settings) -> Result<PromptSize> {
        let conversation = &chat.messages;
        let tokens = conversation.iter().map(|message| message.content.len()).sum();
        Ok(PromptSize { tokens, context: CONTEXT })
    }
}

/// An application in a folder of its own.
pub struct Running {
    app: Arc<App>,
    commands: u32,
    // Dropped last.
    _folder: TempDir,
}

impl Running {
    pub fn start() -> Self {
        let folder = folder();
        let (folders, renderer) = (Folders::at(folder.path()), Renderer::in_this_process());
        let app = App::start_on(folders, None, Arc::new(ThisComputer), renderer, Some(Box::new(Echo)));
        Self { app: Arc::new(app.unwrap()), commands: 0, _folder: folder }
    }

    pub fn app(&self) -> &App {
        &self.app
    }
}

pub fn target() -> Target {
    let mut running = Running::start();
    Target {
        name: "ipc",
        seeds: corpus("ipc")
            .iter()
            .flat_map(|file| file.split(|byte| *byte == b'\n'))
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect(),
        words: WORDS,
        head: usize::MAX,
        longest: 4096,
        memory: Memory { each: 256, beside: 16 << 20 },
        run: Box::new(move |input| {
            running.commands += 1;
            if running.commands.is_multiple_of(COMMANDS) {
                running = Running::start();
            }
            let call: Call = match serde_json::from_slice(input) {
                Ok(call) => call,
                Err(_) => return Some("These are not valid arguments.".into()),
            };
            // The message may contain the user's text, so it is not checked here.
            call.make(&running.app).err().map(|CommandError { .. }| "The command was refused.".into())
        }),
    }
}
