//! The number of threads. The arithmetic reads it from the environment when it is first used, so a
//! program that is told another number starts itself again with the environment changed.

use std::num::NonZeroUsize;
use std::process::{Command, ExitCode};

use crate::error::{Error, Result};

const VARIABLES: [&str; 2] = ["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Makes the arithmetic use `threads`, or as many as it likes. `Some` is the exit code of the program
/// that did the work in this one's place.
pub fn apply(threads: Option<NonZeroUsize>) -> Result<Option<ExitCode>> {
    let Some(threads) = threads.map(|threads| threads.to_string()) else { return Ok(None) };
    if VARIABLES.iter().all(|name| std::env::var(name).is_ok_and(|value| value == threads)) {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(Error::Restart)?;
    let mut again = Command::new(program);
    again.args(std::env::args_os().skip(1)).envs(VARIABLES.map(|name| (name, &threads)));
    replace(again).map(Some)
}

#[cfg(unix)]
fn replace(mut command: Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(Error::Restart(command.exec()))
}

#[cfg(not(unix))]
fn replace(mut command: Command) -> Result<ExitCode> {
    let status = command.status().map_err(Error::Restart)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
