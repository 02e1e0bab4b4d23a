//! Options for pictures.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use foretoken_engine::session::Session;
use foretoken_model::{Detail, ModelSource, VisionSource};
use foretoken_senses::vision::Tower;

use crate::error::Result;
use crate::output;

/// How closely pictures are looked at.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum DetailArg {
    /// About 100 embeddings a picture
    Low,
    /// About 256 embeddings a picture
    #[default]
    Normal,
    /// As many as the model was trained with; for small print
    High,
}

/// Options for models that see.
#[derive(Debug, Clone, Args)]
pub struct VisionArgs {
    /// Vision file (mmproj) of the target [default: the one in the target's folder, if it is the
    /// only one that fits]
    #[arg(long, value_name = "FILE", help_heading = "Pictures")]
    vision: Option<PathBuf>,
    /// How closely pictures are looked at: more detail takes longer
    #[arg(long, value_enum, default_value_t, help_heading = "Pictures")]
    detail: DetailArg,
}

impl VisionArgs {
    pub fn detail(&self) -> Detail {
        match self.detail {
            DetailArg::Low => Detail::Low,
            DetailArg::Normal => Detail::Normal,
            DetailArg::High => Detail::High,
        }
    }

    /// These options for another target.
    #[must_use]
    pub fn without_file(&self) -> Self {
        Self { vision: None, ..self.clone() }
    }

    /// Gives the session the vision model of its target, if there is one.
    ///
    /// # Errors
    /// Errors of opening the named file; one that was found is only reported.
    pub fn open(&self, session: &mut Session, source: &ModelSource) -> Result<()> {
        let language = source.config()?;
        let open = |path: &Path, session: &mut Session| -> Result<()> {
            let tower = Tower::open(path, session.tokenizer(), language)?;
            session.set_vision(Some(Box::new(tower)));
            Ok(())
        };
        if let Some(path) = &self.vision {
            return open(path, session);
        }
        if let Some(path) = VisionSource::beside(source.path(), language)
            && let Err(error) = open(&path, session)
        {
            output::note(format_args!("{}: {error}", path.display()));
        }
        Ok(())
    }
}
