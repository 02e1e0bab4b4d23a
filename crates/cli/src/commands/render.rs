//! `render`: applies a model's chat template to a conversation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::BoolishValueParser;
use foretoken_model::{ChatMessage, ChatTemplate, ModelSource, Renderer, Role};
use serde::{Deserialize, Serialize};

use crate::args::read_text;
use crate::error::{Error, Result};
use crate::output;
use crate::session::{open, this_computer};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    template: TemplateArgs,
    /// JSON file with the messages: [{"role": "user", "content": "Hello"}, ...]; roles are system,
    /// user and assistant; `-` is standard input
    #[arg(long, value_name = "FILE")]
    messages: PathBuf,
    /// Do not open the assistant's turn at the end
    #[arg(long)]
    no_generation_prompt: bool,
    /// Turn the model's thinking on or off, if the template has a switch for it [default: the
    /// template's own]
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new())]
    thinking: Option<bool>,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true)]
struct TemplateArgs {
    /// Model whose template is used
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// File with a template; with --model, replaces the model's own
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Message {
    role: Speaker,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    System,
    User,
    Assistant,
}

#[derive(Serialize)]
struct Rendered {
    text: String,
}

pub fn run(args: &Args) -> Result<()> {
    let messages = read_messages(&args.messages)?;
    let source = args.template.model.as_deref().map(open).transpose()?;
    let renderer = this_computer()?.renderer;
    let template = match (&args.template.template, &source) {
        (Some(path), source) => compile(path, source.as_ref(), &renderer)?,
        (None, Some(source)) => source.template(&renderer)?,
        (None, None) => return Err(Error::Usage("render needs --model or --template.".to_owned())),
    };
    let text = template.render_with(&messages, !args.no_generation_prompt, args.thinking)?;
    if args.json { output::json(&Rendered { text }) } else { output::text(&text) }
}

fn compile(path: &Path, source: Option<&ModelSource>, renderer: &Arc<Renderer>) -> Result<ChatTemplate> {
    let text = read_text(path)?;
    let special = source.map(ModelSource::special_tokens).transpose()?.unwrap_or_default();
    let (bos, eos) = (special.bos.map(|token| token.text), special.eos.map(|token| token.text));
    Ok(ChatTemplate::new(path.to_owned(), text, bos.as_deref(), eos.as_deref(), renderer)?)
}

fn read_messages(path: &Path) -> Result<Vec<ChatMessage>> {
    let text = read_text(path)?;
    let messages: Vec<Message> = serde_json::from_str(&text).map_err(|error| Error::Content {
        path: path.to_owned(),
        expected: "a JSON list of messages with a role (system, user, assistant) and a content",
        found: error.to_string(),
    })?;
    Ok(messages.into_iter().map(ChatMessage::from).collect())
}

impl From<Message> for ChatMessage {
    fn from(message: Message) -> Self {
        let role = match message.role {
            Speaker::System => Role::System,
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
        };
        Self { role, content: message.content }
    }
}
