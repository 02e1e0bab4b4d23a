//! `make bench-ui`, on Linux: elsewhere the window has no driver.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

#[cfg(target_os = "linux")]
mod window;

fn main() {
    #[cfg(target_os = "linux")]
    window::run();
}
