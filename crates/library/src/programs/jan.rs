//! Jan's models: `llamacpp/models/ID/model.yml` in its data folder names the file of weights.

use std::path::{Path, PathBuf};

use super::files::{MOST, is_inside, name_below, read_text};
use crate::model_path::{Found, recognise, visible_entries};

/// Deepest level of a model's folder: ids contain slashes.
const DEPTH: usize = 4;

/// Returns the models in the data folder by id.
pub(super) fn models(root: &Path) -> Vec<(String, Found)> {
    let folder = root.join("llamacpp/models");
    let mut described = Vec::new();
    collect(&folder, DEPTH, &mut described);
    let model = |file: PathBuf| {
        let id = name_below(&folder, file.parent()?)?;
        let text = is_inside(root, &file).then(|| read_text(&file)).flatten()?;
        // The path is below the data folder, or that of a file elsewhere, which a person can add.
        let path = root.join(field(&text, "model_path")?);
        is_inside(root, &path).then(|| recognise(&path).ok()).flatten().map(|found| (id, found))
    };
    described.into_iter().filter_map(model).collect()
}

/// Collects the descriptions of models in `folder` and below.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in visible_entries(folder) {
        if files.len() == MOST {
            return;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 0 {
            collect(&entry.path(), depth - 1, files);
        } else if entry.file_name() == "model.yml" {
            files.push(entry.path());
        }
    }
}

/// Returns a text at the top level of a YAML document: plain, quoted, or on the next line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim();
    let value = match value {
        ">-" | ">" | "|-" | "|" => lines.next()?.trim(),
        value => value,
    };
    let quoted = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    Some(quoted('"').or(quoted('\'')).unwrap_or(value)).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::model_path::tests::put;
    use crate::programs::{Places, Program};

    fn names(places: &Places) -> Vec<(String, u64)> {
        let models = Program::Jan.models(places).into_iter();
        models.map(|model| (model.name, model.found.size_bytes)).collect()
    }

    fn describe(data: &Path, id: &str, path: &str) {
        let file = data.join("llamacpp/models").join(id).join("model.yml");
        put(&file, 0);
        let text = format!("embedding: false\nmodel_path: {path}\nname: A name\nsize_bytes: 5\n");
        fs::write(file, text).unwrap();
    }

    #[test]
    fn models_are_found_by_their_descriptions_and_followed_to_another_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (home, places) = (folder.path(), Places::below(folder.path()));
        let data = home.join(".local/share/Jan/data");
        for (id, path) in [
            ("janhq/v1", "llamacpp/models/janhq/v1/model.gguf"),
            ("quoted", "\"llamacpp/models/quoted/a b.gguf\""),
            ("folded", ">-\n  llamacpp/models/folded/model.gguf"),
        ] {
            describe(&data, id, path);
        }
        put(&data.join("llamacpp/models/janhq/v1/model.gguf"), 5);
        put(&data.join("llamacpp/models/janhq/v1/mmproj.gguf"), 9);
        put(&data.join("llamacpp/models/quoted/a b.gguf"), 6);
        put(&data.join("llamacpp/models/folded/model.gguf"), 7);
        let expected = [("jan:folded", 7), ("jan:janhq/v1", 5), ("jan:quoted", 6)];
        let expected = expected.map(|(name, size)| (name.to_owned(), size));
        assert_eq!(names(&places), expected);
        let moved = home.join("moved");
        fs::rename(&data, &moved).unwrap();
        assert_eq!(names(&places), []);
        let settings = serde_json::json!({ "data_folder": moved, "quick_ask": false });
        fs::write(home.join(".local/share/Jan/settings.json"), settings.to_string()).unwrap();
        assert_eq!(names(&places), expected);
    }

    #[test]
    fn a_description_leads_to_no_file_outside_of_the_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (home, places) = (folder.path(), Places::below(folder.path()));
        let data = home.join(".local/share/Jan/data");
        put(&home.join("secret.gguf"), 5);
        let secret = home.join("secret.gguf").display().to_string();
        for (id, path) in [
            ("up", "../../../../secret.gguf"),
            ("absolute", &*secret),
            ("gone", "llamacpp/models/gone/model.gguf"),
            ("other", "llamacpp/models/other/model.yml"),
            ("empty", ""),
            ("folder", "llamacpp"),
        ] {
            describe(&data, id, path);
        }
        assert_eq!(names(&places), []);
    }
}
