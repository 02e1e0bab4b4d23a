//! Models of other programs on this computer, in the folders where these keep them. They are
//! opened in place and never copied, changed or deleted. What these programs wrote is untrusted:
//! files that describe models are read up to a limit, and only models inside of a program's folder
//! count, links followed.
//!
//! - `places`: the programs and their folders, from their own settings
//! - `ollama`, `jan`: programs that describe their models in files; the others keep plain files
//! - `files`: reading these files, with limits

mod files;
mod jan;
mod ollama;
mod places;

use std::path::Path;

use self::files::{MOST, is_inside, name_below};
pub(crate) use self::places::Places;
pub use self::places::Program;
use crate::model_path::{Found, models_below};

/// A model of another program.
#[derive(Debug)]
pub(crate) struct ProgramModel {
    /// `lmstudio:publisher/model/file.gguf`: it stays when the program moves its folder.
    pub(crate) name: String,
    pub(crate) found: Found,
}

impl Program {
    pub const ALL: [Self; 5] = [Self::LmStudio, Self::Ollama, Self::Jan, Self::Gpt4All, Self::LlamaCpp];

    /// Returns the program's own name.
    pub fn name(self) -> &'static str {
        match self {
            Self::LmStudio => "LM Studio",
            Self::Ollama => "Ollama",
            Self::Jan => "Jan",
            Self::Gpt4All => "GPT4All",
            Self::LlamaCpp => "llama.cpp",
        }
    }

    /// Returns the beginning of the names of its models.
    fn prefix(self) -> &'static str {
        match self {
            Self::LmStudio => "lmstudio",
            Self::Ollama => "ollama",
            Self::Jan => "jan",
            Self::Gpt4All => "gpt4all",
            Self::LlamaCpp => "llamacpp",
        }
    }

    /// Returns the program's models, by name. Opens only files that describe models.
    pub(crate) fn models(self, places: &Places) -> Vec<ProgramModel> {
        let mut models: Vec<ProgramModel> = Vec::new();
        for folder in places.folders(self) {
            let found = match self {
                Self::Ollama => ollama::models(&folder),
                Self::Jan => jan::models(&folder),
                Self::LmStudio | Self::Gpt4All | Self::LlamaCpp => plain(&folder),
            };
            for (name, found) in found {
                let name = format!("{}:{name}", self.prefix());
                if models.len() < MOST && !models.iter().any(|known| known.name == name) {
                    models.push(ProgramModel { name, found });
                }
            }
        }
        models.sort_by(|a, b| a.name.cmp(&b.name));
        models
    }
}

/// Models of a folder by their path in it.
fn plain(root: &Path) -> Vec<(String, Found)> {
    let inside = models_below(root).into_iter().filter(|found| is_inside(root, &found.path));
    inside.filter_map(|found| Some((name_below(root, &found.path)?, found))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_path::tests::put;

    fn names(program: Program, places: &Places) -> Vec<(String, u64)> {
        let models = program.models(places).into_iter();
        models.map(|model| (model.name, model.found.size_bytes)).collect()
    }

    fn expected<const N: usize>(names: [(&str, u64); N]) -> Vec<(String, u64)> {
        names.map(|(name, size)| (name.to_owned(), size)).to_vec()
    }

    #[test]
    fn models_of_lm_studio_are_found_where_its_pointer_and_its_settings_say() {
        let folder = tempfile::tempdir().unwrap();
        let (home, places) = (folder.path(), Places::below(folder.path()));
        put(&home.join(".cache/lm-studio/models/a/b/old.gguf"), 1);
        assert_eq!(names(Program::LmStudio, &places), expected([("lmstudio:a/b/old.gguf", 1)]));
        put(&home.join(".lmstudio/models/pub/qwen/qwen-00001-of-00002.gguf"), 3);
        put(&home.join(".lmstudio/models/pub/qwen/qwen-00002-of-00002.gguf"), 4);
        put(&home.join(".lmstudio/models/pub/mlx/config.json"), 1);
        put(&home.join(".lmstudio/models/pub/mlx/model.safetensors"), 5);
        let here = [("lmstudio:pub/mlx", 5), ("lmstudio:pub/qwen/qwen-00001-of-00002.gguf", 7)];
        assert!(names(Program::LmStudio, &places).ends_with(&expected(here)));
        // Its home has moved.
        let moved = home.join("elsewhere");
        std::fs::rename(home.join(".lmstudio"), &moved).unwrap();
        std::fs::write(home.join(".lmstudio-home-pointer"), format!("{}\n", moved.display())).unwrap();
        assert_eq!(names(Program::LmStudio, &places), expected(here));
        // Only its models have moved.
        put(&home.join("disk/c/d/new.gguf"), 2);
        let settings = serde_json::json!({ "downloadsFolder": home.join("disk") }).to_string();
        std::fs::write(moved.join("settings.json"), settings).unwrap();
        assert_eq!(names(Program::LmStudio, &places), expected([("lmstudio:c/d/new.gguf", 2)]));
    }

    #[test]
    fn models_of_gpt4all_and_of_the_old_cache_of_llama_cpp_are_plain_files() {
        let folder = tempfile::tempdir().unwrap();
        let (home, places) = (folder.path(), Places::below(folder.path()));
        put(&home.join(".local/share/nomic.ai/GPT4All/llama.gguf"), 3);
        put(&home.join(".local/share/nomic.ai/GPT4All/incomplete-other.gguf.part"), 3);
        put(&home.join(".cache/llama.cpp/ggml-org_gemma_gemma.gguf"), 4);
        put(&home.join(".cache/llama.cpp/manifest=ggml-org=gemma=latest.json"), 4);
        assert_eq!(names(Program::Gpt4All, &places), expected([("gpt4all:llama.gguf", 3)]));
        let cached = expected([("llamacpp:ggml-org_gemma_gemma.gguf", 4)]);
        assert_eq!(names(Program::LlamaCpp, &places), cached);
        put(&home.join("big disk/other.gguf"), 5);
        put(&home.join(".config/nomic.ai/GPT4All.ini"), 0);
        let path = home.join("big disk").display().to_string().replace('\\', "/");
        let ini =
            format!("[General]\nlastVersionStarted=3.10.0\nmodelPath={path}\n\n[network]\nisActive=false\n");
        std::fs::write(home.join(".config/nomic.ai/GPT4All.ini"), ini).unwrap();
        assert_eq!(names(Program::Gpt4All, &places), expected([("gpt4all:other.gguf", 5)]));
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_of_a_programs_folder_are_not_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (home, places) = (folder.path(), Places::below(folder.path()));
        put(&home.join("secret/a/private.gguf"), 3);
        let models = home.join("disk/models");
        put(&models.join("pub/good/m.gguf"), 1);
        symlink(home.join("secret/a/private.gguf"), models.join("pub/good/private.gguf")).unwrap();
        symlink(home.join("secret"), models.join("pub/out")).unwrap();
        symlink(models.join("pub/good"), models.join("pub/same")).unwrap();
        // The folder itself may be on another disk.
        std::fs::create_dir_all(home.join(".lmstudio")).unwrap();
        symlink(&models, home.join(".lmstudio/models")).unwrap();
        let found = expected([("lmstudio:pub/good/m.gguf", 1), ("lmstudio:pub/same/m.gguf", 1)]);
        assert_eq!(names(Program::LmStudio, &places), found);
    }

    #[test]
    fn a_computer_without_other_programs_has_none_of_their_models() {
        let folder = tempfile::tempdir().unwrap();
        for program in Program::ALL {
            assert!(program.models(&Places::below(folder.path())).is_empty());
        }
    }
}
