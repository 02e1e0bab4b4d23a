//! Which pairs of the catalogue suit this computer: a pure rule on what is known of both.

use std::collections::HashSet;

use foretoken_engine::forward::Bandwidth;
use foretoken_library::{self as library, Pair, Purpose, pairs};

use crate::ipc::{CatalogueFamily, CatalogueModel, Recommendation, RecommendationKind};
use crate::memory;

/// Tokens per second that a recommended target writes at least, without drafts: twice as fast as one reads.
const COMFORTABLE: f64 = 10.0;

/// Tokens per second from which nobody asks for more.
const QUICK: f64 = 30.0;

/// Share of the free memory that a recommended pair takes at most. The rest is for other programs and long contexts.
const MOST: f64 = 0.6;

/// The same of a GPU's memory, which other programs hardly use.
const MOST_OF_GPU: f64 = 0.95;

/// A faster pair is so many times as fast as the best.
const FASTER: f64 = 2.0;

/// What is known of a computer.
#[derive(Debug, Clone, Default)]
pub struct Computer {
    /// For models, where they are computed: free, or taken by those that would make way.
    pub memory_bytes: u64,
    /// Room for downloads; `None` where the disk does not say.
    pub disk_bytes: Option<u64>,
    pub has_gpu: bool,
    /// How fast the CPU reads weights; `None` where that was not measured, or a GPU computes.
    pub reading: Option<Bandwidth>,
    /// Names of the models that are here.
    pub installed: HashSet<String>,
    /// Names of those that were asked for and are on their way.
    pub coming: HashSet<String>,
}

impl Computer {
    /// The best pair that fits with room to spare and is fast enough, one that is much faster, and one for code. What is
    /// on its way keeps its place, however much memory is free by now.
    pub fn recommendations(&self) -> Vec<Recommendation> {
        let of = |purpose| pairs().iter().filter(move |pair| pair.purpose == purpose);
        let coming = |purpose| of(purpose).find(|pair| self.coming.contains(&pair.target.name()));
        let mut best = of(Purpose::Chat).find(|pair| self.suits(pair));
        let relief = |best| of(Purpose::Chat).find(|pair| self.suits(pair) && self.is_relief(best, pair));
        let mut faster = best.and_then(relief);
        let code = coming(Purpose::Code).or_else(|| of(Purpose::Code).find(|pair| self.suits(pair)));
        match (coming(Purpose::Chat), best) {
            (Some(pair), Some(stronger)) if pair.target.parameters < stronger.target.parameters => {
                faster = Some(pair);
            }
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
        let (mut target, draft) = (self.offer(&pair.target), self.offer(&pair.draft));
        target.memory_bytes += draft.memory_bytes;
        Recommendation { kind, target, draft, speedup: pair.speedup }
    }

    /// The families of the catalogue, each target with room for the largest draft.
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
        CatalogueFamily { id, name, uses, targets, drafts, heads: offers(family.heads) }
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
        }
    }

    /// Whether there is memory for so many bytes.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes <= self.memory_bytes
    }

    /// Whether the disk has room for those of the models that are not here.
    fn has_disk(&self, models: &[&library::CatalogueModel]) -> bool {
        let missing = models.iter().filter(|model| !self.installed.contains(&model.name()));
        let bytes = missing.map(|model| model.bytes).sum();
        self.disk_bytes.is_none_or(|free| free >= bytes)
    }

    /// Tokens per second without drafts, reckoned.
    fn speed(&self, model: &library::CatalogueModel) -> Option<f64> {
        self.reading.map(|reading| reading.tokens_per_second(model.read_bytes()))
    }

    fn suits(&self, pair: &Pair) -> bool {
        let needed = memory::needed(pair.target.loaded_bytes()) + memory::needed(pair.draft.loaded_bytes());
        let most = if self.has_gpu { MOST_OF_GPU } else { MOST };
        self.holds((needed as f64 / most) as u64)
            && self.has_disk(&[&pair.target, &pair.draft])
            && self.speed(&pair.target).is_none_or(|speed| speed >= COMFORTABLE)
    }

    /// Whether `pair` is worth having beside the best for its speed. A GPU is fast enough with the best.
    fn is_relief(&self, best: &Pair, pair: &Pair) -> bool {
        let times = best.target.read_bytes() as f64 / pair.target.read_bytes() as f64;
        !self.has_gpu && self.speed(&best.target).is_none_or(|speed| speed < QUICK) && times >= FASTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    /// With this much memory, read so fast, and a pass that takes a quarter longer than that.
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
        expect(&computer(4 * GB, 20.0), &[(Best, "SmolLM2 1.7B"), (Code, "Qwen2.5 Coder 1.5B")]);
    }

    #[test]
    fn a_laptop_of_16_gb_gets_four_billion_parameters_and_half_of_them_for_speed() {
        let expected = [(Best, "Qwen3 4B 2507"), (Faster, "SmolLM2 1.7B"), (Code, "Qwen2.5 Coder 1.5B")];
        expect(&computer(9 * GB, 40.0), &expected);
    }

    #[test]
    fn a_workstation_of_64_gb_gets_experts_of_which_a_token_reads_a_tenth() {
        let expected = [(Best, "Qwen3 30B A3B 2507"), (Code, "Qwen2.5 Coder 7B")];
        expect(&computer(58 * GB, 80.0), &expected);
    }

    #[test]
    fn a_gpu_of_24_gb_is_judged_by_what_fits_and_nothing_is_said_about_its_speed() {
        let computer = Computer { has_gpu: true, reading: None, ..computer(23 * GB, 1.0) };
        expect(&computer, &[(Best, "Qwen3 30B A3B 2507"), (Code, "Qwen2.5 Coder 7B")]);
        assert!(computer.recommendations().iter().all(|one| one.target.tokens_per_second.is_none()));
    }

    #[test]
    fn slow_memory_gets_less_than_would_fit() {
        expect(&computer(16 * GB, 14.0), &[(Best, "SmolLM2 1.7B"), (Code, "Qwen2.5 Coder 1.5B")]);
    }

    #[test]
    fn no_computer_gets_a_pair_that_does_not_fit_into_its_memory_or_onto_its_disk() {
        for memory in 0..70 {
            for disk in [0, 1, 2, 6, 20, 500] {
                let computer =
                    Computer { disk_bytes: Some(disk * GB), ..computer(memory * GB / 2, memory as f64) };
                for Recommendation { target, draft, .. } in computer.recommendations() {
                    let most = 0.6 * computer.memory_bytes as f64;
                    assert!(target.memory_bytes as f64 <= most, "{computer:?} {target:?}");
                    assert!(target.size_bytes + draft.size_bytes <= disk * GB, "{computer:?} {target:?}");
                    assert!(target.tokens_per_second.unwrap() >= 10.0, "{computer:?} {target:?}");
                }
            }
        }
        assert!(computer(GB, 50.0).recommendations().is_empty());
    }

    #[test]
    fn what_is_on_its_way_stays_when_more_or_less_memory_is_free_than_before() {
        let pair = |label: &str| pairs().iter().find(|pair| pair.target.label.starts_with(label)).unwrap();
        let coming = |memory, label: &str| {
            let coming = HashSet::from([pair(label).target.name()]);
            labels(&Computer { coming, ..computer(memory, 40.0) })
        };
        let eight = (Best, "Qwen3 8B".to_owned());
        assert_eq!(coming(9 * GB, "Qwen3 8B")[0], eight);
        assert_eq!(coming(2 * GB, "Qwen3 8B")[0], eight);
        let more = coming(58 * GB, "Qwen3 8B");
        assert_eq!(more[..2], [(Best, "Qwen3 30B A3B 2507".to_owned()), (Faster, eight.1)]);
        assert_eq!(coming(58 * GB, "Qwen2.5 Coder 1.5B").last().unwrap().1, "Qwen2.5 Coder 1.5B");
    }

    #[test]
    fn what_is_here_takes_no_more_of_the_disk() {
        let full = Computer { disk_bytes: Some(0), ..computer(4 * GB, 20.0) };
        assert!(full.recommendations().is_empty());
        let pair = pairs().iter().find(|pair| pair.target.label.starts_with("SmolLM2")).unwrap();
        let installed = HashSet::from([pair.target.name(), pair.draft.name()]);
        expect(&Computer { installed, ..full }, &[(Best, "SmolLM2 1.7B")]);
    }

    #[test]
    fn an_offer_says_what_it_lacks_and_how_fast_it_would_be() {
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
