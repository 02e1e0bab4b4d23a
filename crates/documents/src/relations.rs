//! Relationships between the parts of Office documents, and the names of parts.

use std::collections::HashMap;

use crate::archive::Archive;
use crate::unread::Unread;
use crate::xml::{Node, walk_optional};

/// Most relationships of a part.
const MAX_RELATIONS: usize = 20_000;

/// Parts that a part refers to.
#[derive(Default)]
pub struct Relations {
    /// Names of parts by the relationships' ids.
    targets: HashMap<String, String>,
    /// Names of parts by the last word of the relationships' kinds.
    kinds: HashMap<String, String>,
}

impl Relations {
    /// Reads the relationships of the part `name`; a part without any has no file for them.
    ///
    /// # Errors
    /// `Damaged`, `Encrypted`, `TooLong`, `UnpacksTooLarge`.
    pub fn of(archive: &mut Archive<'_>, name: &str) -> Result<Self, Unread> {
        let folder = folder_of(name);
        let file = name.rsplit('/').next().unwrap_or(name);
        let part = joined(folder, &format!("_rels/{file}.rels"));
        let mut relations = Self::default();
        walk_optional(archive, &part, &mut |node| {
            let Node::Open(element) = node else { return Ok(()) };
            if element.name() != "Relationship" || element.attribute("TargetMode").is_some() {
                return Ok(());
            }
            if relations.targets.len() == MAX_RELATIONS {
                return Err(Unread::TooLong);
            }
            let target = joined(folder, &element.attribute("Target").unwrap_or_default());
            let kind = element.attribute("Type").unwrap_or_default();
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            relations.kinds.entry(kind).or_insert_with(|| target.clone());
            if let Some(id) = element.attribute("Id") {
                relations.targets.insert(id, target);
            }
            Ok(())
        })?;
        Ok(relations)
    }

    /// Returns the name of the part with this id.
    pub fn target(&self, id: &str) -> Option<&str> {
        self.targets.get(id).map(String::as_str)
    }

    /// Returns the name of the first part of this kind.
    pub fn of_kind(&self, kind: &str) -> Option<&str> {
        self.kinds.get(kind).map(String::as_str)
    }
}

/// Returns the folder of a part, without the last slash.
pub fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the name of the part that `target` means in `folder`.
pub fn joined(folder: &str, target: &str) -> String {
    let target = target.split('#').next().unwrap_or_default();
    let mut steps: Vec<&str> = if target.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.retain(|step| !step.is_empty());
    steps.join("/")
}
