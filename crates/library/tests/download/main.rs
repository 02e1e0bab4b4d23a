//! Downloads from a hub on this computer that speaks the real one's protocol, and misbehaves on demand.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod faults;
mod permission;
mod repositories;
mod shelf;
mod taking_turns;
