//! Speed of replies while other programs keep the CPU busy, on all threads and on one.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use foretoken_engine::decoder::Request;
use foretoken_engine::session::Session;
use foretoken_forward::device;
use serde::Serialize;

use super::args::Args;
use super::numbers::number;
use super::prompts;
use super::runs::{Totals, write};
use crate::error::Result;
use crate::output;
use crate::session::{form, load};

/// Time to rest and to write after a busy program starts or stops, before anything is counted: the
/// engine needs a while to adapt.
const PAUSE: Duration = Duration::from_secs(4);
const WRITING: Duration = Duration::from_millis(500);

#[derive(Serialize)]
#[serde(tag = "type", rename = "bench_beside")]
struct Report {
    target: String,
    device: String,
    busy: usize,
    prompts: usize,
    repeats: u32,
    all_threads: Speeds,
    one_thread: Speeds,
}

/// Tokens per second without drafts; null if every reply ended in its first round.
#[derive(Serialize)]
struct Speeds {
    idle: Option<f64>,
    beside: Option<f64>,
    /// Speed beside busy programs over idle speed.
    ratio: Option<f64>,
}

/// Threads in endless loops, each like one busy program.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn start(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| {
            let mut turns = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                turns = black_box(turns.wrapping_add(1));
            }
        };
        let threads = (0..count).map(|_| {
            thread::spawn({
                let stop = Arc::clone(&stop);
                move || spin(stop)
            })
        });
        Self { threads: threads.collect(), stop }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The loop cannot panic.
            let _ = thread.join();
        }
    }
}

/// The target on all threads, or on one.
struct Side {
    session: Session,
    idle: Totals,
    beside: Totals,
}

pub fn run(target: &str, busy: NonZeroUsize, texts: &[String], base: &Request, args: &Args) -> Result<()> {
    let source = args.run.device.target.open(target)?;
    let side = || -> Result<Side> {
        let session = load(&source, form(&source, args.run.raw)?, &args.run.device)?;
        Ok(Side { session, idle: Totals::default(), beside: Totals::default() })
    };
    let all_threads = side()?;
    all_threads.session.remarks().for_each(output::note);
    device::use_threads(NonZeroUsize::MIN);
    let mut sides = [all_threads, side()?];
    let requests = prompts::requests(&sides[0].session, texts, base)?;
    for repeat in 1..=args.run.repeats {
        round(&mut sides, &requests, |side| &mut side.idle)?;
        let programs = Busy::start(busy.get());
        round(&mut sides, &requests, |side| &mut side.beside)?;
        drop(programs);
        let [all, one] = sides.each_ref().map(|side| (side.idle.last(), side.beside.last()));
        output::note(format_args!(
            "repeat {repeat} of {}: tokens/s {} idle, {} beside; on one thread {}, {}",
            args.run.repeats, all.0, all.1, one.0, one.1
        ));
    }
    let device = sides[0].session.devices();
    let [all_threads, one_thread] = sides.map(Side::speeds);
    let report = Report {
        target: target.to_owned(),
        device,
        busy: busy.get(),
        prompts: requests.len(),
        repeats: args.run.repeats,
        all_threads,
        one_thread,
    };
    if args.run.json { output::json(&report) } else { output::text(&report.table()) }
}

/// Writes all replies on both sides in turn.
fn round(sides: &mut [Side], requests: &[Request], totals: fn(&mut Side) -> &mut Totals) -> Result<()> {
    thread::sleep(PAUSE);
    for side in &mut *sides {
        let start = Instant::now();
        while start.elapsed() < WRITING {
            write(&mut side.session, &requests[0])?;
        }
    }
    for request in requests {
        for side in &mut *sides {
            let reply = write(&mut side.session, request)?;
            totals(side).add(&reply);
        }
    }
    sides.iter_mut().for_each(|side| totals(side).end_repeat());
    Ok(())
}

impl Side {
    fn speeds(self) -> Speeds {
        let [idle, beside] = [self.idle, self.beside].map(|totals| totals.plain().tokens_per_second);
        Speeds { idle, beside, ratio: beside.zip(idle).map(|(beside, idle)| beside / idle) }
    }
}

impl Report {
    fn table(&self) -> String {
        let Self { target, device, busy, prompts, repeats, .. } = self;
        let programs = if *busy == 1 { "program" } else { "programs" };
        let line = |name: &str, Speeds { idle, beside, ratio }: &Speeds| {
            let [idle, beside] = [idle, beside].map(|speed| number(*speed, 1));
            format!("{name:14}{idle:>8}  {beside:>8}  {:>5}\n", number(*ratio, 2))
        };
        format!(
            "{target} without drafts beside {busy} busy {programs}, {device}\n\
             medians of {repeats} repeats over {prompts} prompts, tokens/s\n\n\
             {:14}{:>8}  {:>8}  {:>5}\n{}{}",
            "",
            "idle",
            "beside",
            "ratio",
            line("all threads", &self.all_threads),
            line("one thread", &self.one_thread)
        )
    }
}
