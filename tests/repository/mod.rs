//! The repository itself: documents, language, imports, `unsafe`, dependencies.

mod circles;
mod docs;
mod icons;
mod language;
mod libraries;
mod signatures;
mod supply_chain;
mod support;
mod unsafe_blocks;
