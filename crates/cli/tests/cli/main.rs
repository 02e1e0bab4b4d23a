//! The built program, run as a person or a script runs it, on the starter pair and on files made to
//! be refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod bad_input;
mod chat;
mod describe;
mod devices;
mod measure;
mod models;
mod program;
mod reply;
mod serve;
mod templates;
mod wrong_models;
