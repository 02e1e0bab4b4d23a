//! `chat`: a conversation, with lines from a terminal or a pipe; the draft can be changed at any
//! time.

use std::io::{IsTerminal, Write, stdin};
use std::sync::Arc;

use anstream::{AutoStream, ColorChoice};
use foretoken_engine::decoder::Request;
use foretoken_engine::session::{Form, Session};
use foretoken_engine::speculation::DraftLength;
use foretoken_engine::trace::{Finish, Round, Summary};
use foretoken_library::STARTER;
use foretoken_model::Error as EngineError;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{
    CallParser, ChatMessage, Conversation, Detail, Picture, Role, ToolCall, Written, call_id,
};
use foretoken_tools::MOST_TURNS;

use crate::args::{DraftChoice, McpArgs, PairDeviceArgs, TalkArgs, draft_length};
use crate::chat_tools::ChatTools;
use crate::colour;
use crate::error::{Error, Result};
use crate::files::{self, Files};
use crate::interrupt::Interrupt;
use crate::kept_chat::{KeptChat, SavedChat};
use crate::output;
use crate::pictures;
use crate::ready::{Ready, ready};
use crate::server_contents;
use crate::session::{choose_draft, form, reply};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Continue the last conversation, with the model that wrote it unless --target names another
    #[arg(long)]
    resume: bool,
    /// Keep nothing of this conversation; others are kept for --resume until the next one
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    tools: McpArgs,
    // The last field, since clap would list later options under its last heading.
    #[command(flatten)]
    pub talk: TalkArgs,
}

const HELP: &str = "\
/draft MODEL|mtp|ngram|none  change the draft
/length auto|N               tokens to draft in a round: 1 to 16, auto for the fastest, 0 for no drafts
/think on|off                turn thinking before the answer on or off
/file FILE                   put the text of a file before the next message; a long one is searched
/picture FILE                show the model a picture with the next message
/prompt SERVER NAME [A=B]    send a prompt of an MCP server; /prompt alone lists them
/resource SERVER ADDRESS     put a resource of an MCP server before the next message; alone, lists them
/new                         start a new conversation
/stats                       statistics of the last reply
/help                        this list
/quit                        quit; the end of the input does the same
Ctrl-C stops a reply and keeps what was written; a second one quits.";

/// Most characters of a question that reminds of a resumed conversation.
const QUOTED: usize = 60;

const TINY: &str = "\
The starter is a tiny model for a first try: it tells short stories and answers questions about \
speculative decoding. For real work, choose a larger model with --target.";

pub fn run(Args { talk, resume, private, tools }: &Args) -> Result<()> {
    let sampling = talk.sampling.over(Sampling::default())?;
    let speculation = talk.speculation.speculation()?;
    let mut tools = ChatTools::start(tools)?;
    let kept = KeptChat::locate()?;
    let last = resume.then(|| kept.last()).transpose()?;
    let written_by = last.as_ref().map(|chat| chat.target.clone());
    let args = &TalkArgs { target: talk.target.clone().or(written_by), ..talk.clone() };
    let Ready { target, draft, mut session } = ready(args, |source| form(source, false))?;
    if target == STARTER {
        output::note(TINY);
    }
    output::note(format_args!(
        "Target {target}, draft {draft}, on {}. /help lists the commands.",
        session.devices()
    ));
    session.device_sentences().for_each(output::note);
    let messages = last.map(|chat| chat.messages).unwrap_or_default();
    if !messages.is_empty() {
        kept.restore(&mut session);
        output::note(resumed(&messages));
    }
    let thinking = args.thinking.of(session.form());
    let request = Request { sampling, speculation, max_tokens: args.max_tokens, ..Request::new(Vec::new()) };
    let colours = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    let interrupt = Interrupt::listen();
    if let Some(tools) = &mut tools {
        tools.wait(&interrupt)?;
    }
    if colours {
        output::note(format_args!(
            "Token colours: {}; tokens without a colour were not drafted.",
            colour::legend()
        ));
    }
    let cold = args.speculation.cold;
    let (devices, kept, last) = (&args.device, Some(kept).filter(|_| !private), None);
    let target = saved_name(target, &session);
    let (detail, pictures, before) = (args.vision.detail(), Vec::new(), Vec::new());
    let files = Files::new(session.context(), talk.embedding.load()?);
    let chat = Chat {
        session,
        detail,
        pictures,
        before,
        files,
        devices,
        cold,
        thinking,
        request,
        target,
        messages,
        kept,
        last,
        colours,
        interrupt,
        tools,
    };
    chat.run()
}

/// Name of the target from any folder: a path is absolute.
fn saved_name(target: String, session: &Session) -> String {
    let path = std::path::absolute(&target).ok().filter(|path| path == session.path());
    path.map_or(target, |path| path.display().to_string())
}

/// Reminds of a resumed conversation by its last question.
fn resumed(messages: &[ChatMessage]) -> String {
    let question = messages.iter().rfind(|message| message.role == Role::User);
    let question = question.map_or("", |message| message.content.trim());
    let beginning: String = question.chars().take(QUOTED).collect();
    let rest = if beginning.len() < question.len() { "…" } else { "" };
    format!("resumed {} messages, the last after: {}{rest}", messages.len(), output::harmless(&beginning))
}

struct Chat<'a> {
    session: Session,
    devices: &'a PairDeviceArgs,
    /// Ignore saved acceptance statistics, and save none.
    cold: bool,
    /// The thinking switch; `None` for the template's own default.
    thinking: Option<bool>,
    /// Settings of the replies. Its prompt is that of the last reply.
    request: Request,
    target: String,
    messages: Vec<ChatMessage>,
    /// Texts before the next message.
    before: Vec<String>,
    /// Files of the conversation.
    files: Files,
    /// Pictures for the next message, and how closely they are looked at.
    pictures: Vec<Arc<Picture>>,
    detail: Detail,
    /// Files for `--resume`; `None` for a private conversation.
    kept: Option<KeptChat>,
    /// Statistics of the last reply.
    last: Option<Summary>,
    colours: bool,
    interrupt: Interrupt,
    /// Tools that the model may call; `None` without `--mcp`.
    tools: Option<ChatTools>,
}

impl Chat<'_> {
    fn run(mut self) -> Result<()> {
        let done = self.read_lines();
        self.kept.iter_mut().for_each(KeptChat::finish);
        done
    }

    /// Answers lines until the input ends.
    fn read_lines(&mut self) -> Result<()> {
        let is_terminal = stdin().is_terminal();
        let mut line = String::new();
        loop {
            if is_terminal {
                prompt();
            }
            line.clear();
            let read = stdin().read_line(&mut line);
            if read.map_err(|source| Error::Read { path: "standard input".into(), source })? == 0 {
                if is_terminal {
                    // Ends the line of the prompt, so that the shell's own prompt begins a new one.
                    output::note("");
                }
                return Ok(());
            }
            match line.trim() {
                "" => {}
                "/quit" => return Ok(()),
                command if command.starts_with('/') => self.obey(command)?,
                text => self.answer(text)?,
            }
        }
    }

    fn obey(&mut self, command: &str) -> Result<()> {
        let (name, value) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, value.trim()) {
            ("/help", _) => output::note(HELP),
            ("/file", "") => output::note("expected a file after /file"),
            ("/file", path) => self.attach(path),
            ("/picture", "") => output::note("expected a file after /picture"),
            ("/picture", path) => self.show(path),
            ("/prompt" | "/resource", _) if self.tools.is_none() => {
                output::note("start the chat with --mcp FILE to use servers");
            }
            ("/prompt", line) => return self.send_prompt(line),
            ("/resource", line) => self.attach_resource(line),
            ("/new", _) => {
                self.messages.clear();
                self.pictures.clear();
                self.before.clear();
                self.files.clear();
                output::note("started a new conversation");
            }
            ("/think", value @ ("on" | "off")) => self.let_think(value == "on"),
            ("/think", _) => output::note("expected on or off after /think"),
            ("/stats", _) => match &self.last {
                Some(summary) => output::note(statistics(summary)),
                None => output::note("no reply yet"),
            },
            ("/draft", "") => output::note("expected a model, mtp, ngram or none after /draft"),
            ("/draft", name) => self.let_draft(name),
            ("/length", value) => match draft_length(value) {
                Ok(length) => {
                    self.request.speculation.length = length;
                    output::note(match length {
                        DraftLength::Auto => "the draft length is chosen automatically".to_owned(),
                        DraftLength::Fixed(length) => format!("draft length {length}"),
                        DraftLength::Off => "no drafts".to_owned(),
                    });
                }
                Err(expected) => output::note(format_args!("{expected} after /length, found '{value}'")),
            },
            _ => output::note(format_args!("unknown command {name}; /help lists all commands")),
        }
        Ok(())
    }

    /// Shows the text of a server's prompt and sends it; lists all prompts without a name.
    fn send_prompt(&mut self, line: &str) -> Result<()> {
        let Some(tools) = &self.tools else { return Ok(()) };
        if line.is_empty() {
            server_contents::list_prompts(tools.toolbox());
            return Ok(());
        }
        match server_contents::prompt(tools.toolbox(), line, &self.interrupt) {
            Ok(text) => {
                output::note(output::harmless(&text));
                self.answer(&text)
            }
            Err(error) => {
                output::failure(&error);
                Ok(())
            }
        }
    }

    /// Adds the text of a server's resource to the next message; lists all without an address.
    fn attach_resource(&mut self, line: &str) {
        let Some(tools) = &self.tools else { return };
        if line.is_empty() {
            return server_contents::list_resources(tools.toolbox());
        }
        match server_contents::resource(tools.toolbox(), line, &self.interrupt) {
            Ok(text) => {
                output::note("the next message has the text of this resource");
                self.before.push(text);
            }
            Err(error) => output::failure(&error),
        }
    }

    fn let_think(&mut self, thinking: bool) {
        if self.session.form().thinks().is_none() {
            return output::note("this model's chat template has no switch for thinking");
        }
        self.thinking = Some(thinking);
        output::note(if thinking { "thinking is on" } else { "thinking is off" });
    }

    /// Adds the text of a file to the next message.
    fn attach(&mut self, path: &str) {
        match files::read(path.as_ref()).and_then(|file| self.files.add(&file)) {
            Ok(shown) => {
                output::note(if shown.is_searched {
                    "this file is too long for the context: the next message has its beginning, and each \
                     message the passages that match it"
                } else {
                    "the next message has the text of this file"
                });
                self.before.push(shown.text);
            }
            Err(error) => output::failure(&error),
        }
    }

    /// Adds a picture to the next message.
    fn show(&mut self, path: &str) {
        if !self.session.sees() {
            return output::note("this model cannot see pictures; choose one with a vision file (mmproj)");
        }
        match pictures::read(path.as_ref()) {
            Ok(picture) => {
                let (width, height) = (picture.width(), picture.height());
                output::note(format_args!("the next message has this picture of {width} x {height} pixels"));
                self.pictures.push(picture);
            }
            Err(error) => output::failure(&error),
        }
    }

    fn let_draft(&mut self, name: &str) {
        let Ok(choice) = name.parse();
        match self.change_draft(&choice) {
            Ok(()) => {
                output::note(format_args!("the draft is now {choice}"));
                self.session.device_sentences().for_each(output::note);
            }
            Err(error) => {
                output::failure(&error);
                output::note("the draft is unchanged");
            }
        }
    }

    /// Replaces the draft, which stays unchanged on an error.
    fn change_draft(&mut self, choice: &DraftChoice) -> Result<()> {
        choose_draft(&mut self.session, choice, None, self.devices)?;
        if !self.cold {
            self.session.prepare();
        }
        Ok(())
    }

    /// Replies to a message. A message that does not fit is removed again, so that a shorter one
    /// can follow.
    fn answer(&mut self, text: &str) -> Result<()> {
        let before = self.messages.len();
        let mut message = ChatMessage::new(Role::User, "");
        for picture in std::mem::take(&mut self.pictures) {
            message = message.with_picture(&picture, self.detail);
        }
        let mut content = std::mem::take(&mut self.before);
        match self.files.excerpts(text) {
            Ok(excerpts) => content.extend(excerpts),
            Err(error) => output::failure(&error),
        }
        content.push(text.to_owned());
        self.messages.push(ChatMessage { content: content.join("\n\n"), ..message });
        match self.reply_with_calls() {
            Err(error @ (Error::Engine(_) | Error::Library(_))) => {
                self.messages.truncate(before);
                self.files.free();
                output::failure(&error);
                Ok(())
            }
            done => done,
        }
    }

    /// The prompt of the conversation. If it does not fit, or if `full` asks for more room, the
    /// oldest turns are dropped until a quarter of the context is left for the reply.
    ///
    /// # Errors
    /// `PromptTooLong` if the last turn alone does not fit; then nothing is dropped.
    fn prompt(&mut self, full: bool) -> Result<Vec<TokenId>> {
        let context = self.session.context();
        let room = context - context.div_ceil(4);
        let mut prompt = self.conversation(&self.messages)?;
        if prompt.len() < context && !full {
            return Ok(prompt);
        }
        let turns = self.messages.iter().enumerate().filter(|(_, message)| message.role == Role::User);
        let starts: Vec<usize> = turns.map(|(at, _)| at).skip(1).collect();
        let mut dropped = 0;
        for start in starts {
            prompt = self.conversation(&self.messages[start..])?;
            dropped = start;
            if prompt.len() <= room {
                break;
            }
        }
        if dropped == 0 || prompt.len() >= context {
            return Err(EngineError::PromptTooLong { found: prompt.len(), limit: context }.into());
        }
        self.messages.drain(..dropped);
        self.files.free();
        output::note(format_args!(
            "the context is full: the model no longer sees the {dropped} oldest messages"
        ));
        Ok(prompt)
    }

    fn conversation(&self, messages: &[ChatMessage]) -> Result<Vec<TokenId>> {
        let tools = self.tools.as_ref().map_or(&[][..], ChatTools::offered);
        Ok(self.session.conversation(&Conversation { messages, tools, thinking: self.thinking })?)
    }

    /// Replies to the last message; runs the calls of the reply and goes on with their results.
    fn reply_with_calls(&mut self) -> Result<()> {
        for turn in 0..MOST_TURNS {
            if let Some(tools) = &mut self.tools {
                tools.begin(turn == 0);
            }
            self.reply()?;
            let Some(tools) = &mut self.tools else { return Ok(()) };
            let calls = self.messages.last().map(|reply| reply.calls.clone()).unwrap_or_default();
            if calls.is_empty() {
                return Ok(());
            }
            for call in calls {
                let text = tools.run(&call, self.session.context(), &self.interrupt)?;
                let result = ChatMessage { call_id: Some(call.id), ..ChatMessage::new(Role::Tool, text) };
                self.messages.push(result);
            }
        }
        output::note(format_args!("the model has called tools {MOST_TURNS} times in a row; ask it to go on"));
        Ok(())
    }

    /// Adds the reply to the conversation, with calls if it ended by itself.
    fn add_reply(&mut self, mut written: Written, finish: Finish) {
        if finish != Finish::Stop {
            written.calls.clear();
        }
        let made: usize = self.messages.iter().map(|message| message.calls.len()).sum();
        let numbered = written.calls.into_iter().enumerate();
        let calls = numbered.map(|(number, call)| ToolCall { id: call_id(made + number), ..call }).collect();
        self.messages.push(ChatMessage { calls, ..ChatMessage::new(Role::Assistant, written.text) });
    }

    /// Replies to the last message. A reply that fills the context continues without the oldest
    /// turns.
    fn reply(&mut self) -> Result<()> {
        let show: fn(&Round) -> Result<()> = if self.colours { show_coloured } else { show_plain };
        let mut request = Request { prompt: self.prompt(false)?, ..self.request.clone() };
        let conversation = Conversation::of(&self.messages, self.thinking);
        pictures::see(&mut self.session, &conversation, Some(&self.interrupt))?;
        let mut parser = None;
        if let (Some(asked), Form::Chat(template)) =
            (self.tools.as_ref().and_then(ChatTools::asked), self.session.form().as_ref())
        {
            let constrained = asked.constrained(&self.session, template, request)?;
            (request, parser) = (constrained.0, Some(constrained.1));
        }
        let (mut content, mut written) = (String::new(), Written::default());
        let finish = loop {
            let mut show = |round: &Round| {
                let pieces =
                    parser.as_mut().map(|parser: &mut CallParser| parser.push_tokens(round.emitted()));
                pieces.into_iter().flatten().for_each(|piece| written.push(piece));
                show(round)
            };
            let reply = reply(&mut self.session, &request, &self.interrupt, &mut show)?;
            content.push_str(&reply.text);
            let Summary { finish, tokens, .. } = reply.summary;
            self.last = Some(reply.summary);
            // What follows a part of a call is no valid call any more.
            if finish != Finish::ContextFull || request.constraint.is_some() {
                break finish;
            }
            request.max_tokens = request.max_tokens.map(|left| left.saturating_sub(tokens as usize));
            self.messages.push(ChatMessage::new(Role::Assistant, content.clone()));
            let prompt = self.prompt(true);
            self.messages.pop();
            match prompt {
                Ok(prompt) => request.prompt = prompt,
                Err(_) => break finish,
            }
        };
        output::line("")?;
        self.last.iter().for_each(|summary| output::note(output::summary(summary)));
        match parser {
            Some(mut parser) => parser.finish().into_iter().for_each(|piece| written.push(piece)),
            None => written.text = content,
        }
        self.add_reply(written, finish);
        if let Some(kept) = &mut self.kept {
            let chat = SavedChat { target: self.target.clone(), messages: self.messages.clone() };
            kept.keep(chat, &mut self.session);
        }
        Ok(())
    }
}

fn prompt() {
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "> ").and_then(|()| err.flush());
}

fn show_coloured(round: &Round) -> Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(colour::paint(round).as_bytes())?;
    Ok(out.flush()?)
}

fn show_plain(round: &Round) -> Result<()> {
    output::text(&round.emitted().map(|(_, text)| text).collect::<String>())
}

fn statistics(summary: &Summary) -> String {
    let Summary { rounds, drafted, judged, accepted, prompt_tokens, reused_tokens, times, .. } = summary;
    let restored = match summary.restored_tokens {
        0 => String::new(),
        tokens => format!(", {tokens} from the disk"),
    };
    format!(
        "{}\n{prompt_tokens} prompt tokens, {reused_tokens} of them from the cache{restored}\n\
         {rounds} rounds: {drafted} tokens drafted, {judged} judged, {accepted} accepted\n\
         draft {:.0} ms, verify {:.0} ms, sample {:.0} ms, rest {:.0} ms, of {:.0} ms in total",
        output::summary(summary),
        times.draft_ms,
        times.verify_ms,
        times.sample_ms,
        times.rest_ms,
        summary.elapsed_ms
    )
}
