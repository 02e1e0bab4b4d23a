//! Lets Tauri read its configuration, and asks for the page, which it builds into the binary.

use std::path::Path;

fn main() {
    if !Path::new("../ui/dist/index.html").is_file() {
        println!("cargo::error=expected the built page in ui/dist, found none; run `make page` first");
        return;
    }
    tauri_build::build();
}
