//! Answers of a child process, each within a time. On Unix the caller itself waits for them; other
//! systems cannot limit the time of reading from a pipe, and have a thread for it.

use std::io::Read;
use std::process::ChildStdout;
use std::time::Duration;

use super::LONGEST_ANSWER;

/// Reason why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    TooLong,
    /// The process ended, or its answer is longer than [`LONGEST_ANSWER`].
    Ended,
}

#[cfg(unix)]
pub use by_polling::Answers;
#[cfg(not(unix))]
pub use on_a_thread::Answers;

#[cfg(unix)]
mod by_polling {
    use std::io::{Error, ErrorKind};
    use std::time::Instant;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    use super::{ChildStdout, Duration, LONGEST_ANSWER, Missing, Read};

    /// Bytes that are read at once: what a pipe holds.
    const PART: usize = 64 << 10;

    pub struct Answers {
        stdout: ChildStdout,
        part: Box<[u8]>,
    }

    impl Answers {
        /// # Errors
        /// None on this system.
        pub fn of(stdout: ChildStdout) -> Result<Self, Error> {
            Ok(Self { stdout, part: vec![0; PART].into() })
        }

        /// Returns the next line, with its end. One request has one answer, so nothing follows it.
        ///
        /// # Errors
        /// Both reasons why there is none.
        pub fn next(&mut self, time: Duration) -> Result<Vec<u8>, Missing> {
            let end = Instant::now() + time;
            let mut answer = Vec::new();
            while !answer.ends_with(b"\n") {
                self.wait(end)?;
                match self.stdout.read(&mut self.part) {
                    Ok(read @ 1..) => answer.extend_from_slice(&self.part[..read]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return Err(Missing::Ended),
                }
                if answer.len() as u64 > LONGEST_ANSWER {
                    return Err(Missing::Ended);
                }
            }
            Ok(answer)
        }

        /// Waits until something can be read.
        fn wait(&self, end: Instant) -> Result<(), Missing> {
            loop {
                let left = end.saturating_duration_since(Instant::now());
                let left = Timespec::try_from(left).map_err(|_| Missing::TooLong)?;
                match poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&left)) {
                    Ok(0) => return Err(Missing::TooLong),
                    Ok(_) => return Ok(()),
                    Err(Errno::INTR) => {}
                    Err(_) => return Err(Missing::Ended),
                }
            }
        }
    }
}

#[cfg(not(unix))]
mod on_a_thread {
    use std::io::{BufRead, BufReader, Error};
    use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
    use std::thread;

    use super::{ChildStdout, Duration, LONGEST_ANSWER, Missing, Read};

    pub struct Answers(Receiver<Vec<u8>>);

    impl Answers {
        /// # Errors
        /// The system's error if the thread cannot be started.
        pub fn of(stdout: ChildStdout) -> Result<Self, Error> {
            let (sender, answers) = mpsc::channel();
            thread::Builder::new().name("untrusted".to_owned()).spawn(move || forward(stdout, &sender))?;
            Ok(Self(answers))
        }

        /// Returns the next line, with its end.
        ///
        /// # Errors
        /// Both reasons why there is none.
        pub fn next(&mut self, time: Duration) -> Result<Vec<u8>, Missing> {
            self.0.recv_timeout(time).map_err(|error| match error {
                RecvTimeoutError::Timeout => Missing::TooLong,
                RecvTimeoutError::Disconnected => Missing::Ended,
            })
        }
    }

    /// Forwards answers until either side ends.
    fn forward(stdout: ChildStdout, answers: &Sender<Vec<u8>>) {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut answer = Vec::new();
            let read = stdout.by_ref().take(LONGEST_ANSWER).read_until(b'\n', &mut answer);
            if read.is_err() || !answer.ends_with(b"\n") || answers.send(answer).is_err() {
                return;
            }
        }
    }
}
