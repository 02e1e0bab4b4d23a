//! Texts put aside in memory: a session returns to one of them if that saves more tokens than the
//! text it has loaded. An owner's texts are looked at for its own requests alone.

use std::collections::HashMap;

use foretoken_forward::device::free_memory;
use foretoken_forward::{Model, Parked};
use foretoken_model::token::TokenId;

use crate::context::common;
use crate::draft::{Drafters, ParkedDrafter};
use crate::owner::Owner;

/// Maximum number of texts.
const MAX: usize = 64;

/// Tokens that are run again rather than put aside: a template's tokens at the end of a reply.
const FEW: usize = 32;

/// Memory for texts put aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextBudget {
    /// A quarter of what would be free without these texts.
    Automatic,
    /// At most this much, and half of what would be free.
    Bytes(usize),
}

impl Default for TextBudget {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl TextBudget {
    /// This many megabytes; `None` for the automatic budget.
    pub fn of_megabytes(megabytes: Option<u32>) -> Self {
        megabytes.map_or(Self::Automatic, |megabytes| Self::Bytes(megabytes as usize * 1_000_000))
    }

    /// Bytes for texts, of which `available` would be free without them.
    fn bytes(self, available: usize) -> usize {
        match self {
            Self::Automatic => available / 4,
            Self::Bytes(bytes) => bytes.min(available / 2),
        }
    }
}

/// A text with the caches of target and drafters.
#[derive(Debug, Clone)]
pub struct Text {
    pub(super) owner: Owner,
    pub(super) target: Parked,
    /// Drafters that these caches belong to, by [`Draft::number`](super::Draft::number).
    pub(super) draft: u64,
    pub(super) drafters: Vec<Option<ParkedDrafter>>,
}

impl Text {
    fn is_empty(&self) -> bool {
        self.target.tokens().is_empty()
    }

    fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        self.target.buffers().chain(self.drafters.iter().flatten().flat_map(ParkedDrafter::buffers))
    }
}

/// Texts put aside; see the module.
#[derive(Debug, Default)]
pub struct Shelf {
    /// Texts in the order of their last use, the latest last.
    texts: Vec<Text>,
    /// Owner of the loaded text.
    owner: Owner,
}

impl Shelf {
    /// Bytes that the texts hold, shared ones once.
    pub fn bytes(&self) -> usize {
        self.texts.iter().flat_map(Text::buffers).collect::<HashMap<_, _>>().values().sum()
    }

    /// Owner of the loaded text.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Drops the least recently used texts until the others fit into the budget.
    pub fn shrink(&mut self, budget: TextBudget) {
        let mut used = self.bytes();
        let available = usize::try_from(free_memory()).unwrap_or(usize::MAX).saturating_add(used);
        while self.texts.len() > MAX || used > budget.bytes(available) {
            self.texts.remove(0);
            used = self.bytes();
        }
    }

    /// Adds a text, in place of those that it covers.
    pub fn put(&mut self, new: Text) {
        let same = |text: &Text| text.owner == new.owner && text.draft == new.draft;
        self.texts.retain(|text| !(same(text) && new.target.covers(&text.target)));
        match self.texts.iter().position(|text| same(text) && text.target.covers(&new.target)) {
            Some(covering) => self.texts[covering..].rotate_left(1),
            None => self.texts.push(new),
        }
    }

    /// Takes the text of `owner` that saves most tokens of `prompt`, if it saves more than `least`.
    /// A copy stays if only a part of the text is used.
    fn take(&mut self, owner: Owner, prompt: &[TokenId], least: usize, loaded: &Loaded<'_>) -> Option<Text> {
        let config = loaded.target.config();
        let texts = self.texts.iter().enumerate().filter(|(_, text)| text.owner == owner);
        let saved = texts
            .map(|(index, text)| (text.target.reusable(prompt, config), text.draft == loaded.draft, index));
        let (saved, _, index) = saved.max().filter(|(saved, ..)| *saved > least)?;
        let text = self.texts.remove(index);
        if text.target.tokens().len() > saved + FEW {
            self.texts.push(text.clone());
        }
        Some(text)
    }

    /// The loaded text, if it is the person's.
    pub fn own_text(&self, loaded: &Loaded<'_>) -> Option<Text> {
        if self.owner == Owner::Person {
            loaded.park(self.owner).filter(|text| !text.is_empty())
        } else {
            None
        }
    }

    /// Number of tokens of the person's `prompt` that a reply would not run again.
    pub fn held(&self, prompt: &[TokenId], loaded: &Loaded<'_>) -> usize {
        let config = loaded.target.config();
        let texts = self.texts.iter().filter(|text| text.owner == Owner::Person);
        let saved = texts.map(|text| text.target.reusable(prompt, config)).max().unwrap_or(0);
        let own = match self.own_text(loaded) {
            Some(text) => text.target.reusable(prompt, config),
            None if self.owner == Owner::Person => common(prompt, loaded.target.cached(), 0),
            None => 0,
        };
        saved.max(own)
    }

    /// Puts the loaded text aside, so that a job may replace it.
    pub fn put_aside(&mut self, loaded: &Loaded<'_>) {
        let text = loaded.park(self.owner).filter(|text| !text.is_empty());
        text.into_iter().for_each(|text| self.put(text));
    }

    /// Prepares for a reply to `prompt` of `owner`: loads the text that saves most of it, and puts
    /// the loaded one aside if more than a few of its tokens would be lost.
    pub fn turn_to(&mut self, owner: Owner, prompt: &[TokenId], loaded: &mut Loaded<'_>) {
        let (text, is_own) = (loaded.park(self.owner), owner == self.owner);
        let own = text.as_ref().filter(|_| is_own);
        let reused = own.map_or(0, |text| text.target.reusable(prompt, loaded.target.config()));
        let found = self.take(owner, prompt, reused, loaded);
        if let Some(text) = text.filter(|text| text.target.tokens().len() > reused + FEW) {
            self.put(text);
        }
        if !is_own {
            loaded.clear();
        }
        if let Some(text) = found {
            loaded.resume(&text);
        }
        self.owner = owner;
    }
}

/// The target with its drafters, which hold the loaded text.
pub struct Loaded<'a> {
    pub target: &'a mut dyn Model,
    pub drafters: &'a mut Drafters,
    /// See [`Draft::number`](super::Draft::number).
    pub draft: u64,
}

impl Loaded<'_> {
    /// The loaded text, which may be empty; `None` if the engine cannot share it.
    pub fn park(&self, owner: Owner) -> Option<Text> {
        let target = self.target.park()?;
        Some(Text { owner, target, draft: self.draft, drafters: self.drafters.park() })
    }

    fn resume(&mut self, text: &Text) {
        if self.target.resume(&text.target) && text.draft == self.draft {
            self.drafters.resume(&text.drafters);
        }
    }

    fn clear(&mut self) {
        self.target.truncate(0);
        self.drafters.forget();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use foretoken_forward::device::Device;
    use foretoken_forward::{catch_up, load};
    use foretoken_model::ModelSource;
    use foretoken_testkit::Gguf;
    use proptest::prelude::*;

    use super::*;

    const OWNERS: [Owner; 3] = [Owner::Person, Owner::Client([1; 32]), Owner::Client([2; 32])];

    /// Memory that no test fills.
    const PLENTY: TextBudget = TextBudget::Bytes(1 << 30);

    fn model() -> Box<dyn Model> {
        let folder = tempfile::tempdir().unwrap();
        let mut tiny = Gguf::tiny();
        tiny.set("llama.context_length", candle_core::quantized::gguf_file::Value::U32(1024));
        load(&ModelSource::open(&tiny.write(folder.path())).unwrap(), &Device::Cpu).unwrap()
    }

    /// Text that follows the common one up to `cut`.
    fn text(cut: usize, variant: TokenId, length: usize) -> Vec<TokenId> {
        let token = |at: usize| (at as TokenId * 37 + if at < cut { 0 } else { 1 + variant }) % 250;
        (0..length).map(token).collect()
    }

    /// Tokens that two texts have in common at their beginning.
    fn same(one: &[TokenId], other: &[TokenId]) -> usize {
        one.iter().zip(other).take_while(|(one, other)| one == other).count()
    }

    /// Texts in plain lists: the loaded one, and those put aside.
    #[derive(Default)]
    struct Lists {
        loaded: (Owner, Vec<TokenId>),
        aside: Vec<(Owner, Vec<TokenId>)>,
    }

    impl Lists {
        /// Tokens that a reply to `prompt` saves, after which its text is loaded.
        fn turn_to(&mut self, owner: Owner, prompt: &[TokenId]) -> usize {
            let wanted = &prompt[..prompt.len() - 1];
            let of =
                |(other, text): &(Owner, Vec<TokenId>)| if *other == owner { same(text, wanted) } else { 0 };
            let loaded = of(&self.loaded);
            let saved = self.aside.iter().map(of).max().unwrap_or(0).max(loaded);
            if self.loaded.1.len() > loaded + FEW {
                self.aside.push(self.loaded.clone());
            }
            self.loaded = (owner, wanted.to_vec());
            saved
        }
    }

    /// Owner, and cut, variant and length of a text. Texts that differ do so in more than a few
    /// tokens.
    fn turn() -> impl Strategy<Value = (usize, usize, TokenId, usize)> {
        let tokens = |count: usize| count * 2 * FEW;
        let (cut, length) = ((0usize..10).prop_map(tokens), (1usize..11).prop_map(tokens));
        (0..OWNERS.len(), cut, 0..3 as TokenId, length.prop_map(|length| length + 1))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn an_owners_best_text_is_reused_and_no_other_owners(turns in prop::collection::vec(turn(), 1..24)) {
            let (mut model, mut drafters) = (model(), Drafters::default());
            let (mut shelf, mut lists) = (Shelf::default(), Lists::default());
            for (owner, cut, variant, length) in turns {
                let prompt = text(cut, variant, length);
                let mut loaded = Loaded { target: model.as_mut(), drafters: &mut drafters, draft: 0 };
                shelf.turn_to(OWNERS[owner], &prompt, &mut loaded);
                shelf.shrink(PLENTY);
                let (reused, _) = catch_up(model.as_mut(), &prompt, &mut |_, _| ControlFlow::Continue(())).unwrap();
                prop_assert_eq!(reused, lists.turn_to(OWNERS[owner], &prompt));
            }
        }

        #[test]
        fn texts_stay_within_their_budget_and_the_latest_stay(
            turns in prop::collection::vec(turn(), 1..24),
            budget in 0usize..200_000,
        ) {
            let (mut model, mut drafters, mut shelf) = (model(), Drafters::default(), Shelf::default());
            for (owner, cut, variant, length) in turns {
                let prompt = text(cut, variant, length);
                let mut loaded = Loaded { target: model.as_mut(), drafters: &mut drafters, draft: 0 };
                shelf.turn_to(OWNERS[owner], &prompt, &mut loaded);
                let tokens = |shelf: &Shelf| -> Vec<Vec<TokenId>> {
                    shelf.texts.iter().map(|text| text.target.tokens().to_vec()).collect()
                };
                let before = tokens(&shelf);
                shelf.shrink(TextBudget::Bytes(budget));
                prop_assert!(shelf.bytes() <= budget && before.ends_with(&tokens(&shelf)));
                let _ = catch_up(model.as_mut(), &prompt, &mut |_, _| ControlFlow::Continue(())).unwrap();
            }
        }
    }

    #[test]
    fn texts_that_begin_alike_hold_their_pages_once() {
        let (mut model, mut drafters, mut shelf) = (model(), Drafters::default(), Shelf::default());
        let mut bytes = Vec::new();
        for variant in 0..4 {
            let prompt = text(512, variant, 700);
            let mut loaded = Loaded { target: model.as_mut(), drafters: &mut drafters, draft: 0 };
            shelf.turn_to(Owner::Person, &prompt, &mut loaded);
            bytes.push(shelf.bytes());
            let _ = catch_up(model.as_mut(), &prompt, &mut |_, _| ControlFlow::Continue(())).unwrap();
        }
        let page = bytes[1] / 3;
        assert_eq!(bytes, [0, 3 * page, 4 * page, 5 * page]);
    }
}
