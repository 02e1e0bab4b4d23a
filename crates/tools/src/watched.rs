//! Standard output of a server, with limits: a message that is too long, or much text that is no
//! message, ends it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use crate::error::Error;
use crate::log::{Log, printable};

/// Longest message in bytes.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;

/// Most lines that are no message.
const MOST_NOISE: usize = 100;

/// Bytes that are kept of a line that is no message.
const KEPT: usize = 500;

/// Reader that ends at a fault. Lines that do not begin like a message are logged.
pub(crate) struct Watched<R> {
    inner: R,
    log: Log,
    fault: Arc<OnceLock<Error>>,
    /// Bytes of the current line.
    length: usize,
    /// First byte of the current line that is no white space.
    first: Option<u8>,
    /// Beginning of the current line, if it is no message.
    noise: Vec<u8>,
    noisy_lines: usize,
    first_noise: String,
}

impl<R> Watched<R> {
    pub(crate) fn new(inner: R, log: Log, fault: Arc<OnceLock<Error>>) -> Self {
        let (noise, first_noise) = (Vec::new(), String::new());
        Self { inner, log, fault, length: 0, first: None, noise, noisy_lines: 0, first_noise }
    }

    /// Processes bytes that were read; returns the fault if there is one.
    pub(crate) fn watch(&mut self, bytes: &[u8]) -> Option<Error> {
        for &byte in bytes {
            if byte == b'\n' {
                self.end_line();
                if self.noisy_lines > MOST_NOISE {
                    return Some(Error::Noise(self.first_noise.clone()));
                }
                continue;
            }
            self.length += 1;
            if self.length > LONGEST_MESSAGE {
                return Some(Error::TooLarge(LONGEST_MESSAGE));
            }
            if self.first.is_none() && !byte.is_ascii_whitespace() {
                self.first = Some(byte);
            }
            let is_message = matches!(self.first, None | Some(b'{' | b'['));
            if !is_message && self.noise.len() < KEPT {
                self.noise.push(byte);
            }
        }
        None
    }

    fn end_line(&mut self) {
        if !self.noise.is_empty() {
            let line = printable(&String::from_utf8_lossy(&self.noise));
            if self.first_noise.is_empty() {
                self.first_noise.clone_from(&line);
            }
            self.log.add(&line);
            self.noisy_lines += 1;
            self.noise.clear();
        }
        (self.length, self.first) = (0, None);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.fault.get().is_some() {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = polled
            && let Some(fault) = self.watch(&buffer.filled()[before..])
        {
            let _ = self.fault.set(fault);
            buffer.set_filled(before);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(text: &[u8]) -> (Option<Error>, Log) {
        let log = Log::default();
        let mut reader = Watched::new((), log.clone(), Arc::default());
        (text.chunks(7).find_map(|part| reader.watch(part)), log)
    }

    #[test]
    fn some_lines_that_are_no_message_are_logged_and_many_end_the_server() {
        let (fault, log) = watched(b"Listening...\n {\"id\": 1}\n\n[1]\n");
        assert_eq!((fault, log.all()), (None, vec!["Listening...".to_owned()]));
        let (fault, _) = watched(&b"noise\n".repeat(MOST_NOISE + 1));
        assert_eq!(fault, Some(Error::Noise("noise".to_owned())));
    }

    #[test]
    fn a_message_without_end_is_a_fault_whatever_its_bytes_are() {
        for byte in [b'{', 0, 0xff] {
            let (fault, _) = watched(&vec![byte; LONGEST_MESSAGE + 1]);
            assert_eq!(fault, Some(Error::TooLarge(LONGEST_MESSAGE)));
        }
    }
}
