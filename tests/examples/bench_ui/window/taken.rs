//! What the window's processes take of the processor, by who takes it. Linux's /proc; starts nothing.

use std::fs;
use std::ops::Sub;
use std::time::Instant;

use foretoken_tests::processes::{TICKS_PER_SECOND, below, stat};

/// Seconds of the processor that a window had taken at some moment.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    at: Instant,
    /// The engine's thread and its team.
    engine: f64,
    /// All else: the page, the webview, the shell.
    page: f64,
}

/// Shares of one core.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    pub engine: f64,
    pub page: f64,
}

impl Taken {
    /// By the application among what the driver with this process id started, and by its own children.
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

    /// Between two moments.
    fn sub(self, before: Self) -> Shares {
        let seconds = (self.at - before.at).as_secs_f64();
        Shares { engine: (self.engine - before.engine) / seconds, page: (self.page - before.page) / seconds }
    }
}

/// Names of a process's threads and the seconds each has taken. One that ends meanwhile is left out.
fn threads(process: u32) -> Vec<(String, f64)> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let seconds = |(name, fields): (String, Vec<String>)| {
        let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
        (name, ticks / TICKS_PER_SECOND)
    };
    tasks.flatten().filter_map(|task| stat(&task.path())).map(seconds).collect()
}
