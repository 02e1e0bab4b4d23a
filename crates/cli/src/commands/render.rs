//! `render`: applies a model's chat template to a conversation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::BoolishValueParser;
use foretoken_model::{ChatMessage, ChatTemplate, Conversation, ModelSource, Renderer, Role, SpecialToken};
use serde::{Deserialize, Serialize};

use crate::args::read_text;
use crate::error::{Error, Result};
use crate::output;
use crate::session::{open, this_computer};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    template: TemplateArgs,
    #[command(flatten)]
    tokens: TokenArgs,
    /// JSON file with the messages: [{"role": "user", "content": "Hello"}, ...]; roles are system,
    /// user and assistant; `-` is standard input
    #[arg(long, value_name = "FILE")]
    messages: PathBuf,
    /// Do not open the assistant's turn at the end
    #[arg(long)]
    no_generation_prompt: bool,
    /// Turn the model's thinking on or off, if the template has a switch for it [default: the
    /// template's own]
    #[arg(long, value_name = "on|off", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
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

/// Names that a template gives the first and the last token of a text.
#[derive(Debug, clap::Args)]
struct TokenArgs {
    /// Text of `bos_token` in the template [default: the model's, empty without a model]
    #[arg(long, value_name = "TEXT")]
    bos: Option<String>,
    /// Text of `eos_token` in the template [default: the model's, empty without a model]
    #[arg(long, value_name = "TEXT")]
    eos: Option<String>,
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
        (Some(path), source) => {
            compile(path.clone(), read_text(path)?, source.as_ref(), &args.tokens, &renderer)?
        }
        (None, Some(source)) => {
            let text = source.template_source()?;
            compile(source.path().to_owned(), text, Some(source), &args.tokens, &renderer)?
        }
        (None, None) => return Err(Error::Usage("render needs --model or --template.".to_owned())),
    };
    let text =
        template.render_with(&Conversation::of(&messages, args.thinking), !args.no_generation_prompt)?;
    if args.json { output::json(&Rendered { text }) } else { output::text(&text) }
}

fn compile(
    path: PathBuf,
    text: String,
    source: Option<&ModelSource>,
    tokens: &TokenArgs,
    renderer: &Arc<Renderer>,
) -> Result<ChatTemplate> {
    let name = |token: Option<SpecialToken>| token.map(|token| token.text);
    let (bos, eos) = match source {
        Some(source) => {
            let special = source.special_tokens()?;
            (name(special.bos), name(special.eos))
        }
        // Defined, since templates add these names to other texts.
        None => (Some(String::new()), Some(String::new())),
    };
    let (bos, eos) = (tokens.bos.clone().or(bos), tokens.eos.clone().or(eos));
    Ok(ChatTemplate::new(path, text, bos.as_deref(), eos.as_deref(), renderer)?)
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
        Self::new(role, message.content)
    }
}
