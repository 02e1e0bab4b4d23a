//! Checks of drafters that read the target's hidden states: they draft as a new drafter would,
//! whatever came before, and never change the text.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_engine::context::Context;
use foretoken_engine::decoder::{Decoder, Request};
use foretoken_engine::draft::{
    Draft, DraftRequest, Drafter, Drafters, NgramDrafter, ParkedDrafter, replay_for,
};
use foretoken_engine::sampler::Sampler;
use foretoken_engine::speculation::{Speculation, Tree};
use foretoken_forward::{Model, Parked};
use foretoken_model::ModelSource;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use foretoken_tests::{loaded, starter_target};

/// Runs the target over `context` for the drafter, from the point where its cache differs.
pub fn replay(target: &mut dyn Model, drafter: &mut dyn Drafter, context: &Context) {
    let ended = replay_for(target, drafter, context, &mut || ControlFlow::Continue(())).unwrap();
    assert!(ended.is_continue());
    assert_eq!(drafter.missing_features(context), 0);
}

fn guesses(drafter: &mut dyn Drafter, context: &Context, length: usize) -> Draft {
    let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
    drafter.draft(context, &DraftRequest::chain(length), &mut sampler).unwrap()
}

/// Text with the caches of target and drafter, put aside.
struct Aside {
    text: Vec<TokenId>,
    target: Parked,
    drafter: ParkedDrafter,
}

impl Aside {
    /// Puts the present text aside; `None` where an engine cannot.
    fn park(text: &[TokenId], target: &dyn Model, drafter: &dyn Drafter) -> Option<Self> {
        Some(Self { text: text.to_vec(), target: target.park()?, drafter: drafter.park()? })
    }

    /// Returns to the text, for which nothing is missing.
    fn resume(&self, target: &mut dyn Model, drafter: &mut dyn Drafter) -> Context {
        assert!(target.resume(&self.target));
        drafter.resume(&self.drafter);
        let context = Context::new(self.text.clone());
        assert_eq!((drafter.missing_features(&context), drafter.behind(&context)), (0, 0));
        context
    }
}

/// Checks a drafter for the starter's target over sixty texts, with drafts of up to `longest`
/// tokens. Now and then it returns to a text that was put aside.
#[track_caller]
pub fn assert_drafts_like_new(fresh: &dyn Fn() -> Box<dyn Drafter>, longest: usize) {
    assert_drafts_for(&starter_target(), fresh, longest);
}

/// Checks a drafter for the target `source`.
#[track_caller]
pub fn assert_drafts_for(source: &ModelSource, fresh: &dyn Fn() -> Box<dyn Drafter>, longest: usize) {
    let config = source.config().unwrap();
    let (tokens, most) = (900.min(config.vocabulary - 3), 480.min(config.context - 2 * longest));
    let mut target = loaded(source);
    let mut drafter = fresh();
    let mut random = 7u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut text: Vec<TokenId> = (0..60).map(|_| 3 + next(tokens) as TokenId).collect();
    let mut context = Context::new(text.clone());
    let mut aside: Vec<Aside> = Vec::new();
    for round in 0..60 {
        if !aside.is_empty() && next(4) == 0 {
            let earlier = &aside[next(aside.len())];
            context = earlier.resume(target.as_mut(), drafter.as_mut());
            text.clone_from(&earlier.text);
        }
        // Some more tokens, as after a round; now and then an edit, a shorter text, or a long page.
        match next(8) {
            0 => {
                let length = 2 + next(text.len() - 2);
                text.truncate(length);
                context.truncate(length);
            }
            1 => text.extend((0..100).map(|_| 3 + next(tokens) as TokenId)),
            2 => {
                // Often the last token, which was drafted and not observed yet.
                let at = [text.len() - 1, next(text.len())][next(2)];
                text[at] = 3 + next(tokens) as TokenId;
                text.push(3 + next(tokens) as TokenId);
                context.truncate(at);
            }
            _ => text.extend((0..1 + next(4)).map(|_| 3 + next(tokens) as TokenId)),
        }
        text.truncate(most);
        context.truncate(text.len());
        context.extend(text[context.len()..].iter().copied());
        replay(target.as_mut(), drafter.as_mut(), &context);
        let found = guesses(drafter.as_mut(), &context, 1 + next(longest));
        assert!(!found.guesses.is_empty());
        assert_eq!(guesses(drafter.as_mut(), &context, found.guesses.len()), found, "asked again");
        if next(3) == 0 {
            aside.extend(Aside::park(&text, target.as_ref(), drafter.as_ref()));
        }
        if round % 4 == 0 {
            let mut fresh = fresh();
            replay(loaded(source).as_mut(), fresh.as_mut(), &context);
            assert_eq!(guesses(fresh.as_mut(), &context, found.guesses.len()), found, "round {round}");
        }
    }
}

/// Checks that a drafter changes no text: alone or with n-grams, in chains and trees, against plain
/// decoding.
#[track_caller]
pub fn assert_changes_no_text(
    target: &ModelSource,
    text: &[TokenId],
    drafter: &dyn Fn() -> Box<dyn Drafter>,
) {
    let mut decoder = Decoder::new(loaded(target), Arc::new(target.tokenizer().unwrap()));
    let coupled =
        Sampling { temperature: 0.8, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() };
    for sampling in [Sampling::greedy(), coupled] {
        let mut request =
            Request { sampling, max_tokens: Some(60), ignore_end: true, ..Request::new(text.to_vec()) };
        let write = |decoder: &mut Decoder, request: &Request, drafters: &mut Drafters| {
            decoder.reply(request, drafters, &mut |_| ControlFlow::Continue(())).unwrap()
        };
        let plain = write(&mut decoder, &request, &mut Drafters::default());
        let both = vec![drafter(), Box::<NgramDrafter>::default()];
        for mut drafters in [Drafters::new(vec![drafter()]), Drafters::new(both)] {
            let widths = [1, 3].map(Tree::Width);
            for way in [Speculation::fixed(1), Speculation::fixed(5), Speculation::default()]
                .into_iter()
                .flat_map(|way| widths.map(|tree| Speculation { tree, ..way.clone() }))
            {
                request.speculation = way;
                let drafted = write(&mut decoder, &request, &mut drafters);
                assert_eq!(drafted.tokens, plain.tokens, "{:?}", request.speculation);
            }
        }
    }
}
