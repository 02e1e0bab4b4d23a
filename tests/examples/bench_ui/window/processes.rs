//! What the window's processes take of the processor, by who takes it. Linux's /proc; starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Sub;
use std::path::Path;
use std::time::{Duration, Instant};

/// The kernel counts the time of a thread in these, whatever the clock.
const TICKS_PER_SECOND: f64 = 100.0;

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
        let children = children();
        let (mut engine, mut page) = (0.0, 0.0);
        let mut open = children.get(&driver).cloned().unwrap_or_default();
        while let Some(process) = open.pop() {
            open.extend(children.get(&process).into_iter().flatten());
            for (name, seconds) in threads(process) {
                let of_engine = name == "engine" || name.starts_with("foretoken-");
                *if of_engine { &mut engine } else { &mut page } += seconds;
            }
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

/// How long ago the application was started that the driver with this process id drives.
pub fn age(driver: u32) -> Duration {
    let application = children()[&driver][0];
    let (_, fields) = stat(&Path::new("/proc").join(application.to_string())).unwrap();
    let started = fields[19].parse::<f64>().unwrap() / TICKS_PER_SECOND;
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let now: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    Duration::from_secs_f64(now - started)
}

/// The processes that each process started.
fn children() -> BTreeMap<u32, Vec<u32>> {
    let mut children = BTreeMap::<u32, Vec<u32>>::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((_, fields)) = stat(&entry.path()) {
            children.entry(fields[1].parse().unwrap()).or_default().push(process);
        }
    }
    children
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

/// The name in a `stat` file and the fields behind it: state, parent and so on (proc(5)).
fn stat(folder: &Path) -> Option<(String, Vec<String>)> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    let (before, fields) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    Some((name.to_owned(), fields.split_whitespace().map(str::to_owned).collect()))
}
