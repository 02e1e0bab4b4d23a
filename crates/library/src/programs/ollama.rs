//! Ollama's models: `manifests-v2/HOST/NAMESPACE/MODEL/TAG`, or `manifests/…` of older versions,
//! are JSON and name the files in `blobs/` by their SHA-256.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::files::{MOST, is_inside, name_below, read_text, weights};
use crate::model_path::{Found, visible_entries};

/// Folders of manifests, the present one first.
const FOLDERS: [&str; 2] = ["manifests-v2", "manifests"];

/// Media types of a file of weights and of a list of manifests.
const WEIGHTS: &str = "application/vnd.ollama.image.model";
const LIST: &str = "application/vnd.ollama.manifest.list.v2+json";

/// Host and namespace that names leave out.
const HOST: &str = "registry.ollama.ai/";
const NAMESPACE: &str = "library/";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Manifest {
    media_type: String,
    layers: Vec<Layer>,
    /// Children of a list: the same model for several programs.
    manifests: Vec<Child>,
}

/// A manifest in a list, or a reference to one in a blob.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Child {
    format: String,
    layers: Vec<Layer>,
    digest: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// Returns the models below `root` by name.
pub(super) fn models(root: &Path) -> Vec<(String, Found)> {
    let mut models: Vec<(String, Found)> = Vec::new();
    for folder in FOLDERS {
        let manifests = root.join(folder);
        let mut files = Vec::new();
        collect(&manifests, 3, &mut files);
        for file in files {
            let Some(name) = name_below(&manifests, &file).and_then(|name| shortened(&name)) else {
                continue;
            };
            if models.iter().any(|(known, _)| *known == name) {
                continue;
            }
            // Present manifests are links into `blobs`.
            let manifest = is_inside(root, &file).then(|| read_text(&file)).flatten();
            let found = manifest.and_then(|json| weights_of(root, &json));
            models.extend(found.map(|found| (name, found)));
        }
    }
    models
}

/// Collects the files `depth` folders below `folder`.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in visible_entries(folder) {
        if files.len() == MOST {
            return;
        }
        let (path, is_folder) = (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
        match depth {
            0 if !is_folder => files.push(path),
            1.. if is_folder => collect(&path, depth - 1, files),
            _ => (),
        }
    }
}

/// Returns the name as Ollama shows it: `llama3.2:3b`, `person/model:tag`, `hf.co/owner/name:Q8_0`.
fn shortened(path: &str) -> Option<String> {
    let (model, tag) = path.rsplit_once('/')?;
    let model = model.strip_prefix(HOST).unwrap_or(model);
    let model = model.strip_prefix(NAMESPACE).unwrap_or(model);
    Some(format!("{model}:{tag}"))
}

/// Returns the file of weights of a manifest; `None` for other formats.
fn weights_of(root: &Path, json: &str) -> Option<Found> {
    let manifest: Manifest = serde_json::from_str(json).ok()?;
    let digest = if manifest.media_type == LIST {
        let child = manifest.manifests.iter().find(|child| matches!(&*child.format, "gguf" | ""))?;
        let referred = || {
            let json = read_text(&blob(root, child.digest.as_deref()?)?)?;
            let manifest: Manifest = serde_json::from_str(&json).ok()?;
            only(&manifest.layers).map(str::to_owned)
        };
        only(&child.layers).map(str::to_owned).or_else(referred)?
    } else {
        only(&manifest.layers)?.to_owned()
    };
    weights(blob(root, &digest)?)
}

/// Returns the digest of the only layer with weights. Several are parts of a tensor each.
fn only(layers: &[Layer]) -> Option<&str> {
    let mut found = layers.iter().filter(|layer| layer.media_type == WEIGHTS);
    let digest = &found.next()?.digest;
    found.next().is_none().then_some(digest)
}

/// Returns the path of a blob. Its name has to be a SHA-256, so that it leads nowhere else.
fn blob(root: &Path, digest: &str) -> Option<PathBuf> {
    let hash = digest.strip_prefix("sha256").and_then(|rest| rest.strip_prefix([':', '-']))?;
    if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let path = root.join("blobs").join(format!("sha256-{hash}"));
    is_inside(root, &path).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::model_path::tests::put;
    use crate::programs::{Places, Program};

    fn hash(letter: &str) -> String {
        format!("sha256:{}", letter.repeat(64))
    }

    fn layers(letter: &str) -> Value {
        json!([
            { "mediaType": "application/vnd.ollama.image.license", "digest": hash("0"), "size": 1 },
            { "mediaType": WEIGHTS, "digest": hash(letter), "size": 7 },
        ])
    }

    fn manifest(letter: &str) -> String {
        let media = "application/vnd.docker.distribution.manifest.v2+json";
        json!({ "schemaVersion": 2, "mediaType": media, "layers": layers(letter) }).to_string()
    }

    fn write(path: &Path, text: &str) {
        put(path, 0);
        fs::write(path, text).unwrap();
    }

    /// A folder of models with the blobs `a` to `d`.
    fn store() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".ollama/models");
        for (size, letter) in ["a", "b", "c", "d"].into_iter().enumerate() {
            put(&root.join("blobs").join(hash(letter).replace(':', "-")), size + 1);
        }
        (folder, root)
    }

    fn names(folder: &tempfile::TempDir) -> Vec<(String, u64)> {
        let models = Program::Ollama.models(&Places::below(folder.path()));
        models.into_iter().map(|model| (model.name, model.found.size_bytes)).collect()
    }

    #[test]
    fn models_are_named_as_there_and_lead_to_their_blobs() {
        let (folder, root) = store();
        let library = root.join("manifests/registry.ollama.ai");
        write(&library.join("library/llama3.2/3b"), &manifest("a"));
        write(&library.join("me/mine/latest"), &manifest("b"));
        write(&root.join("manifests/hf.co/owner/name/Q8_0"), &manifest("c"));
        let list = json!({ "mediaType": LIST, "manifests": [
            { "format": "safetensors", "runner": "mlx", "layers": layers("a") },
            { "format": "gguf", "runner": "ollama", "layers": layers("d") },
        ] });
        write(&root.join("manifests-v2/registry.ollama.ai/library/both/latest"), &list.to_string());
        // The present folder wins.
        write(&library.join("library/both/latest"), &manifest("a"));
        let expected = [
            ("ollama:both:latest", 4),
            ("ollama:hf.co/owner/name:Q8_0", 3),
            ("ollama:llama3.2:3b", 1),
            ("ollama:me/mine:latest", 2),
        ];
        assert_eq!(names(&folder), expected.map(|(name, size)| (name.to_owned(), size)));
    }

    #[cfg(unix)]
    #[test]
    fn a_manifest_may_be_a_link_to_a_blob_and_refer_to_another() {
        let (folder, root) = store();
        let child = hash("e").replace(':', "-");
        fs::write(root.join("blobs").join(child), manifest("b")).unwrap();
        let list = json!({ "mediaType": LIST, "manifests": [{ "format": "gguf", "digest": hash("e") }] });
        fs::write(root.join("blobs/sha256-list"), list.to_string()).unwrap();
        let link = root.join("manifests-v2/registry.ollama.ai/library/linked/latest");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("../../../../blobs/sha256-list", &link).unwrap();
        assert_eq!(names(&folder), [("ollama:linked:latest".to_owned(), 2)]);
    }

    #[test]
    fn manifests_that_lie_lead_nowhere() {
        let (folder, root) = store();
        put(&folder.path().join("secret"), 9);
        let library = root.join("manifests/registry.ollama.ai/library");
        let digest =
            |digest: &str| json!({ "layers": [{ "mediaType": WEIGHTS, "digest": digest }] }).to_string();
        let parts = json!({ "layers": [layers("a")[1].clone(), layers("b")[1].clone()] });
        for (number, text) in [
            digest("sha256:../../../secret"),
            digest(&format!("sha256:{}", "../".repeat(21) + "a")),
            digest("/etc/passwd"),
            digest(&hash("f")),
            digest(""),
            parts.to_string(),
            "[".repeat(100_000),
            json!({ "layers": { "a": 1 } }).to_string(),
            format!("{}{}", " ".repeat(2 << 20), manifest("a")),
            "\u{0}".to_owned(),
        ]
        .iter()
        .enumerate()
        {
            write(&library.join(format!("lie{number}/latest")), text);
        }
        put(&library.join("folder/latest/deeper"), 1);
        put(&library.join("short"), 1);
        assert_eq!(names(&folder), []);
        #[cfg(unix)]
        {
            let blob = root.join("blobs").join(hash("f").replace(':', "-"));
            std::os::unix::fs::symlink(folder.path().join("secret"), blob).unwrap();
            let out = library.join("out/latest");
            fs::create_dir_all(out.parent().unwrap()).unwrap();
            fs::write(folder.path().join("manifest"), manifest("a")).unwrap();
            std::os::unix::fs::symlink(folder.path().join("manifest"), out).unwrap();
            assert_eq!(names(&folder), []);
        }
    }

    #[test]
    fn a_thousand_models_are_enough() {
        let (folder, root) = store();
        let text = manifest("a");
        for number in 0..MOST + 50 {
            write(&root.join(format!("manifests/registry.ollama.ai/library/m{number}/latest")), &text);
        }
        assert_eq!(names(&folder).len(), MOST);
    }
}
