//! A server as a child process: with a clean environment and a process group of its own, which
//! ends with this program.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::log::Log;

/// Time in which a server may end by itself once its input has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Variables of this program's environment that a server gets: what programs need to run and to
/// reach the network, nothing else.
const PASSED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TZ",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    // Windows.
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// See the module. Dropping kills the process.
pub(crate) struct Process {
    child: Box<dyn ChildWrapper>,
    /// Reads standard error into the log.
    reader: Option<JoinHandle<()>>,
    /// Working folder, unless a person named one.
    _folder: Option<TempDir>,
}

impl Process {
    /// Starts a server. Its standard error is logged.
    ///
    /// # Errors
    /// Returns `NoCommand` and `NotStarted`.
    pub(crate) fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        folder: Option<&Path>,
        log: &Log,
    ) -> Result<(Self, ChildStdin, ChildStdout)> {
        let failed =
            |error: io::Error| Error::NotStarted { command: command.to_owned(), reason: error.to_string() };
        let program = which::which(command).map_err(|_| Error::NoCommand(command.to_owned()))?;
        let own_folder = if folder.is_none() { Some(tempfile::tempdir().map_err(failed)?) } else { None };
        let mut process = Command::new(program);
        process.args(args).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(env);
        if let Some(folder) = folder.or(own_folder.as_ref().map(TempDir::path)) {
            process.current_dir(folder);
        }
        #[cfg(target_os = "linux")]
        end_with_this_program(&mut process);
        let mut wrapped = CommandWrap::from(process);
        wrapped.wrap(process_wrap::tokio::KillOnDrop);
        #[cfg(unix)]
        wrapped.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        wrapped.wrap(process_wrap::tokio::JobObject);
        let mut child = wrapped.spawn().map_err(failed)?;
        let (stdin, stdout) = (child.stdin().take(), child.stdout().take());
        let reader = child.stderr().take().map(|stderr| tokio::spawn(keep_lines(stderr, log.clone())));
        let (stdin, stdout) =
            stdin.zip(stdout).ok_or_else(|| failed(io::Error::other("it has no standard input")))?;
        Ok((Self { child, reader, _folder: own_folder }, stdin, stdout))
    }

    /// Ends the process and all that it started, by force if it does not end by itself. Its last
    /// lines are in the log then.
    pub(crate) async fn end(mut self) {
        let _ = timeout(GRACE, self.child.wait()).await;
        let _ = self.child.start_kill();
        let _ = timeout(GRACE, self.child.wait()).await;
        if let Some(reader) = self.reader.take() {
            let _ = timeout(GRACE, reader).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Kills the whole group.
        let _ = self.child.start_kill();
    }
}

/// Adds the lines of standard error to the log; a line without end is cut.
async fn keep_lines(stderr: ChildStderr, log: Log) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(4096).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => log.add(&String::from_utf8_lossy(&line)),
        }
    }
}

/// Lets Linux kill the process when the thread ends that starts it, which is that of all servers.
#[cfg(target_os = "linux")]
fn end_with_this_program(command: &mut Command) {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let parent = rustix::process::getpid();
    let arm = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // This program may have ended before.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls; it neither allocates nor
    // takes a lock.
    unsafe { command.pre_exec(arm) };
}
