//! Processes by Linux's /proc: their parents and start times. Starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Clock ticks per second, in which the kernel counts the time of threads.
pub const TICKS_PER_SECOND: f64 = 100.0;

/// All descendants of the process `root`.
pub fn below(root: u32) -> Vec<u32> {
    let mut children = BTreeMap::<u32, Vec<u32>>::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((_, fields)) = stat(&entry.path()) {
            children.entry(fields[1].parse().unwrap()).or_default().push(process);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(process) = found.get(at) {
        found.extend(children.get(process).into_iter().flatten());
        at += 1;
    }
    found.split_off(1)
}

/// Returns whether a process runs; one that has ended may wait for its parent.
pub fn is_alive(process: u32) -> bool {
    let ended = |fields: Vec<String>| ["Z", "X"].contains(&fields[0].as_str());
    stat(&Path::new("/proc").join(process.to_string())).is_some_and(|(_, fields)| !ended(fields))
}

/// Time since a process was started.
pub fn age(process: u32) -> Duration {
    let (_, fields) = stat(&Path::new("/proc").join(process.to_string())).unwrap();
    let started = fields[19].parse::<f64>().unwrap() / TICKS_PER_SECOND;
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let now: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    Duration::from_secs_f64(now - started)
}

/// The name in the `stat` file of a process or thread, and the fields behind it: state, parent and
/// so on (proc(5)).
pub fn stat(folder: &Path) -> Option<(String, Vec<String>)> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    // The name may contain any character.
    let (before, fields) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    Some((name.to_owned(), fields.split_whitespace().map(str::to_owned).collect()))
}
