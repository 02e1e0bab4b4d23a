//! The log files of the application.

use std::path::Path;

use tracing_subscriber::EnvFilter;

/// Writes one log file per day into `folder` and keeps a week of them; `RUST_LOG` filters.
pub fn keep_log(folder: &Path) {
    let files = tracing_appender::rolling::Builder::new()
        .rotation(tracing_appender::rolling::Rotation::DAILY)
        .filename_prefix("foretoken")
        .filename_suffix("log")
        .max_log_files(7);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    if let Ok(files) = files.build(folder) {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!("{panic}");
            default(panic);
        }));
        // Another subscriber may be set already, in tests for instance.
        let _ =
            tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(files).try_init();
    }
}
