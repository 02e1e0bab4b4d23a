//! Downloads from a local test hub that speaks the real protocol and can inject faults.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod faults;
mod permission;
mod repositories;
mod shelf;
mod taking_turns;
