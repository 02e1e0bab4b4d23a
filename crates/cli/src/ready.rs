//! Loads the target and the draft for `chat` and `serve`: those named, or the default pair.

use foretoken_engine::session::{Form, Session};
use foretoken_model::ModelSource;

use crate::args::{DraftChoice, TalkArgs};
use crate::error::Result;
use crate::session::{choose_draft, library, load};

/// A loaded session for conversations.
pub struct Ready {
    /// Name or path of the target, as given.
    pub target: String,
    pub draft: DraftChoice,
    pub session: Session,
}

/// Loads the target that `args` name, or the default one, and its draft. `form` chooses the prompt
/// format.
///
/// # Errors
/// Those of opening and loading models.
pub fn ready(args: &TalkArgs, form: impl FnOnce(&ModelSource) -> Result<Form>) -> Result<Ready> {
    let target = target_name(args)?;
    let source = args.device.target.open(&target)?;
    let mut session = load(&source, form(&source)?, &args.device)?;
    args.vision.open(&mut session, &source)?;
    let draft = args.speculation.draft_or(default_draft(&target, &source)?);
    choose_draft(&mut session, &draft, args.speculation.stage.as_deref(), &args.device)?;
    if !args.speculation.cold {
        session.prepare();
    }
    Ok(Ready { target, draft, session })
}

/// Name or path of the target that `args` name, or of the default one.
///
/// # Errors
/// Errors of locating the models.
pub fn target_name(args: &TalkArgs) -> Result<String> {
    Ok(match &args.target {
        Some(target) => target.clone(),
        None => library()?.default_target().to_owned(),
    })
}

fn default_draft(target: &str, source: &ModelSource) -> Result<DraftChoice> {
    if source.mtp_head().is_ok() {
        return Ok(DraftChoice::Mtp);
    }
    let draft = library()?.draft_of(target);
    Ok(draft.map_or(DraftChoice::Ngram, |draft| DraftChoice::Model(draft.to_owned())))
}
