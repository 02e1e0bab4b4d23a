//! `models pull`: downloads a model and shows the progress in one line.

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use foretoken_library::{Download, DownloadState, Downloads, Folders, Hub, size};
use serde::Serialize;

use crate::error::Result;
use crate::interrupt::{INTERRUPTED, Interrupt};
use crate::output;

/// Interval at which Ctrl-C is checked.
const POLL: Duration = Duration::from_millis(100);
/// Interval between progress lines where they cannot replace each other.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Repository on the hub, and optionally a file in it, with or without .gguf; without a file,
    /// the safetensors folder or the only GGUF file
    #[arg(value_name = "REPOSITORY[:FILE]")]
    model: String,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

/// A download as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    state: &'static str,
    done_bytes: u64,
    total_bytes: u64,
    bytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let interrupt = Interrupt::listen();
    let folders = Folders::locate()?;
    let (changes, changed) = mpsc::channel();
    let downloads = Downloads::open(&folders, Hub::new(&folders)?, move |downloads| {
        // Send errors are ignored: the command may have ended.
        let _ = changes.send(downloads.to_vec());
    })?;
    let (repository, file) = match args.model.split_once(':') {
        Some((repository, file)) => (repository, Some(file)),
        None => (args.model.as_str(), None),
    };
    let id = downloads.start(repository, file)?.id;
    interrupt.begin();
    let ended = watch(&downloads, &id, &changed, &interrupt, &mut Progress::new(args.json))?;
    match &ended.state {
        DownloadState::Done => {
            downloads.dismiss(&id)?;
            Ok(ExitCode::SUCCESS)
        }
        DownloadState::Paused { reason: None } => Ok(ExitCode::from(INTERRUPTED)),
        _ => Ok(ExitCode::FAILURE),
    }
}

/// Shows a download until it ends; Ctrl-C pauses it.
fn watch(
    downloads: &Downloads,
    id: &str,
    changed: &Receiver<Vec<Download>>,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<Download> {
    loop {
        if interrupt.stopped() {
            downloads.pause(id)?;
        }
        let all = match changed.recv_timeout(POLL) {
            Ok(all) => all,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => downloads.list(),
        };
        let Some(download) = all.into_iter().find(|download| download.id == id) else {
            continue;
        };
        if !download.state.is_active() {
            progress.end(&download)?;
            return Ok(download);
        }
        progress.show(&download)?;
    }
}

/// Progress as one changing line on a terminal, and as occasional lines elsewhere.
struct Progress {
    json: bool,
    terminal: bool,
    shown: Option<(Instant, DownloadState)>,
}

impl Progress {
    fn new(json: bool) -> Self {
        Self { json, terminal: stderr().is_terminal(), shown: None }
    }

    fn show(&mut self, download: &Download) -> Result<()> {
        if self.json {
            return output::json(&Line::from(download));
        }
        let news = self.shown.as_ref().is_none_or(|(when, state)| {
            self.terminal || *state != download.state || when.elapsed() > LINE_INTERVAL
        });
        if news {
            self.shown = Some((Instant::now(), download.state.clone()));
            let line = progress(download);
            if self.terminal { output::status(line) } else { output::note(line) }
        }
        Ok(())
    }

    fn end(&self, download: &Download) -> Result<()> {
        if self.json {
            return output::json(&Line::from(download));
        }
        if self.terminal {
            output::status("");
        }
        let Download { id, done_bytes, total_bytes, state, .. } = download;
        let (done, total) = (size(*done_bytes), size(*total_bytes));
        match state {
            DownloadState::Paused { reason: None } => {
                output::note(format_args!("paused at {done} of {total}; the same command resumes it"));
            }
            DownloadState::Paused { reason: Some(reason) } => {
                output::note(format_args!(
                    "error: {} Paused at {done} of {total}; the same command resumes it.",
                    output::harmless(reason)
                ));
            }
            DownloadState::Failed { reason } => {
                output::note(format_args!("error: {}", output::harmless(reason)))
            }
            _ => return output::line(format_args!("downloaded {id}, {total}")),
        }
        Ok(())
    }
}

/// "owner/name:file  1.2 of 4.9 GB, 24 %, 31.4 MB/s, 2 min left"
fn progress(download: &Download) -> String {
    let Download { id, done_bytes, total_bytes, bytes_per_second, .. } = download;
    let percent = 100 * done_bytes / (*total_bytes).max(1);
    let how = match download.state {
        DownloadState::Verifying => "verifying the checksum".to_owned(),
        DownloadState::Waiting => "waiting for another program that downloads this model".to_owned(),
        _ if *bytes_per_second >= 1.0 => {
            let seconds = total_bytes.saturating_sub(*done_bytes) as f64 / bytes_per_second;
            format!("{}/s, {} left", size(*bytes_per_second as u64), time(seconds))
        }
        _ => "starting".to_owned(),
    };
    let id = output::harmless(id);
    format!("{id}  {} of {}, {percent} %, {how}", size(*done_bytes), size(*total_bytes))
}

fn time(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl<'a> From<&'a Download> for Line<'a> {
    fn from(download: &'a Download) -> Self {
        let (state, reason) = match &download.state {
            DownloadState::Queued => ("queued", None),
            DownloadState::Running => ("running", None),
            DownloadState::Waiting => ("waiting", None),
            DownloadState::Verifying => ("verifying", None),
            DownloadState::Paused { reason } => ("paused", reason.as_deref()),
            DownloadState::Done => ("done", None),
            DownloadState::Failed { reason } => ("failed", Some(reason.as_str())),
        };
        Self {
            id: &download.id,
            state,
            done_bytes: download.done_bytes,
            total_bytes: download.total_bytes,
            bytes_per_second: download.bytes_per_second,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_has_no_control_characters_and_accepts_more_bytes_than_expected() {
        let download = Download {
            id: "owner/name:\u{1b}[2Jm.gguf".into(),
            repository: "owner/name".into(),
            file: None,
            done_bytes: 11,
            total_bytes: 10,
            bytes_per_second: 1.0,
            state: DownloadState::Running,
        };
        let line = progress(&download);
        assert!(line.starts_with("owner/name:\u{FFFD}[2Jm.gguf") && line.ends_with("0 s left"), "{line}");
    }
}
