//! `foretoken-bench contexts`: a text of some thousand tokens that is put aside, written, read and
//! resumed, and replies while another thread writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use foretoken_cli::args::{DraftChoice, PairDeviceArgs};
use foretoken_cli::commands::bench::numbers::{median, number};
use foretoken_cli::error::{Error, Result};
use foretoken_cli::{output, session};
use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::session::{Form, Session, TextBudget, TextToSave};
use foretoken_engine::trace::Summary;
use foretoken_library::{Contexts, Folders};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Special};
use foretoken_persistence::{ContextWriter, ModelFiles};
use serde::Serialize;

/// Name of the text.
const NAME: &str = "text";

#[derive(Debug, clap::Args)]
pub struct ContextsArgs {
    /// Model
    target: PathBuf,
    /// Text, longer than `--length`
    text: PathBuf,
    /// Draft model or draft head
    #[arg(long, value_name = "MODEL", default_value = "none")]
    draft: DraftChoice,
    /// Length in tokens
    #[arg(long, value_name = "N", default_value = "7000", value_parser = clap::value_parser!(u32).range(256..))]
    length: u32,
    /// Length of the replies that are timed, in tokens
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(2..))]
    tokens: u32,
    /// Pairs of replies, one of which is written while another thread writes
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Folder to write to [default: one for temporary files]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub device: PairDeviceArgs,
}

/// Times in milliseconds.
#[derive(Debug, Serialize)]
struct Figures {
    length: u32,
    /// First token with the whole text to read.
    read_ms: f64,
    /// The text put aside, and first token once it is resumed.
    put_aside_ms: f64,
    resumed_ms: f64,
    /// The text written and read, checksums included, and its bytes.
    written_ms: f64,
    restored_ms: f64,
    bytes: u64,
    /// First token once the text is restored by a program that loaded the model again.
    after_restart_ms: f64,
    /// A reply's time beside a thread that writes over its time alone: median, smallest, largest.
    beside_writing: [f64; 3],
}

impl ContextsArgs {
    /// Measures one text.
    ///
    /// # Errors
    /// Errors of the models, the text and the folder.
    pub fn run(&self) -> Result<()> {
        let temporary = tempfile::tempdir().map_err(|source| self.unwritable(source))?;
        let folder = self.folder.as_deref().unwrap_or(temporary.path());
        let files = Contexts::new(&Folders::at(folder.join("once")));
        let mut session = self.load()?;
        let prompt = self.prompt(&session)?;

        let read_ms = first_token(&mut session, &prompt)?;
        let (put_aside_ms, ()) = timed(|| session.put_text_aside());
        first_token(&mut session, &prompt[..1])?;
        let resumed_ms = first_token(&mut session, &prompt)?;
        let text = session.text_to_save();
        let mut text = text.ok_or_else(|| Error::Usage("this engine cannot save a text.".to_owned()))?;
        files.hurry(true);
        let (written_ms, written) = timed(|| save(&mut text, &files));
        written.map_err(|source| self.unwritable(source))?;
        let beside_writing = self.beside_writing(&mut session, &prompt, &folder.join("often"))?;
        drop(session);

        let mut session = self.load()?;
        let (restored_ms, restored) = timed(|| {
            let files = ModelFiles(files.of_model(session.identity()));
            session.restore(NAME, &files, &|| true)
        });
        restored.map_err(|source| Error::Read { path: folder.to_owned(), source })?;
        let after_restart_ms = restored_ms + first_token(&mut session, &prompt)?;
        let bytes = files.bytes();
        let _ = files.clear();
        let figures = Figures {
            length: self.length,
            read_ms,
            put_aside_ms,
            resumed_ms,
            written_ms,
            restored_ms,
            bytes,
            after_restart_ms,
            beside_writing,
        };
        if self.json { output::json(&figures) } else { output::line(figures.line()) }
    }

    fn load(&self) -> Result<Session> {
        let source = ModelSource::open(&self.target)?;
        let mut session = session::load(&source, Form::Raw, &self.device)?;
        session.keep_texts(TextBudget::Bytes(usize::MAX));
        session::choose_draft(&mut session, &self.draft, None, &self.device)?;
        Ok(session)
    }

    fn prompt(&self, session: &Session) -> Result<Vec<TokenId>> {
        let read = |source| Error::Read { path: self.text.clone(), source };
        let text = fs::read_to_string(&self.text).map_err(read)?;
        let mut tokens = session.tokenizer().encode(&text, Special::Ignore)?;
        if tokens.len() < self.length as usize {
            let found = tokens.len();
            let path = self.text.display();
            return Err(Error::Usage(format!("expected {} tokens in {path}, found {found}.", self.length)));
        }
        tokens.truncate(self.length as usize);
        Ok(tokens)
    }

    /// Ratios of the times of replies with and without a thread that writes meanwhile.
    fn beside_writing(&self, session: &mut Session, prompt: &[TokenId], folder: &Path) -> Result<[f64; 3]> {
        let mut writer = ContextWriter::new(&Folders::at(folder));
        let mut ratios = Vec::new();
        for pair in 0..self.repeats {
            let mut times = [0.0; 2];
            // Which one comes first alternates.
            for turn in 0..2 {
                let writes = (pair + turn) % 2 == 1;
                let text = session.text_to_save().filter(|_| writes);
                let ended = Arc::new(AtomicBool::new(false));
                if let Some(text) = text {
                    let ended = Arc::clone(&ended);
                    writer.spawn("the text could not be written", move |files| {
                        write_often(text, files, &ended)
                    });
                }
                let summary = reply(session, prompt, self.tokens);
                ended.store(true, Ordering::Relaxed);
                writer.finish();
                let Summary { elapsed_ms, ttft_ms, .. } = summary?;
                times[usize::from(writes)] = elapsed_ms - ttft_ms;
            }
            ratios.push(times[1] / times[0]);
        }
        ratios.sort_by(f64::total_cmp);
        let ends = [ratios.first(), ratios.last()].map(|end| end.copied().unwrap_or(1.0));
        Ok([median(ratios).unwrap_or(1.0), ends[0], ends[1]])
    }

    fn unwritable(&self, source: io::Error) -> Error {
        let path = self.folder.clone().unwrap_or_else(std::env::temp_dir);
        Error::Read { path, source }
    }
}

impl Figures {
    fn line(&self) -> String {
        let rate = |ms: f64| number(Some(self.bytes as f64 / ms / 1e3), 0);
        let [beside, least, most] = self.beside_writing;
        format!(
            "{} tokens, {:.1} MB: first token {:.0} ms; put aside in {:.3} ms, then {:.0} ms; written in {:.0} ms ({} \
             MB/s), read in {:.0} ms ({} MB/s); first token after a restart {:.0} ms; replies beside writing {beside:.3} \
             of their time ({least:.3} to {most:.3})",
            self.length,
            self.bytes as f64 / 1e6,
            self.read_ms,
            self.put_aside_ms,
            self.resumed_ms,
            self.written_ms,
            rate(self.written_ms),
            self.restored_ms,
            rate(self.restored_ms),
            self.after_restart_ms,
        )
    }
}

/// Runs `work`; returns its time in milliseconds, too.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e3, result)
}

/// Writes a greedy reply and returns its summary.
fn reply(session: &mut Session, prompt: &[TokenId], tokens: u32) -> Result<Summary> {
    let mut request = Request { ignore_end: true, ..Request::new(prompt.to_vec()) };
    request.max_tokens = Some(tokens as usize);
    request.sampling.temperature = 0.0;
    let mut go_on = |_: Progress<'_>| std::ops::ControlFlow::Continue(());
    Ok(session.reply(&request, &mut go_on)?.summary)
}

/// Milliseconds to the first token of a reply.
fn first_token(session: &mut Session, prompt: &[TokenId]) -> Result<f64> {
    let (ms, summary) = timed(|| reply(session, prompt, 1));
    summary.map(|_| ms)
}

fn save(text: &mut TextToSave, files: &Contexts) -> io::Result<()> {
    let model = text.target();
    text.save(NAME, &ModelFiles(files.of_model(model)))
}

/// Writes the text until `ended`, all pages each time.
fn write_often(mut text: TextToSave, files: &Contexts, ended: &AtomicBool) -> io::Result<()> {
    while !ended.load(Ordering::Relaxed) {
        save(&mut text, files)?;
        files.clear()?;
    }
    Ok(())
}
