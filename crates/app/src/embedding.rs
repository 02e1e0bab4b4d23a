//! The embedding model of the settings, loaded when it is first used.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use foretoken_library::Library;
use foretoken_model::embedding::TextEmbedder;
use foretoken_senses::embedding::EmbeddingModel;
use foretoken_server::model_name;

use crate::ipc::Settings;
use crate::lock::lock;

/// An embedding model that may be chosen and loaded.
#[derive(Default)]
pub(crate) struct Embedder(Mutex<State>);

/// A model that is not loaded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unloaded {
    /// Name for people and programs.
    name: String,
    path: PathBuf,
}

impl Unloaded {
    /// The model that the settings name; `None` without one. Loading a model that is gone fails,
    /// which its status shows.
    pub(crate) fn of(settings: &Settings, library: &Library) -> Option<Self> {
        let id = &settings.embedding_model;
        if id.is_empty() {
            return None;
        }
        let path = library.resolve(id).unwrap_or_else(|_| id.into());
        let installed = library.installed().into_iter().find(|model| model.id == *id);
        let name = installed.map_or_else(|| id.clone(), |model| model.name);
        Some(Self { name: model_name(&name), path })
    }
}

#[derive(Default)]
struct State {
    chosen: Option<Unloaded>,
    /// The loaded model, or why it cannot be loaded; `None` before its first use.
    loaded: Option<Result<Arc<dyn TextEmbedder>, String>>,
}

impl Embedder {
    /// Chooses a model, or none; returns whether it was another one before.
    pub(crate) fn choose(&self, chosen: Option<Unloaded>) -> bool {
        let mut state = lock(&self.0);
        let changes = state.chosen != chosen;
        if changes {
            *state = State { chosen, loaded: None };
        }
        changes
    }

    /// Returns the chosen model, which is loaded now if it was not; `None` without one and for one
    /// that cannot be loaded.
    pub(crate) fn model(&self) -> Option<Arc<dyn TextEmbedder>> {
        let mut state = lock(&self.0);
        let Unloaded { name, path } = state.chosen.clone()?;
        let load = || {
            let loaded = EmbeddingModel::open(&path, &name);
            let model = loaded.map(|model| Arc::new(model) as Arc<dyn TextEmbedder>);
            model.map_err(|error| {
                tracing::warn!("the embedding model cannot be loaded: {error}");
                error.to_string()
            })
        };
        state.loaded.get_or_insert_with(load).as_ref().ok().cloned()
    }

    /// Returns the name of the chosen model, which is not loaded for that.
    pub(crate) fn name(&self) -> Option<String> {
        lock(&self.0).chosen.as_ref().map(|chosen| chosen.name.clone())
    }

    /// Returns whether this is the chosen model.
    pub(crate) fn has(&self, model: &Arc<dyn TextEmbedder>) -> bool {
        let state = lock(&self.0);
        matches!(&state.loaded, Some(Ok(loaded)) if Arc::ptr_eq(loaded, model))
    }

    /// Returns why the chosen model cannot be used, if it was tried.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.0).loaded.as_ref()?.as_ref().err().cloned()
    }

    /// Puts a model in place of the chosen one.
    #[cfg(test)]
    pub(crate) fn put(&self, model: Arc<dyn TextEmbedder>) {
        let chosen = Unloaded { name: model.name().to_owned(), path: PathBuf::new() };
        *lock(&self.0) = State { chosen: Some(chosen), loaded: Some(Ok(model)) };
    }
}
