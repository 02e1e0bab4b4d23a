//! `models`: lists, downloads and removes models, and lists known pairs.

use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::process::ExitCode;

use foretoken_engine::inspection::Inspector;
use foretoken_library::{CatalogueModel, Installed, Kind, catalogue, size};
use foretoken_model::Renderer;
use serde::Serialize;

use super::pull;
use crate::error::{Error, Result};
use crate::output;
use crate::session::library;

#[derive(Debug, clap::Subcommand)]
pub enum Models {
    /// List the models that come with this program, those in the models folder, those in the hub's
    /// cache, and those of LM Studio, Ollama, Jan, GPT4All and llama.cpp
    List {
        /// Print JSON, one object per line, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// List known pairs: small models that draft for larger ones
    Catalogue {
        /// Print JSON, one object per line, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Download a model into the hub's cache, or continue a download
    Pull(pull::Args),
    /// Delete a model from the disk
    Rm {
        /// Name, as printed by `models list`
        name: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct Line {
    name: String,
    /// `None` if the file cannot be opened, see `problem`.
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    path: String,
    kind: &'static str,
    /// Program that the model belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'static str>,
    bytes: u64,
}

pub fn run(command: &Models) -> Result<ExitCode> {
    match command {
        Models::List { json } => list(*json)?,
        Models::Catalogue { json } => show_catalogue(*json)?,
        Models::Pull(args) => return pull::run(args),
        Models::Rm { name, yes } => remove(name, *yes)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<()> {
    let inspector = Inspector::beside(&Renderer::this_program());
    for model in library()?.installed() {
        let line = Line::new(model, &inspector);
        if json {
            output::json(&line)?;
        } else {
            let label = line.label.as_ref().or(line.problem.as_ref()).map_or("", String::as_str);
            output::line(format_args!(
                "{:40} {:>10}  {label:40}  {}",
                line.name,
                size(line.bytes),
                line.path
            ))?;
        }
    }
    Ok(())
}

impl Line {
    fn new(model: Installed, inspector: &Inspector) -> Self {
        let kind = match model.kind {
            Kind::Bundled => "bundled",
            Kind::Local => "local",
            Kind::HubCache => "hub_cache",
            Kind::Program(_) => "program",
        };
        let program = if let Kind::Program(program) = model.kind { Some(program.name()) } else { None };
        let (label, problem) = match inspector.inspect(&model.path) {
            Ok(found) => (Some(found.label()), None),
            Err(problem) => (None, Some(problem.kind.to_string())),
        };
        Self {
            name: model.name,
            label,
            problem,
            path: model.path.display().to_string(),
            kind,
            program,
            bytes: model.size_bytes,
        }
    }
}

/// A model of the catalogue under the name that `models pull` takes.
#[derive(Serialize)]
struct Known {
    family: &'static str,
    role: &'static str,
    name: String,
    label: &'static str,
    bytes: u64,
    parameters: u64,
    licence: &'static str,
    gated: bool,
    installed: bool,
}

fn show_catalogue(json: bool) -> Result<()> {
    let installed = library()?.installed();
    for family in catalogue() {
        if !json {
            output::line(family.name)?;
        }
        for (role, model) in family.models() {
            let known = Known::new(family.name, model, role, &installed);
            if json {
                output::json(&known)?;
            } else {
                let here = if known.installed { "installed" } else { "" };
                output::line(format_args!(
                    "  {role:6}  {:21} {:>8}  {:10}  {:9}  {}",
                    known.label,
                    size(known.bytes),
                    known.licence,
                    here,
                    known.name
                ))?;
            }
        }
    }
    Ok(())
}

impl Known {
    fn new(
        family: &'static str,
        model: &CatalogueModel,
        role: &'static str,
        installed: &[Installed],
    ) -> Self {
        let name = model.name();
        Self {
            family,
            role,
            label: model.label,
            bytes: model.bytes,
            parameters: model.parameters,
            licence: model.licence,
            gated: model.gated,
            installed: installed.iter().any(|model| model.name == name),
            name,
        }
    }
}

fn remove(name: &str, yes: bool) -> Result<()> {
    let library = library()?;
    let path = library.resolve(name)?;
    let installed = library.installed();
    let Some(model) = installed.iter().find(|model| model.path == path) else {
        return Err(Error::Usage(format!(
            "{name} is your own file, not an installed model. Delete it in your file manager."
        )));
    };
    if !yes && !agreed(model)? {
        output::note("Nothing was deleted.");
        return Ok(());
    }
    library.remove(&model.id)?;
    output::line(format_args!("deleted {}, {}", model.name, size(model.size_bytes)))
}

fn agreed(model: &Installed) -> Result<bool> {
    if !stdin().is_terminal() {
        let needs_terminal = "Deleting needs your confirmation: run this in a terminal, or add --yes.";
        return Err(Error::Usage(needs_terminal.to_owned()));
    }
    output::note(format_args!(
        "Delete {}, {} in {}? [y/N]",
        model.name,
        size(model.size_bytes),
        model.path.display()
    ));
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(|source| Error::Read { path: Path::new("-").into(), source })?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
