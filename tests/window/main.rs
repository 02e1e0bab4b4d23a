//! Tests of the real window. They are a binary of their own, so that they run alone: a window that
//! shares its cores with other tests is too slow.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accessibility;
mod attaching;
mod beside;
mod connections;
mod contexts;
mod devices;
mod e2e;
mod embedding;
mod finding;
mod folders;
mod hostile_models;
mod login;
mod pictures;
mod programs;
mod quick;
mod reload;
mod remote;
mod right_to_left;
mod sampling;
mod scaling;
mod seeing;
mod serving;
mod staying;
mod tools;
mod tray;
mod updates;
mod wheel;
