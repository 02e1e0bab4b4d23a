//! A hub on this computer for manual tests: `cargo run --example hub -- FOLDER [BYTES_PER_SECOND]`,
//! then set HF_ENDPOINT as printed. The folder holds repositories as `owner/name`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;

use foretoken_tests::hub::{Faults, Hub};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".into());
    let bytes_per_second = arguments.next().map(|speed| speed.parse().unwrap());
    let hub = Hub::start(Path::new(&folder));
    hub.set(Faults { bytes_per_second, ..Faults::default() });
    println!("HF_ENDPOINT={}", hub.url);
    loop {
        std::thread::park();
    }
}
