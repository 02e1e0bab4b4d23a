//! Pictures that commands name by their files.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use foretoken_engine::session::Session;
use foretoken_model::child::Program;
use foretoken_model::{Conversation, Picture};
use foretoken_senses::picture::PictureReader;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

/// Reads a picture file.
///
/// # Errors
/// `Error::Read`; `Error::Picture` of the engine.
pub fn read(path: &Path) -> Result<Arc<Picture>> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(Arc::new(PictureReader::new(Some(&Program::This)).read(&bytes)?))
}

/// Computes the embeddings of a conversation's new pictures, unless `interrupt` stops it.
///
/// # Errors
/// Errors of [`Session::see`].
pub fn see(
    session: &mut Session,
    conversation: &Conversation<'_>,
    interrupt: Option<&Interrupt>,
) -> Result<()> {
    let stopped = || interrupt.is_some_and(Interrupt::stopped);
    let mut flow = |_| if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    Ok(session.see(conversation, &mut flow)?)
}
