//! Models that requests can name, and the options that each is loaded with.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use foretoken_engine::inspection::Inspector;
use foretoken_engine::session::{Form, PromptEncoder};
use foretoken_model::error::Error as EngineError;
use foretoken_model::{ModelSource, Renderer};
use foretoken_server::{Order, PromptReader, Refusal, model_name};

use crate::args::TalkArgs;
use crate::error::{Error, Result};
use crate::session::{form, library};

/// Models that requests can name; the first one replies to requests without a name until another
/// one is loaded.
pub struct ServedModels {
    models: Vec<ServedModel>,
    /// Prompt reader of the model that was used last.
    reader: Mutex<Option<NamedReader>>,
}

struct ServedModel {
    /// Public name.
    name: String,
    options: TalkArgs,
}

struct NamedReader {
    model: String,
    reader: PromptReader,
}

impl ServedModels {
    /// The model `target` with the options `talk`; with `all`, also every other model on this
    /// computer that can be a target, each with its own draft.
    ///
    /// # Errors
    /// Errors of locating the models.
    pub fn new(talk: &TalkArgs, target: &str, all: bool) -> Result<Self> {
        let options = TalkArgs { target: Some(target.to_owned()), ..talk.clone() };
        let first = ServedModel { name: model_name(target), options };
        let mut models = vec![first];
        if all {
            models.extend(others(talk)?);
        }
        let mut names = HashSet::new();
        models.retain(|model| names.insert(model.name.clone()));
        Ok(Self { models, reader: Mutex::default() })
    }

    /// Public name of the first model.
    pub fn first(&self) -> &str {
        &self.models[0].name
    }

    pub fn names(&self) -> Vec<String> {
        self.models.iter().map(|model| model.name.clone()).collect()
    }

    /// Options of the model `name`.
    ///
    /// # Errors
    /// `Error::Usage` for a name that is not served.
    pub fn options(&self, name: &str) -> Result<&TalkArgs> {
        let found = self.models.iter().find(|model| model.name == name);
        let unknown = || Error::Usage(format!("The model '{name}' is not served."));
        found.map(|model| &model.options).ok_or_else(unknown)
    }

    /// Keeps the prompt reader of a loaded model.
    pub fn set_reader(&self, model: &str, reader: PromptReader) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(NamedReader { model: model.to_owned(), reader });
    }

    /// Number of tokens of an order's prompt for `model`, which need not be loaded.
    ///
    /// # Errors
    /// Those of a reply to it.
    pub fn count(&self, model: &str, order: &Order) -> std::result::Result<usize, Refusal> {
        self.reader(model).map_err(|error| not_loaded(model, &error))?.count(order)
    }

    fn reader(&self, model: &str) -> Result<PromptReader> {
        let kept = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.model == model) {
            return Ok(kept.reader.clone());
        }
        drop(kept);
        let reader = open_reader(self.options(model)?)?;
        self.set_reader(model, reader.clone());
        Ok(reader)
    }
}

/// Refusal of a request for a model that cannot be loaded.
pub fn not_loaded(model: &str, error: &Error) -> Refusal {
    Refusal::failed(format!("The model '{model}' cannot be loaded: {error}"))
}

/// Models on this computer that can be a target.
fn others(talk: &TalkArgs) -> Result<Vec<ServedModel>> {
    let inspector = Inspector::beside(&Renderer::this_program());
    let installed = library()?.installed().into_iter();
    let targets = installed
        .filter(|model| inspector.inspect(&model.path).is_ok_and(|inspected| inspected.problem.is_none()));
    Ok(targets
        .map(|model| ServedModel { name: model_name(&model.name), options: talk.for_target(model.id) })
        .collect())
}

/// Opens the tokenizer and the template of a model without its weights.
fn open_reader(options: &TalkArgs) -> Result<PromptReader> {
    let target = options.target.as_deref().unwrap_or_default();
    let source = options.device.target.open(target)?;
    let trained = source.config()?.context;
    let encoder = PromptEncoder {
        tokenizer: Arc::new(source.tokenizer()?),
        context: options.device.context(trained)?.unwrap_or(trained),
        pictures: None,
    };
    let form = form_if_any(&source)?;
    let thinking = options.thinking.of(&form);
    Ok(PromptReader::new(source.path().to_owned(), Arc::new(form), encoder, thinking))
}

/// The prompt format; text completion also works without a chat template.
pub fn form_if_any(source: &ModelSource) -> Result<Form> {
    match form(source, false) {
        Err(Error::Engine(EngineError::NoTemplate { .. })) => Ok(Form::Raw),
        form => form,
    }
}
