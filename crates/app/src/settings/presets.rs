//! Presets: the built-in ones, the rules for a user's own, and the lookup of values by id.

use std::collections::HashSet;

use foretoken_model::recommended::Recommended;

use crate::error::{Result, bad_setting};
use crate::ipc::{
    BIASED_WORD_BYTES, BIASED_WORDS, ModelEntry, PRESET_NAME, Preset, PresetValues, STOP_WORD_BYTES,
    STOP_WORDS, Settings, WordBias,
};

/// Id of the preset with the sampling that the target's makers recommend.
pub const RECOMMENDED: &str = "recommended";

/// Ids of the built-in presets, in the order they are listed. They set the sampling, and some the
/// system prompt; everything else follows the settings.
pub const BUILT_IN: [&str; 4] = [RECOMMENDED, "precise", "creative", "code"];

const CODE_PROMPT: &str = "You are an experienced programmer. Answer with working code first, in code blocks that \
    name their language. Then explain briefly what it does. Say so where something is uncertain.";

impl Settings {
    /// Returns the values of conversations without any of their own.
    pub fn values(&self) -> PresetValues {
        PresetValues {
            system_prompt: self.system_prompt.clone(),
            sampling: self.sampling.clone(),
            speculation: self.speculation.clone(),
            max_tokens: self.max_tokens,
            stop: self.stop.clone(),
            word_bias: self.word_bias.clone(),
            tools: self.tools,
        }
    }

    /// Returns the settings with these values.
    #[must_use]
    pub fn with(self, values: PresetValues) -> Self {
        let PresetValues { system_prompt, sampling, speculation, max_tokens, stop, word_bias, tools } =
            values;
        Self { system_prompt, sampling, speculation, max_tokens, stop, word_bias, tools, ..self }
    }

    /// Returns the built-in presets that apply to this target.
    pub fn built_in_presets(&self, target: Option<&ModelEntry>) -> Vec<Preset> {
        let recommended = target.and_then(|target| target.recommended);
        let preset = |id: &str| {
            let values = built_in(id, self.values(), recommended)?;
            Some(Preset { id: id.to_owned(), name: String::new(), values })
        };
        BUILT_IN.iter().filter_map(|id| preset(id)).collect()
    }

    /// Returns the preset of new conversations with this target; `None` if none was chosen or it
    /// was deleted.
    pub(crate) fn preset_of(&self, target: &ModelEntry) -> Option<Preset> {
        let id = self.model_presets.get(&target.id)?;
        let built_in = || self.built_in_presets(Some(target)).into_iter().find(|preset| preset.id == *id);
        self.presets.iter().find(|preset| preset.id == *id).cloned().or_else(built_in)
    }
}

/// Returns the values of a built-in preset; `None` for other ids, and if the makers recommend
/// nothing.
fn built_in(id: &str, values: PresetValues, recommended: Option<Recommended>) -> Option<PresetValues> {
    let sampled = |temperature, top_p, min_p| Recommended {
        temperature: Some(temperature),
        top_p: Some(top_p),
        min_p: Some(min_p),
        ..Recommended::default()
    };
    let sampling = match id {
        RECOMMENDED => recommended?,
        "precise" => sampled(0.2, 0.9, 0.0),
        "creative" => sampled(1.0, 1.0, 0.05),
        "code" => sampled(0.2, 0.95, 0.0),
        _ => return None,
    };
    let sampling = sampling.over(&values.sampling);
    let system_prompt = if id == "code" { CODE_PROMPT.to_owned() } else { values.system_prompt };
    Some(PresetValues { system_prompt, sampling, ..values })
}

impl PresetValues {
    /// # Errors
    /// Returns `BadSetting` naming the first value out of its range.
    pub fn validate(&self) -> Result<()> {
        self.sampling.validate()?;
        self.speculation.validate()?;
        let fits = |text: &str, most: usize| (1..=most).contains(&text.len());
        let stop_fits = self.stop.len() <= STOP_WORDS as usize
            && self.stop.iter().all(|stop| fits(stop, STOP_WORD_BYTES));
        if !stop_fits {
            return Err(bad_setting("stop words", "at most 16 texts of 1 to 256 bytes", self.stop.len()));
        }
        let usable = |WordBias { word, bias }: &WordBias| {
            fits(word, BIASED_WORD_BYTES) && (-100.0..=100.0).contains(bias)
        };
        if self.word_bias.len() > BIASED_WORDS as usize || !self.word_bias.iter().all(usable) {
            let expected = "at most 64 words of 1 to 64 bytes, each with -100 to 100";
            return Err(bad_setting("word bias", expected, self.word_bias.len()));
        }
        Ok(())
    }
}

/// # Errors
/// Returns `BadSetting` for a value out of its range, a name that is empty, too long or taken, and
/// an id that is taken.
pub(crate) fn validate(presets: &[Preset]) -> Result<()> {
    let (mut ids, mut names) = (HashSet::from(BUILT_IN), HashSet::new());
    for Preset { id, name, values } in presets {
        let name = name.trim();
        let letters = name.chars().count();
        if !PRESET_NAME.contains(&(letters as u32)) {
            return Err(bad_setting("preset name", "1 to 60 letters", letters));
        }
        if !names.insert(name.to_lowercase()) {
            return Err(bad_setting(
                "preset name",
                "one that no other preset has",
                format!("“{name}” twice"),
            ));
        }
        if id.is_empty() || !ids.insert(id) {
            return Err(bad_setting("preset id", "one that no other preset has", format!("“{id}”")));
        }
        values.validate()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use foretoken_model::sampling::Sampling;

    use super::*;
    use crate::ipc::ErrorCode;
    use crate::models::InstalledModel;

    fn preset(id: &str, name: &str) -> Preset {
        Preset { id: id.to_owned(), name: name.to_owned(), ..Preset::default() }
    }

    fn target(recommended: Option<Recommended>) -> ModelEntry {
        ModelEntry { recommended, ..InstalledModel::added("/nowhere/a.gguf").unread() }
    }

    #[test]
    fn stop_words_and_word_biases_are_few_and_short() {
        let stops =
            |stop: &[String]| PresetValues { stop: stop.to_vec(), ..PresetValues::default() }.validate();
        assert_eq!(stops(&["x".repeat(STOP_WORD_BYTES)]), Ok(()));
        assert_eq!(stops(&vec!["x".to_owned(); STOP_WORDS as usize]), Ok(()));
        assert!(stops(&vec!["x".to_owned(); STOP_WORDS as usize + 1]).is_err());
        assert!(stops(&["x".repeat(STOP_WORD_BYTES + 1)]).is_err());
        assert!(stops(&[String::new()]).is_err());
        let bias = |word: &str, bias: f32| {
            let word_bias = vec![WordBias { word: word.to_owned(), bias }];
            PresetValues { word_bias, ..PresetValues::default() }.validate()
        };
        assert_eq!((bias("fox", 100.0), bias("fox", -100.0)), (Ok(()), Ok(())));
        assert!(bias("fox", 100.5).is_err() && bias("fox", f32::NAN).is_err() && bias("", 1.0).is_err());
        assert!(bias(&"x".repeat(BIASED_WORD_BYTES + 1), 1.0).is_err());
    }

    #[test]
    fn names_and_ids_are_present_short_and_unique() {
        let refused = |presets: &[Preset]| {
            let error = validate(presets).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadSetting);
            error.message
        };
        assert_eq!(validate(&[preset("a", &"x".repeat(60)), preset("b", "B")]), Ok(()));
        assert_eq!(refused(&[preset("a", " ")]), "preset name: expected 1 to 60 letters, found 0.");
        assert!(refused(&[preset("a", &"x".repeat(10_000))]).contains("found 10000"));
        assert!(refused(&[preset("a", "Mine"), preset("b", " mINE ")]).contains("“mINE” twice"));
        assert!(refused(&[preset("a", "A"), preset("a", "B")]).contains("preset id"));
        assert!(refused(&[preset("", "A")]).contains("preset id"));
        assert!(refused(&[preset("precise", "A")]).contains("preset id"));
        let hot = Sampling { temperature: 99.0, ..Sampling::default() };
        let values = PresetValues { sampling: hot, ..PresetValues::default() };
        assert!(refused(&[Preset { values, ..preset("a", "A") }]).contains("temperature"));
    }

    #[test]
    fn a_built_in_preset_can_be_set_and_changes_only_its_own_values() {
        let mine = Settings {
            system_prompt: "Be brief.".to_owned(),
            max_tokens: 7,
            sampling: Sampling { top_k: 3, seed: Some(5), ..Sampling::default() },
            ..Settings::default()
        };
        let recommended = Recommended { temperature: Some(0.6), ..Recommended::default() };
        let presets = mine.built_in_presets(Some(&target(Some(recommended))));
        assert_eq!(presets.iter().map(|preset| preset.id.as_str()).collect::<Vec<_>>(), BUILT_IN);
        for Preset { id, values, .. } in &presets {
            assert_eq!(values.validate(), Ok(()), "{id}");
            assert_eq!((values.max_tokens, values.sampling.seed), (7, Some(5)), "{id}");
            assert_eq!((values.sampling.top_k, &values.speculation), (0, &mine.speculation), "{id}");
            assert_eq!(values.system_prompt == "Be brief.", id != "code");
        }
        assert_eq!(presets[0].values.sampling.temperature, 0.6);
        let without: Vec<_> = mine.built_in_presets(Some(&target(None)));
        assert_eq!(without, presets[1..], "nobody recommends anything");
    }

    #[test]
    fn a_target_selects_its_preset_while_that_exists() {
        let of = |id: &str| Settings {
            presets: vec![preset("mine", "Mine")],
            model_presets: [("/nowhere/a.gguf".to_owned(), id.to_owned())].into(),
            ..Settings::default()
        };
        let found = |id| of(id).preset_of(&target(None)).map(|preset| preset.id);
        assert_eq!(found("mine").as_deref(), Some("mine"));
        assert_eq!(found("creative").as_deref(), Some("creative"));
        assert_eq!(found("deleted"), None);
        assert_eq!(found(RECOMMENDED), None, "nobody recommends anything");
        assert_eq!(Settings::default().preset_of(&target(None)), None);
    }
}
