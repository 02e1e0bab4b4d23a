//! The built program as a person or a script runs it, on the starter pair and on broken files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod bad_input;
mod broken_models;
mod chat;
mod describe;
mod devices;
mod files;
mod inspection;
mod measure;
mod models;
mod pictures;
mod program;
mod reply;
mod serve;
mod templates;
mod tools;
