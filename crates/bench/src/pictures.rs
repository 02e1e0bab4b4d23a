//! `foretoken-bench pictures`: time of a vision model of SmolVLM's size with random weights, and
//! drafts after a picture beside drafts of the same questions without one. The language model is
//! a text model, whose last special token becomes the picture's.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Content, Value};
use foretoken_cli::args::{DraftChoice, PairDeviceArgs};
use foretoken_cli::commands::bench::cost::milliseconds;
use foretoken_cli::commands::bench::numbers::median;
use foretoken_cli::commands::bench::prompts::{Workload, built_in};
use foretoken_cli::error::{Error, Result};
use foretoken_cli::{output, session};
use foretoken_engine::decoder::Request;
use foretoken_engine::session::Session;
use foretoken_engine::vision::VisionModel;
use foretoken_model::{ChatMessage, Conversation, Detail, ModelSource, Picture, Role};
use foretoken_senses::vision::Tower;
use foretoken_testkit::{Gguf, VisionSizes};
use serde::Serialize;

/// Template of a model that sees, in ChatML.
const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
    {% if part['type'] == 'text' %}{{ part.text }}{% else %}<image>{% endif %}{% endfor %}{% endif %}\
    <|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

#[derive(Debug, clap::Args)]
pub struct PicturesArgs {
    /// Text model in a GGUF file, with a template in ChatML
    target: PathBuf,
    /// Drafter: `ngram`, `mtp`, or a model or head by path or name
    #[arg(long, value_name = "DRAFT", default_value = "ngram")]
    draft: DraftChoice,
    /// Sides of the pictures in pixels
    #[arg(long, value_name = "PIXELS", value_delimiter = ',', default_value = "224,512,896")]
    sides: Vec<usize>,
    /// Maximum length of a reply in tokens
    #[arg(long, value_name = "N", default_value = "128", value_parser = clap::value_parser!(u32).range(2..))]
    tokens: u32,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}

/// Time of a vision model.
#[derive(Debug, Serialize)]
struct Encoded {
    side: usize,
    detail: &'static str,
    embeddings: usize,
    seconds: f64,
}

/// Figures of one question.
#[derive(Debug, Serialize)]
struct Asked {
    question: String,
    without: Gain,
    with_picture: Gain,
}

/// Drafts of a reply beside plain decoding of the same reply.
#[derive(Debug, Serialize)]
struct Gain {
    tokens: usize,
    plain_ms: f64,
    drafted_ms: f64,
    per_round: f64,
    same: bool,
}

impl Gain {
    fn speedup(&self) -> f64 {
        self.plain_ms / self.drafted_ms
    }
}

impl PicturesArgs {
    /// Measures the vision model, then one question after the other.
    ///
    /// # Errors
    /// Errors of the models.
    pub fn run(&self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let target = with_picture_token(&self.target, folder.path())?;
        let source = ModelSource::open(&target)?;
        let hidden = source.config()?.hidden;
        let mut session = session::load(&source, session::form(&source, false)?, &self.device)?;
        let vision_folder = folder.path().join("vision");
        fs::create_dir(&vision_folder)?;
        let path = Gguf::vision("idefics3", VisionSizes::smolvlm(hidden)).write(&vision_folder);
        let mut tower = Tower::open(&path, session.tokenizer(), source.config()?)?;
        for &side in &self.sides {
            for (detail, name) in [(Detail::Normal, "normal"), (Detail::High, "high")] {
                self.print(&encode(&mut tower, side, detail, name)?)?;
            }
        }
        session.set_vision(Some(Box::new(tower)));
        let mut all = Vec::new();
        for question in built_in(Workload::Chat) {
            let asked = self.ask(&mut session, question)?;
            self.print(&asked)?;
            all.push(asked);
        }
        if self.json { Ok(()) } else { output::line(summary(&all)) }
    }

    fn print(&self, measured: &(impl Display + Serialize)) -> Result<()> {
        if self.json { output::json(measured) } else { output::line(measured) }
    }

    fn ask(&self, session: &mut Session, question: String) -> Result<Asked> {
        let text = ChatMessage::new(Role::User, question.as_str());
        let picture = Arc::new(gradient(512)?);
        let seen = ChatMessage::new(Role::User, "").with_picture(&picture, Detail::Normal);
        let seen = ChatMessage { content: format!("{}{question}", seen.content), ..seen };
        Ok(Asked { without: self.gain(session, &text)?, with_picture: self.gain(session, &seen)?, question })
    }

    fn gain(&self, session: &mut Session, message: &ChatMessage) -> Result<Gain> {
        let messages = std::slice::from_ref(message);
        let conversation = Conversation { messages, tools: &[], thinking: None };
        session.see(&conversation, &mut |_| ControlFlow::Continue(()))?;
        let mut request = Request::new(session.conversation(&conversation)?);
        request.max_tokens = Some(self.tokens as usize);
        request.sampling.temperature = 0.0;
        let write = |session: &mut Session, draft: &DraftChoice| {
            session::choose_draft(session, draft, None, &self.device)?;
            // The second reply has its prompt in the cache, and drafters that know their costs.
            session.reply(&request, &mut |_| ControlFlow::Continue(()))?;
            Ok::<_, Error>(session.reply(&request, &mut |_| ControlFlow::Continue(()))?)
        };
        let plain = write(session, &DraftChoice::None)?;
        let drafted = write(session, &self.draft)?;
        Ok(Gain {
            tokens: plain.tokens.len(),
            plain_ms: plain.summary.elapsed_ms - plain.summary.ttft_ms,
            drafted_ms: drafted.summary.elapsed_ms - drafted.summary.ttft_ms,
            per_round: drafted.summary.tokens_per_round,
            same: plain.tokens == drafted.tokens,
        })
    }
}

fn encode(tower: &mut Tower, side: usize, detail: Detail, name: &'static str) -> Result<Encoded> {
    let picture = gradient(side)?;
    // The first picture loads the weights.
    tower.encode(&gradient(32)?, Detail::Normal, &mut |_| ControlFlow::Continue(()))?;
    let begun = Instant::now();
    let embeddings = tower.encode(&picture, detail, &mut |_| ControlFlow::Continue(()))?;
    let seconds = milliseconds(begun) / 1e3;
    Ok(Encoded { side, detail: name, embeddings: embeddings.len(), seconds })
}

/// A square picture of colours that change slowly.
fn gradient(side: usize) -> Result<Picture> {
    let pixels = (0..side * side).flat_map(|at| {
        let [x, y] = [at % side, at / side].map(|place| (place * 255 / side) as u8);
        [x, y, x ^ y]
    });
    Ok(Picture::new(side, side, pixels.collect())?)
}

/// Writes a copy of a GGUF model whose last control token is the placeholder of pictures.
fn with_picture_token(model: &Path, folder: &Path) -> Result<PathBuf> {
    let read = |source| Error::Read { path: model.to_owned(), source };
    let mut file = BufReader::new(File::open(model).map_err(read)?);
    let mut content = Content::read(&mut file).map_err(foretoken_model::Error::from)?;
    let types = content.metadata.get("tokenizer.ggml.token_type").cloned();
    let is_control = |value: &Value| value.to_i32().is_ok_and(|kind| kind == 3);
    let last = match types {
        Some(Value::Array(types)) => types.iter().rposition(is_control),
        _ => None,
    };
    let (Some(last), Some(Value::Array(tokens))) = (last, content.metadata.get_mut("tokenizer.ggml.tokens"))
    else {
        return Err(Error::Usage("expected a model with control tokens.".to_owned()));
    };
    tokens[last] = Value::String("<image>".to_owned());
    content.metadata.insert("tokenizer.chat_template".to_owned(), Value::String(TEMPLATE.to_owned()));
    let mut tensors = Vec::new();
    for name in content.tensor_infos.keys() {
        let tensor = content.tensor(&mut file, name, &Device::Cpu);
        tensors.push((name.as_str(), tensor.map_err(foretoken_model::Error::from)?));
    }
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    let metadata: Vec<_> = content.metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let path = folder.join("target.gguf");
    gguf_file::write(&mut File::create(&path)?, &metadata, &tensors).map_err(foretoken_model::Error::from)?;
    Ok(path)
}

/// Gain of drafts after a picture over their gain without one.
fn summary(all: &[Asked]) -> String {
    let ratio = |of: fn(&Gain) -> f64| {
        median(all.iter().map(|asked| of(&asked.with_picture) / of(&asked.without)).collect())
            .unwrap_or_default()
    };
    let differing = all.iter().filter(|asked| !(asked.without.same && asked.with_picture.same)).count();
    format!(
        "{} questions, {differing} with differing texts; with a picture over without, medians: speed-up {:.2}, \
         tokens a round {:.2}",
        all.len(),
        ratio(Gain::speedup),
        ratio(|gain| gain.per_round),
    )
}

impl Display for Encoded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { side, detail, embeddings, seconds } = self;
        write!(f, "{side} x {side} pixels, {detail} detail: {embeddings} embeddings in {seconds:.2} s")
    }
}

impl Display for Asked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let question: String = self.question.chars().take(40).collect();
        write!(f, "{question}: without {}; with a picture {}", self.without, self.with_picture)
    }
}

impl Display for Gain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { tokens, per_round, same, .. } = self;
        write!(f, "{tokens} tokens, {:.2}x, {per_round:.2} a round", self.speedup())?;
        write!(f, "{}", if *same { "" } else { ", TEXTS DIFFER" })
    }
}
