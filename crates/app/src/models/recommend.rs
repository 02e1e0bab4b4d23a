//! Recommended pairs for this computer: a pure function of the facts about both.

use std::collections::HashSet;

use foretoken_forward::Bandwidth;
use foretoken_library::{self as library, Pair, Purpose, pairs};

use super::memory;
use crate::ipc::{CatalogueFamily, CatalogueModel, Recommendation, RecommendationKind};

/// Least speed of a recommended target without drafts, in tokens per second: twice the reading
/// speed.
const COMFORTABLE: f64 = 10.0;

/// Tokens per second above which more speed is not needed.
const FAST_ENOUGH: f64 = 30.0;

/// Largest share of the free memory for a recommended pair. The rest is for other programs and long
/// contexts.
const MAX_MEMORY_SHARE: f64 = 0.6;

/// Largest share of a GPU's memory, which other programs hardly use.
const MAX_GPU_SHARE: f64 = 0.95;

/// Least speed of a "faster" pair relative to the best.
const FASTER_FACTOR: f64 = 2.0;

/// Facts about a computer.
#[derive(Debug, Clone, Default)]
pub struct Computer {
    /// Memory for models on their device: free, or used by models that would be unloaded.
    pub memory_bytes: u64,
    /// Disk space for downloads; `None` if the disk does not report it.
    pub disk_bytes: Option<u64>,
    pub has_gpu: bool,
    /// Memory bandwidth of the CPU; `None` if it was not measured, or a GPU is used.
    pub reading: Option<Bandwidth>,
    /// Names of installed models.
    pub installed: HashSet<String>,
    /// Names of models being downloaded.
    pub downloading: HashSet<String>,
}

impl Computer {
    /// Returns the best pair that fits with memory to spare and is fast enough, a much faster one,
    /// and one for code. A pair being downloaded keeps its place, however much memory is free by
    /// now.
    pub fn recommendations(&self) -> Vec<Recommendation> {
        let of = |purpose| pairs().iter().filter(move |pair| pair.purpose == purpose);
        let downloading = |purpose| of(purpose).find(|pair| self.downloading.contains(&pair.target.name()));
        let mut best = of(Purpose::Chat).find(|pair| self.suits(pair));
        let relief =
            |best| of(Purpose::Chat).find(|pair| self.suits(pair) && self.is_faster_choice(best, pair));
        let mut faster = best.and_then(relief);
        let code = downloading(Purpose::Code).or_else(|| of(Purpose::Code).find(|pair| self.suits(pair)));
        match (downloading(Purpose::Chat), best) {
            (Some(pair), Some(stronger)) if stronger.is_before(pair) => faster = Some(pair),
            (Some(pair), _) => (best, faster) = (Some(pair), faster.filter(|faster| *faster != pair)),
            _ => {}
        }
        let kinds = [
            (RecommendationKind::Best, best),
            (RecommendationKind::Faster, faster),
            (RecommendationKind::Code, code),
        ];
        kinds.into_iter().filter_map(|(kind, pair)| Some(self.recommend(kind, pair?))).collect()
    }

    fn recommend(&self, kind: RecommendationKind, pair: &Pair) -> Recommendation {
        let mut target = self.offer(&pair.target);
        let draft = pair.draft.as_ref().map(|draft| self.offer(draft));
        target.memory_bytes += draft.as_ref().map_or(0, |draft| draft.memory_bytes);
        Recommendation { kind, target, draft, speedup: pair.speedup }
    }

    /// Returns the families of the catalogue; each target includes memory for the largest draft.
    pub fn catalogue(&self) -> Vec<CatalogueFamily> {
        library::catalogue().iter().map(|family| self.family(family)).collect()
    }

    fn family(&self, family: &library::CatalogueFamily) -> CatalogueFamily {
        let offers = |models: &[library::CatalogueModel]| -> Vec<CatalogueModel> {
            models.iter().map(|model| self.offer(model)).collect()
        };
        let (drafts, mut targets) = (offers(family.drafts), offers(family.targets));
        let beside = drafts.iter().map(|draft| draft.memory_bytes).max().unwrap_or(0);
        for target in &mut targets {
            target.memory_bytes += beside;
            target.fits = self.holds(target.memory_bytes);
        }
        let (id, name) = (family.id.to_owned(), family.name.to_owned());
        let uses = family.uses.iter().map(|&wanted| wanted.into()).collect();
        let heads = family.heads().map(|model| self.offer(model)).collect();
        CatalogueFamily { id, name, uses, targets, drafts, heads }
    }

    fn offer(&self, model: &library::CatalogueModel) -> CatalogueModel {
        let memory_bytes = memory::needed(model.loaded_bytes());
        CatalogueModel {
            id: model.name(),
            repository: model.repository.to_owned(),
            file: model.file.map(str::to_owned),
            label: model.label.to_owned(),
            size_bytes: model.bytes,
            memory_bytes,
            fits: self.holds(memory_bytes),
            has_disk: self.has_disk(&[model]),
            tokens_per_second: self.speed(model),
            parameters: model.parameters,
            licence: model.licence.to_owned(),
            gated: model.gated,
            ran: model.ran,
        }
    }

    /// Returns whether `bytes` fit into memory.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes <= self.memory_bytes
    }

    /// Returns whether the disk has space for the models that are not installed.
    fn has_disk(&self, models: &[&library::CatalogueModel]) -> bool {
        let missing = models.iter().filter(|model| !self.installed.contains(&model.name()));
        let bytes = missing.map(|model| model.bytes).sum();
        self.disk_bytes.is_none_or(|free| free >= bytes)
    }

    /// Returns the estimated tokens per second without drafts.
    fn speed(&self, model: &library::CatalogueModel) -> Option<f64> {
        self.reading.map(|reading| reading.tokens_per_second(model.read_bytes()))
    }

    fn suits(&self, pair: &Pair) -> bool {
        let models: Vec<_> = [&pair.target].into_iter().chain(&pair.draft).collect();
        let needed = models.iter().map(|model| memory::needed(model.loaded_bytes())).sum::<u64>();
        let most = if self.has_gpu { MAX_GPU_SHARE } else { MAX_MEMORY_SHARE };
        self.holds((needed as f64 / most) as u64)
            && self.has_disk(&models)
            && self.speed(&pair.target).is_none_or(|speed| speed >= COMFORTABLE)
    }

    /// Returns whether `pair` is worth recommending for its speed. On a GPU the best is fast
    /// enough.
    fn is_faster_choice(&self, best: &Pair, pair: &Pair) -> bool {
        let times = best.target.read_bytes() as f64 / pair.target.read_bytes() as f64;
        !self.has_gpu
            && self.speed(&best.target).is_none_or(|speed| speed < FAST_ENOUGH)
            && times >= FASTER_FACTOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    /// A computer with this much memory and bandwidth, and passes that take a quarter longer than
    /// reading it.
    fn computer(memory_bytes: u64, gb_s: f64) -> Computer {
        let reading = Some(Bandwidth { bytes: 98_000_000, gb_s, share: 0.8 });
        Computer { memory_bytes, disk_bytes: Some(500 * GB), reading, ..Computer::default() }
    }

    fn labels(computer: &Computer) -> Vec<(RecommendationKind, String)> {
        let these = computer.recommendations().into_iter();
        these.map(|one| (one.kind, one.target.label.split(" · ").next().unwrap().to_owned())).collect()
    }

    fn expect(computer: &Computer, expected: &[(RecommendationKind, &str)]) {
        let expected: Vec<_> = expected.iter().map(|&(kind, label)| (kind, label.to_owned())).collect();
        assert_eq!(labels(computer), expected, "{computer:?}");
    }

    use RecommendationKind::{Best, Code, Faster};

    #[test]
    fn a_laptop_of_8_gb_gets_small_pairs() {
        expect(&computer(4 * GB, 20.0), &[(Best, "Qwen3.5 2B"), (Code, "Qwen2.5 Coder 1.5B")]);
    }

    #[test]
    fn a_laptop_of_16_gb_gets_four_billion_parameters_and_a_faster_half_size_pair() {
        let expected =
            [(Best, "Qwen3.5 4B"), (Faster, "Granite 4 Tiny 7B A1B"), (Code, "Qwen2.5 Coder 1.5B")];
        expect(&computer(9 * GB, 40.0), &expected);
    }

    #[test]
    fn a_workstation_of_64_gb_gets_a_mixture_of_experts_with_a_tenth_active() {
        let expected = [(Best, "Qwen3.6 35B A3B"), (Code, "Qwen3 Coder 30B A3B")];
        expect(&computer(58 * GB, 80.0), &expected);
    }

    #[test]
    fn a_gpu_of_24_gb_is_judged_by_memory_only() {
        let computer = Computer { has_gpu: true, reading: None, ..computer(23 * GB, 1.0) };
        expect(&computer, &[(Best, "Qwen3.8 27B"), (Code, "Qwen3 Coder 30B A3B")]);
        assert!(computer.recommendations().iter().all(|one| one.target.tokens_per_second.is_none()));
    }

    #[test]
    fn slow_memory_gets_smaller_models_than_would_fit() {
        expect(&computer(16 * GB, 14.0), &[(Best, "LFM2.5 8B A1B"), (Code, "Qwen2.5 Coder 1.5B")]);
    }

    #[test]
    fn no_recommendation_exceeds_memory_or_disk() {
        for memory in 0..70 {
            for disk in [0, 1, 2, 6, 20, 500] {
                let computer =
                    Computer { disk_bytes: Some(disk * GB), ..computer(memory * GB / 2, memory as f64) };
                for Recommendation { target, draft, .. } in computer.recommendations() {
                    let most = 0.6 * computer.memory_bytes as f64;
                    assert!(target.memory_bytes as f64 <= most, "{computer:?} {target:?}");
                    let size = target.size_bytes + draft.as_ref().map_or(0, |draft| draft.size_bytes);
                    assert!(size <= disk * GB, "{computer:?} {target:?}");
                    assert!(target.tokens_per_second.unwrap() >= 10.0, "{computer:?} {target:?}");
                }
            }
        }
        assert!(computer(GB, 50.0).recommendations().is_empty());
    }

    #[test]
    fn a_pair_being_downloaded_stays_recommended_when_free_memory_changes() {
        let pair = |label: &str| pairs().iter().find(|pair| pair.target.label.starts_with(label)).unwrap();
        let downloading = |memory, label: &str| {
            let downloading = HashSet::from([pair(label).target.name()]);
            labels(&Computer { downloading, ..computer(memory, 40.0) })
        };
        let nine = (Best, "Qwen3.5 9B".to_owned());
        assert_eq!(downloading(9 * GB, "Qwen3.5 9B")[0], nine);
        assert_eq!(downloading(2 * GB, "Qwen3.5 9B")[0], nine);
        let more = downloading(58 * GB, "Qwen3.5 9B");
        assert_eq!(more[..2], [(Best, "Qwen3.6 35B A3B".to_owned()), (Faster, nine.1)]);
        assert_eq!(downloading(58 * GB, "Qwen2.5 Coder 1.5B").last().unwrap().1, "Qwen2.5 Coder 1.5B");
    }

    #[test]
    fn installed_models_need_no_more_disk_space() {
        let full = Computer { disk_bytes: Some(0), ..computer(4 * GB, 20.0) };
        assert!(full.recommendations().is_empty());
        let pair = pairs().iter().find(|pair| pair.target.label.starts_with("SmolLM2")).unwrap();
        let installed = HashSet::from([pair.target.name(), pair.draft.unwrap().name()]);
        expect(&Computer { installed, ..full }, &[(Best, "SmolLM2 1.7B")]);
    }

    #[test]
    fn a_catalogue_entry_lists_missing_resources_and_speed() {
        let computer = Computer { disk_bytes: Some(3 * GB), ..computer(9 * GB, 40.0) };
        let families = computer.catalogue();
        let target = |label: &str| {
            let mut targets = families.iter().flat_map(|family| &family.targets);
            targets.find(|target| target.label.starts_with(label)).unwrap()
        };
        let (fits, large) = (target("Qwen3 4B 2507"), target("Qwen3 14B"));
        assert!(fits.fits && fits.has_disk && !large.fits && !large.has_disk);
        assert!((12.0..13.5).contains(&fits.tokens_per_second.unwrap()), "{fits:?}");
    }
}
