//! A start that fails, tried again with a remedy for as long as the person wants. The shell shows the problem and passes
//! the answer on; nothing is decided there.

use crate::app::App;
pub use crate::start_problem::{Remedy, StartProblem};

/// Calls `start` until it works; `None` when the person gives up. Each time that it fails, `ask` shows the problem and
/// says whether to go on, with its remedy. Where there is none there is no going on.
pub fn insist(
    start: impl Fn() -> Result<App, StartProblem>,
    ask: impl Fn(&StartProblem) -> bool,
) -> Option<App> {
    let mut notices = Vec::new();
    let go_on = |problem: &StartProblem| {
        tracing::error!("no start: {}", problem.text);
        ask(problem)
    };
    loop {
        let problem = match start() {
            Ok(app) => {
                notices.into_iter().for_each(|notice| app.notify(notice));
                return Some(app);
            }
            Err(problem) => problem,
        };
        if !go_on(&problem) {
            return None;
        }
        match problem.remedy?.apply() {
            Ok(notice) => notices.extend(notice),
            Err(failed) if go_on(&failed) => (),
            Err(_) => return None,
        }
    }
}
