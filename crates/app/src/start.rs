//! Start of the application with recovery: retried with a remedy while the user agrees. The shell
//! shows the problem and passes on the answer.

use crate::app::App;
pub use crate::start_problem::{Remedy, StartProblem};

/// Calls `start` until it works; `None` if the user quits. After each failure `ask` shows the
/// problem and returns whether to retry with its remedy. A problem without a remedy ends the loop.
pub fn insist(
    start: impl Fn() -> Result<App, StartProblem>,
    ask: impl Fn(&StartProblem) -> bool,
) -> Option<App> {
    let mut notices = Vec::new();
    let go_on = |problem: &StartProblem| {
        tracing::error!("the start failed: {}", problem.text);
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
