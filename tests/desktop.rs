//! The tests of the real window. A binary of their own, so that they run alone: a window that shares the
//! cores with other tests is too slow to be waited for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod accessibility;
mod e2e;
mod finding;
mod seeing;
mod staying;
