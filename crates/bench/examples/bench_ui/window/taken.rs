//! Processor time of the window's processes, by part, from Linux's /proc. Starts nothing.

use std::fs;
use std::ops::Sub;
use std::time::Instant;

use foretoken_tests::processes::{TICKS_PER_SECOND, below, stat};

/// Processor time of a window in seconds, at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    at: Instant,
    /// Time of the engine's thread and its team.
    engine: f64,
    /// Time of everything else: the page, the webview, the shell.
    page: f64,
}

/// Shares of one core.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    pub engine: f64,
    pub page: f64,
}

impl Taken {
    /// Reads the times of the application, which the driver with this process id started, and of
    /// its child processes.
    pub fn by_window(driver: u32) -> Self {
        let (mut engine, mut page) = (0.0, 0.0);
        for (name, seconds) in below(driver).into_iter().flat_map(threads) {
            let of_engine = name == "engine" || name.starts_with("foretoken-");
            *if of_engine { &mut engine } else { &mut page } += seconds;
        }
        Self { at: Instant::now(), engine, page }
    }
}

impl Sub for Taken {
    type Output = Shares;

    /// Shares between two moments.
    fn sub(self, before: Self) -> Shares {
        let seconds = (self.at - before.at).as_secs_f64();
        Shares { engine: (self.engine - before.engine) / seconds, page: (self.page - before.page) / seconds }
    }
}

/// Names of a process's threads, and the seconds that each has used. Threads that end meanwhile are
/// left out.
fn threads(process: u32) -> Vec<(String, f64)> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let seconds = |(name, fields): (String, Vec<String>)| {
        let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
        (name, ticks / TICKS_PER_SECOND)
    };
    tasks.flatten().filter_map(|task| stat(&task.path())).map(seconds).collect()
}
