//! Exact enumeration: runs the acceptance rule through every random branch on a toy model, with and
//! without an end token. The joint distribution of the emitted tokens must equal the target's to
//! 1e-12.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use foretoken_engine::accept::{Guess, Guesses, Verdict, accept};
use foretoken_engine::distribution::Distribution;
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::penalties::Penalties;
use foretoken_engine::random::Randomness;
use foretoken_engine::speculation::Verification;
use foretoken_forward::Row;
use foretoken_grammar::Mask;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use proptest::prelude::*;

const VOCABULARY: usize = 3;
/// Tokens of a text, unless an end token comes before.
const LENGTH: usize = 4;
const TOLERANCE: f64 = 1e-12;
/// Draft probability of a token above which a draft counts as confident.
const CONFIDENT: f64 = 0.4;

/// Takes one branch after the other instead of drawing, and tracks the probability of the current
/// leaf.
#[derive(Default)]
struct Oracle {
    /// Branch taken at each choice, and the number of branches.
    path: Vec<(usize, usize)>,
    depth: usize,
    weight: f64,
}

impl Oracle {
    fn choose(&mut self, weights: &[f64]) -> usize {
        if self.depth == self.path.len() {
            self.path.push((0, weights.len()));
        }
        let (branch, branches) = self.path[self.depth];
        assert_eq!(branches, weights.len(), "the same choices must come up again");
        self.depth += 1;
        self.weight *= weights[branch];
        branch
    }

    /// Advances to the next leaf; returns false after the last.
    fn advance(&mut self) -> bool {
        while let Some((branch, branches)) = self.path.pop() {
            if branch + 1 < branches {
                self.path.push((branch + 1, branches));
                return true;
            }
        }
        false
    }

    fn leaves(mut visit: impl FnMut(&mut Self)) -> usize {
        let mut oracle = Self::default();
        let mut leaves = 0;
        loop {
            (oracle.depth, oracle.weight) = (0, 1.0);
            visit(&mut oracle);
            leaves += 1;
            if !oracle.advance() {
                return leaves;
            }
        }
    }
}

impl Randomness for Oracle {
    fn accepts(&mut self, probability: f64) -> bool {
        match probability {
            ..=0.0 => false,
            1.0.. => true,
            _ => self.choose(&[probability, 1.0 - probability]) == 0,
        }
    }

    fn draw(&mut self, _: usize, distribution: &Distribution) -> TokenId {
        let weights: Vec<f64> = distribution.entries().iter().map(|&(_, weight)| weight).collect();
        distribution.entries()[self.choose(&weights)].0
    }
}

/// A model given by a table of logits for every prefix.
#[derive(Debug, Clone)]
struct Toy {
    rows: Vec<[f32; VOCABULARY]>,
    sampling: Sampling,
    /// Constraint of what it writes.
    language: Option<Language>,
}

impl Toy {
    fn next(&self, prefix: &[TokenId]) -> Distribution {
        self.next_as_after(prefix, prefix)
    }

    /// Distribution after `prefix`, with the constraint's mask after `masked`.
    fn next_as_after(&self, prefix: &[TokenId], masked: &[TokenId]) -> Distribution {
        let row = Row::of(&self.rows[index(prefix) % self.rows.len()]);
        let penalties = Penalties::new(&self.sampling).at(prefix);
        match &self.language {
            None => Distribution::processed(row, &self.sampling, &penalties),
            Some(language) => {
                Distribution::constrained(row, &self.sampling, &penalties, &language.mask(masked))
            }
        }
        .unwrap()
    }
}

fn index(prefix: &[TokenId]) -> usize {
    prefix.iter().fold(1, |index, &token| index * (VOCABULARY + 1) + token as usize + 1)
}

/// A language given by a table of allowed tokens for every prefix, by their bits.
#[derive(Debug, Clone)]
struct Language(Vec<u32>);

impl Language {
    fn mask(&self, prefix: &[TokenId]) -> Mask {
        Mask::of_bits(&[self.0[index(prefix) % self.0.len()]])
    }
}

/// Way in which a constraint acts on drafts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Masking {
    /// Each guess is drawn among the allowed tokens.
    Both,
    /// Guesses are drawn among all tokens; certain ones that are not allowed are dropped.
    Target,
    /// As `Target`, but drawn guesses that are not allowed are dropped, too.
    Dropping,
    /// As `Both`, but reported as drawn among all tokens.
    Misreported,
    /// As `Both`, but each row of the target has the mask of the row before it.
    OffByOne,
    /// As `Both`, but the constraint stays at the end of the draft.
    NotRolledBack,
    /// As `Both`, but the target's filters come first.
    AfterFilters,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Drafting {
    /// Drawn from the draft's distribution, siblings without replacement.
    Drawn,
    /// The draft's likeliest tokens, as certain guesses.
    Certain,
    /// The draft's likeliest tokens, reported as drawn from the softmax.
    Pretended,
    /// Drawn by a staged draft, whose stage drafts its likeliest tokens.
    Staged,
    /// Drawn and certain guesses in turn.
    Mixed,
    /// Drawn siblings, sorted by their probability.
    Sorted,
    /// Drawn; a second sibling and all that follows depend on the tokens drawn before. Whether it
    /// becomes a chain does, too, so it is verified token by token in any case.
    Confident,
    /// As `Confident`, but a guess with a small probability is dropped after its draw.
    Pruned,
    /// A drawn guess and then the likeliest token as a certain one at each place.
    Beside,
    /// Block positions drawn independently of each other.
    Positions,
    /// Block positions drawn given the token of the position before.
    Chained,
    /// As `Chained`, but reported as given another token at the position before.
    Mischained,
    /// Block positions drawn given all tokens of the block before, as a GRU follows them.
    Recurrent,
    /// As `Recurrent`, but reported as given the likeliest token at each position before.
    Misrecurrent,
    /// The only allowed token as a certain guess where there is one, else drawn.
    Forced,
}

struct Pair {
    target: Toy,
    draft: Toy,
    drafting: Drafting,
    draft_length: usize,
    /// Guesses after each guess, by level of the tree.
    widths: [usize; LENGTH],
    /// A draft ends before a guess with a lower probability than this.
    threshold: f64,
    verification: Verification,
    /// Token that ends a text.
    end: Option<TokenId>,
    masking: Masking,
}

fn guess(token: TokenId, parent: Option<usize>, drawn_from: Option<&Arc<Distribution>>) -> Guess {
    Guess {
        token,
        parent,
        drawn_from: drawn_from.cloned(),
        probability: 1.0,
        confidence: 1.0,
        drafter: DrafterKind::Model,
    }
}

impl Pair {
    /// Adds the guesses after `parent` and `context`, and their descendants.
    fn grow(
        &self,
        guesses: &mut Guesses,
        parent: Option<usize>,
        context: &[TokenId],
        left: usize,
        oracle: &mut Oracle,
    ) {
        let depth = self.draft_length - left;
        let (q, reported) = self.drawn_and_reported(context, depth);
        let has_ended = depth > 0 && self.has_ended(context);
        if left == 0 || has_ended || q.largest() < self.threshold {
            return;
        }
        let width = self.widths[depth];
        let forced = self.target.language.as_ref().and_then(|language| language.mask(context).forced());
        let drawn = match self.drafting {
            Drafting::Forced => forced.is_none(),
            Drafting::Certain | Drafting::Pretended => false,
            Drafting::Mixed => depth.is_multiple_of(2),
            _ => true,
        };
        let mut tokens = match self.drafting {
            Drafting::Confident | Drafting::Pruned => Vec::new(),
            Drafting::Forced if !drawn => forced.into_iter().collect(),
            _ if drawn => draw_some(&q, width, oracle),
            _ => likeliest(&q, width),
        };
        if self.drafting == Drafting::Sorted {
            tokens.sort_by(|&a, &b| q.probability(b).total_cmp(&q.probability(a)));
        }
        let is_confident = |token: TokenId| q.probability(token) > CONFIDENT;
        if matches!(self.drafting, Drafting::Confident | Drafting::Pruned) {
            tokens = draw_while(&q, width, oracle, |token| !is_confident(token));
        }
        if self.drafting == Drafting::Pruned {
            tokens.retain(|&token| is_confident(token));
        }
        if !drawn || self.masking == Masking::Dropping {
            tokens.retain(|&token| self.allows(context, token));
        }
        for token in tokens {
            let index = guesses.len();
            let shown = drawn || self.drafting == Drafting::Pretended;
            guesses.push(guess(token, parent, shown.then_some(&reported)));
            let ends = self.drafting == Drafting::Confident && !is_confident(token);
            let left = if ends { 0 } else { left - 1 };
            self.grow_below(guesses, index, &[context, &[token]].concat(), left, oracle);
        }
        let token = likeliest(&q, 1)[0];
        if self.drafting == Drafting::Beside && self.allows(context, token) {
            let index = guesses.len();
            guesses.push(guess(token, parent, None));
            self.grow_below(guesses, index, &[context, &[token]].concat(), left - 1, oracle);
        }
    }

    /// Returns true if the constraint allows `token` after `context`.
    fn allows(&self, context: &[TokenId], token: TokenId) -> bool {
        self.target.language.as_ref().is_none_or(|language| language.mask(context).allows(token))
    }

    /// The draft, whose guesses have the target's constraint if `masked`.
    fn drafter(&self, masked: bool) -> Toy {
        let language = self.target.language.clone().filter(|_| masked);
        Toy { language, ..self.draft.clone() }
    }

    /// The target's distribution after `text` and guesses with the `path`, the last of `all`.
    fn judged(&self, text: &[TokenId], path: &[TokenId], all: &[TokenId]) -> Distribution {
        let after = [text, path].concat();
        match self.masking {
            Masking::OffByOne => self.target.next_as_after(&after, &after[..after.len().max(1) - 1]),
            Masking::NotRolledBack => self.target.next_as_after(&after, &[text, all].concat()),
            Masking::AfterFilters => {
                let free = Toy { language: None, ..self.target.clone() }.next(&after);
                let mut entries = free.entries().into_owned();
                entries.retain(|&(token, _)| self.allows(&after, token));
                Distribution::from_weights(entries).unwrap_or_else(|| self.target.next(&after))
            }
            _ => self.target.next(&after),
        }
    }

    /// Adds the guesses after guess `parent`, up to `left` on a path.
    fn grow_below(
        &self,
        guesses: &mut Guesses,
        parent: usize,
        context: &[TokenId],
        left: usize,
        oracle: &mut Oracle,
    ) {
        if left > 0 {
            self.grow(guesses, Some(parent), context, left, oracle);
        }
    }

    /// Distribution that the guesses after `context` are drawn from, and the reported one. The last
    /// `depth` tokens of `context` are guesses.
    fn drawn_and_reported(
        &self,
        context: &[TokenId],
        depth: usize,
    ) -> (Arc<Distribution>, Arc<Distribution>) {
        let (text, drawn) = context.split_at(context.len() - depth);
        let is_masked = !matches!(self.masking, Masking::Target | Masking::Dropping);
        let draft = self.drafter(is_masked);
        // Distribution of a position given only the token `last` of the block.
        let place = |last: Option<TokenId>| {
            let masks = vec![0; depth.saturating_sub(1)];
            draft.next_as_after(&[text, &masks, last.as_slice()].concat(), context)
        };
        // Distribution of a position given all `tokens` of the block before it.
        let recurrent = |tokens: &[TokenId]| draft.next_as_after(&[text, &[0], tokens].concat(), context);
        let before = drawn.last().copied();
        let q = Arc::new(match self.drafting {
            Drafting::Positions => place(before.map(|_| 0)),
            Drafting::Chained | Drafting::Mischained => place(before),
            Drafting::Recurrent | Drafting::Misrecurrent => recurrent(drawn),
            _ => draft.next(context),
        });
        let reported = match (self.drafting, before) {
            _ if self.masking == Masking::Misreported => Arc::new(self.drafter(false).next(context)),
            (Drafting::Mischained, Some(before)) => {
                Arc::new(place(Some((before + 1) % VOCABULARY as TokenId)))
            }
            (Drafting::Misrecurrent, _) => {
                let likeliest = |position| likeliest(&recurrent(&drawn[..position]), 1)[0];
                Arc::new(recurrent(&(0..depth).map(likeliest).collect::<Vec<_>>()))
            }
            _ => Arc::clone(&q),
        };
        (q, reported)
    }

    /// A chain by staged drafting: each token is distributed as if the draft had drawn it.
    fn grow_staged(&self, context: &[TokenId], oracle: &mut Oracle) -> Guesses {
        let mut guesses = Guesses::default();
        let mut text = context.to_vec();
        let draft = self.drafter(self.masking == Masking::Both);
        while guesses.len() < self.draft_length {
            let mut stage = Guesses::default();
            let mut staged = text.clone();
            while stage.len() < (self.draft_length - guesses.len() - 1).min(2) {
                // A poor drafter, which repeats the last token.
                let token = staged.last().map_or(0, |&token| token);
                stage.push(guess(token, stage.len().checked_sub(1), None));
                staged.push(token);
            }
            let mut rows = Vec::new();
            let target = |row: Option<usize>| {
                let q = Arc::new(draft.next(&staged[..text.len() + row.map_or(0, |row| row + 1)]));
                rows.push(Arc::clone(&q));
                Ok::<_, Infallible>((*q).clone())
            };
            let verdict = accept(&stage, Verification::Token, text.len(), target, oracle).unwrap();
            let tokens = verdict.path.iter().map(|&index| stage[index].token).chain([verdict.extra]);
            for (token, q) in tokens.collect::<Vec<_>>().into_iter().zip(&rows) {
                guesses.push(guess(token, guesses.len().checked_sub(1), Some(q)));
                text.push(token);
            }
        }
        let end = guesses.iter().position(|guess| Some(guess.token) == self.end);
        guesses.truncate(end.map_or(self.draft_length, |end| self.draft_length.min(end + 1)));
        guesses
    }

    /// Returns true if the last token of `text` ends it.
    fn has_ended(&self, text: &[TokenId]) -> bool {
        text.last().is_some_and(|&last| Some(last) == self.end)
    }

    /// Returns true if nothing follows `text`.
    fn is_complete(&self, text: &[TokenId]) -> bool {
        text.len() == LENGTH || self.has_ended(text)
    }

    /// Joint distribution of the first tokens that decoding by `rule` emits.
    fn decode(&self, rule: Rule) -> HashMap<Vec<TokenId>, f64> {
        let mut joint = HashMap::new();
        Oracle::leaves(|oracle| {
            let mut text = Vec::new();
            while !self.is_complete(&text) {
                self.round(rule, &mut text, oracle);
            }
            *joint.entry(text).or_insert(0.0) += oracle.weight;
        });
        joint
    }

    fn round(&self, rule: Rule, text: &mut Vec<TokenId>, oracle: &mut Oracle) {
        let start = text.len();
        // No draft reaches beyond the end, as in the decoder.
        let draft_length = self.draft_length.min(LENGTH - start - 1);
        let cut = Self { draft_length, target: self.target.clone(), draft: self.draft.clone(), ..*self };
        let mut guesses = Guesses::default();
        if self.drafting == Drafting::Staged {
            guesses = cut.grow_staged(text, oracle);
        } else {
            cut.grow(&mut guesses, None, text, draft_length, oracle);
        }
        let path = |last: Option<usize>| {
            let mut path: Vec<TokenId> = std::iter::successors(last, |&index| guesses[index].parent)
                .map(|i| guesses[i].token)
                .collect();
            path.reverse();
            path
        };
        let all = path(guesses.len().checked_sub(1));
        let mut target = |last: Option<usize>| self.judged(&text[..start], &path(last), &all);
        let verdict = rule(&guesses, self.verification, &mut target, oracle);
        let accepted = path(verdict.path.last().copied());
        // The decoder emits nothing after an end token.
        for token in accepted.into_iter().chain([verdict.extra]) {
            if !self.has_ended(text) || text.len() == start {
                text.push(token);
            }
        }
    }

    /// Total variation distance to the target's joint distribution.
    fn total_variation(&self, rule: Rule) -> f64 {
        let mut joint = self.decode(rule);
        let mut difference = 0.0;
        Oracle::leaves(|oracle| {
            let mut text = Vec::new();
            while !self.is_complete(&text) {
                text.push(oracle.draw(text.len(), &self.target.next(&text)));
            }
            difference += (joint.remove(&text).unwrap_or(0.0) - oracle.weight).abs();
        });
        // The rest are texts that the target never writes.
        (difference + joint.values().sum::<f64>()) / 2.0
    }

    /// Expected number of accepted tokens in the first round.
    fn accepted(&self, verification: Verification) -> f64 {
        let mut accepted = 0.0;
        Oracle::leaves(|oracle| {
            let mut guesses = Guesses::default();
            self.grow(&mut guesses, None, &[], self.draft_length, oracle);
            let context = |last: Option<usize>| -> Vec<TokenId> {
                guesses[..last.map_or(0, |last| last + 1)].iter().map(|guess| guess.token).collect()
            };
            let target = |last| Ok::<_, Infallible>(self.target.next(&context(last)));
            let verdict = accept(&guesses, verification, 0, target, oracle).unwrap();
            accepted += oracle.weight * verdict.path.len() as f64;
        });
        accepted
    }
}

/// Draws without replacement; fewer tokens if there are no more.
fn draw_some(q: &Distribution, count: usize, oracle: &mut Oracle) -> Vec<TokenId> {
    draw_while(q, count, oracle, |_| true)
}

/// As [`draw_some`], while `goes_on` returns true for the last drawn token.
fn draw_while(
    q: &Distribution,
    count: usize,
    oracle: &mut Oracle,
    goes_on: impl Fn(TokenId) -> bool,
) -> Vec<TokenId> {
    let mut tokens = vec![oracle.draw(0, q)];
    let mut rest = q.without(tokens[0]);
    while let Some(q) = rest.filter(|_| tokens.len() < count && tokens.iter().all(|&token| goes_on(token))) {
        let token = oracle.draw(0, &q);
        tokens.push(token);
        rest = q.without(token);
    }
    tokens
}

fn likeliest(q: &Distribution, count: usize) -> Vec<TokenId> {
    let mut entries = q.entries().to_vec();
    entries.sort_by(|a, b| b.1.total_cmp(&a.1));
    entries.into_iter().take(count).map(|(token, _)| token).collect()
}

type Target<'a> = &'a mut dyn FnMut(Option<usize>) -> Distribution;
type Rule = fn(&Guesses, Verification, Target<'_>, &mut Oracle) -> Verdict;

fn as_shipped(
    guesses: &Guesses,
    verification: Verification,
    target: Target<'_>,
    oracle: &mut Oracle,
) -> Verdict {
    accept(guesses, verification, 0, |last| Ok::<_, Infallible>(target(last)), oracle).unwrap()
}

fn row() -> impl Strategy<Value = [f32; VOCABULARY]> {
    // Equal logits make ties, -inf makes zeros and, between two models, disjoint supports.
    let logit = prop_oneof![6 => -3f32..3.0, 2 => Just(0.5f32), 2 => Just(f32::NEG_INFINITY)];
    prop::array::uniform3(logit).prop_map(|mut row| {
        if row.iter().all(|logit| logit.is_infinite()) {
            row[0] = 0.0;
        }
        row
    })
}

fn sampling() -> impl Strategy<Value = Sampling> {
    let temperature = prop_oneof![Just(0f32), Just(1e-3), Just(0.7), Just(1.0), Just(2.0)];
    let top_k = prop_oneof![3 => Just(0u32), 1 => Just(1), 1 => Just(2)];
    let top_p = prop_oneof![2 => Just(1f32), 1 => Just(0.6)];
    let min_p = prop_oneof![2 => Just(0f32), 1 => Just(0.3)];
    let penalty = prop_oneof![2 => Just(1f32), 1 => Just(1.5), 1 => Just(0.7)];
    let reach = || prop_oneof![Just(-1i32), Just(2)];
    let dry = (prop_oneof![2 => Just(0f32), 1 => Just(0.8)], 1u32..3);
    let of_reply = || prop_oneof![2 => Just(0f32), 1 => Just(1.5), 1 => Just(-0.7)];
    let bias =
        prop_oneof![2 => Just(Vec::new()), 1 => (0..VOCABULARY as u32, -3f32..3.0).prop_map(|one| vec![one])];
    let of_reply = (of_reply(), of_reply(), bias);
    (temperature, top_k, top_p, min_p, (penalty, reach(), reach(), dry), of_reply).prop_map(
        |(temperature, top_k, top_p, min_p, (repetition_penalty, last_n, dry_last_n, dry), of_reply)| {
            Sampling {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty,
                repeat_last_n: last_n,
                dry_multiplier: dry.0,
                dry_allowed_length: dry.1,
                dry_penalty_last_n: dry_last_n,
                presence_penalty: of_reply.0,
                frequency_penalty: of_reply.1,
                logit_bias: of_reply.2,
                ..Sampling::default()
            }
        },
    )
}

fn drafting() -> impl Strategy<Value = Drafting> {
    prop_oneof![
        3 => Just(Drafting::Drawn),
        1 => Just(Drafting::Certain),
        1 => Just(Drafting::Staged),
        1 => Just(Drafting::Mixed),
        2 => Just(Drafting::Confident),
        1 => Just(Drafting::Beside),
        1 => Just(Drafting::Positions),
        1 => Just(Drafting::Chained),
        1 => Just(Drafting::Recurrent),
        1 => Just(Drafting::Forced),
    ]
}

fn language() -> impl Strategy<Value = Option<Language>> {
    let allowed = 1u32..1 << VOCABULARY;
    prop_oneof![1 => Just(None), 2 => prop::collection::vec(allowed, 1..20).prop_map(Language).prop_map(Some)]
}

fn shape() -> impl Strategy<Value = (usize, [usize; LENGTH])> {
    // Chains up to the full length; wide trees are shallow, because branches multiply.
    prop_oneof![
        2 => (0..LENGTH).prop_map(|length| (length, [1; LENGTH])),
        1 => prop::array::uniform2(1usize..4).prop_map(|[a, b]| (2, [a, b, 1, 1])),
        1 => (1usize..3).prop_map(|a| (3, [a, 1, 1, 1])),
    ]
}

fn pair() -> impl Strategy<Value = Pair> {
    let rows = || prop::collection::vec(row(), 1..30);
    let threshold = prop_oneof![2 => Just(0.0), 1 => 0.3f64..0.9];
    let verification = prop_oneof![Just(Verification::Block), Just(Verification::Token)];
    let end = prop_oneof![Just(None), Just(Some(0)), Just(Some(2))];
    let how = (drafting(), shape(), threshold, verification, end);
    let masking = prop_oneof![Just(Masking::Both), Just(Masking::Target)];
    let constraint = (language(), masking);
    (rows(), rows(), sampling(), sampling(), how, constraint, any::<[bool; 2]>()).prop_map(
        |(target, draft, ours, theirs, how, (language, masking), [same_rows, same_sampling])| {
            // Of the allowed tokens some must be possible.
            let possible = |row: [f32; VOCABULARY]| match language {
                Some(_) => row.map(|logit| logit.max(-4.0)),
                None => row,
            };
            let target: Vec<_> = target.into_iter().map(possible).collect();
            let draft: Vec<_> = draft.into_iter().map(possible).collect();
            let (drafting, (draft_length, widths), threshold, verification, end) = how;
            let draft = if same_rows { target.clone() } else { draft };
            // Further siblings multiply the branches.
            let longest = if drafting == Drafting::Beside { 2 } else { LENGTH };
            let draft_length = draft_length.min(longest);
            let by_token = drafting == Drafting::Confident;
            let verification = if by_token { Verification::Token } else { verification };
            let theirs = if same_sampling { ours.clone() } else { theirs };
            Pair {
                target: Toy { rows: target, sampling: ours, language },
                draft: Toy { rows: draft, sampling: theirs, language: None },
                drafting,
                draft_length,
                widths,
                threshold,
                verification,
                end,
                masking,
            }
        },
    )
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, draft, drafting, draft_length, widths, threshold, verification, end, masking } =
            self;
        write!(
            f,
            "{drafting:?} x {draft_length}, {widths:?}, threshold {threshold}, {verification:?}, end {end:?}, \
             {masking:?}\n\
             target {target:?}\ndraft {draft:?}"
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_emitted_text_has_exactly_the_targets_distribution(pair in pair()) {
        let found = pair.total_variation(as_shipped);
        prop_assert!(found < TOLERANCE, "total variation {found:e}");
    }

    #[test]
    fn a_block_accepts_at_least_as_many_tokens_as_one_by_one(pair in pair()) {
        let pair = Pair { widths: [1; LENGTH], drafting: Drafting::Drawn, ..pair };
        let [block, token] = [Verification::Block, Verification::Token].map(|rule| pair.accepted(rule));
        prop_assert!(block >= token - TOLERANCE, "{block} accepted as a block, {token} one by one");
    }
}

#[test]
fn a_block_accepts_more_tokens_for_a_draft_that_differs() {
    let pair = revealing_pair(Drafting::Drawn);
    let [block, token] = [Verification::Block, Verification::Token].map(|rule| pair.accepted(rule));
    assert!(block > token * 1.01, "{block} accepted as a block, {token} one by one");
}

/// A pair on which every error below is detected.
fn revealing_pair(drafting: Drafting) -> Pair {
    let sampling = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
    let toy = |shift: usize| Toy {
        rows: (0..11).map(|i| [0, 1, 2].map(|t| ((i * 5 + t * 7 + shift * 3) % 9) as f32 / 3.0)).collect(),
        sampling: sampling.clone(),
        language: None,
    };
    Pair {
        target: toy(0),
        draft: toy(1),
        drafting,
        draft_length: 3,
        widths: [1; LENGTH],
        threshold: 0.0,
        verification: Verification::Token,
        end: None,
        masking: Masking::Both,
    }
}

/// As `pair`, in a language of which every position allows two or three tokens.
fn constrained(pair: Pair, masking: Masking) -> Pair {
    let language = Some(Language(vec![0b011, 0b101, 0b111, 0b110, 0b011, 0b110, 0b101]));
    Pair { target: Toy { language, ..pair.target }, masking, ..pair }
}

/// As [`revealing_pair`], with two guesses at the first position.
fn revealing_tree(drafting: Drafting) -> Pair {
    Pair { draft_length: 2, widths: [2, 1, 1, 1], ..revealing_pair(drafting) }
}

#[track_caller]
fn assert_caught(pair: &Pair, mutant: Rule) {
    assert!(pair.total_variation(as_shipped) < TOLERANCE, "the pair itself must be sound");
    let found = pair.total_variation(mutant);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn dropping_the_last_accepted_token_is_detected() {
    assert_caught(&revealing_pair(Drafting::Drawn), |guesses, verification, target, oracle| {
        let mut verdict = as_shipped(guesses, verification, target, oracle);
        verdict.path.pop();
        verdict
    });
}

#[test]
fn an_argmax_draft_reported_as_softmax_is_detected() {
    let pair = revealing_pair(Drafting::Pretended);
    let found = pair.total_variation(as_shipped);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn siblings_sorted_by_probability_are_detected() {
    assert!(revealing_tree(Drafting::Drawn).total_variation(as_shipped) < TOLERANCE);
    let found = revealing_tree(Drafting::Sorted).total_variation(as_shipped);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn dropping_a_drawn_guess_because_of_its_probability_is_detected() {
    assert!(revealing_tree(Drafting::Confident).total_variation(as_shipped) < TOLERANCE);
    let found = revealing_tree(Drafting::Pruned).total_variation(as_shipped);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn a_rule_that_depends_on_the_drawn_shape_is_detected() {
    let base = revealing_pair(Drafting::Confident);
    let always = |p: [f32; VOCABULARY]| Toy { rows: vec![p.map(f32::ln)], ..base.draft.clone() };
    let (target, draft) = (always([0.3, 0.3, 0.4]), always([0.6, 0.3, 0.1]));
    let pair = Pair { draft_length: 2, widths: [1, 2, 1, 1], target, draft, ..base };
    assert!(pair.total_variation(as_shipped) < TOLERANCE);
    let by_shape = Pair { verification: Verification::Block, ..pair };
    let found = by_shape.total_variation(as_shipped);
    assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
}

#[test]
fn judging_a_certain_sibling_before_the_drawn_ones_is_detected() {
    let pair = Pair { draft_length: 1, ..revealing_pair(Drafting::Beside) };
    assert_caught(&pair, |guesses, verification, target, oracle| {
        let certain = guesses.iter().position(|guess| guess.drawn_from.is_none());
        let token = oracle.draw(0, &target(None));
        match certain.filter(|&index| guesses[index].token == token) {
            Some(index) => {
                let extra = oracle.draw(0, &target(Some(index)));
                Verdict { path: vec![index], rejected: Vec::new(), extra }
            }
            None => {
                let drawn = guesses.iter().filter(|guess| guess.drawn_from.is_some()).cloned().collect();
                as_shipped(&drawn, verification, target, oracle)
            }
        }
    });
}

#[test]
fn a_block_reported_with_wrong_previous_tokens_is_detected() {
    for rule in [Verification::Token, Verification::Block] {
        let pair = |drafting| Pair { verification: rule, ..revealing_pair(drafting) };
        for (right, wrong) in
            [(Drafting::Chained, Drafting::Mischained), (Drafting::Recurrent, Drafting::Misrecurrent)]
        {
            assert!(pair(right).total_variation(as_shipped) < TOLERANCE);
            let found = pair(wrong).total_variation(as_shipped);
            assert!(found > 1e-3, "the mistake went unseen: total variation {found:e}");
        }
    }
}

#[test]
fn recovering_from_the_target_instead_of_the_residual_is_detected() {
    assert_caught(&revealing_pair(Drafting::Drawn), |guesses, _, target, oracle| {
        let mut path = Vec::new();
        for (index, guess) in guesses.iter().enumerate() {
            let p = target(path.last().copied());
            let q = guess.drawn_from.as_ref().unwrap().probability(guess.token);
            if !oracle.accepts(p.probability(guess.token) / q) {
                return Verdict { path, rejected: vec![index], extra: oracle.draw(0, &p) };
            }
            path.push(index);
        }
        let extra = oracle.draw(0, &target(path.last().copied()));
        Verdict { path, rejected: Vec::new(), extra }
    });
}

#[test]
fn a_bonus_token_from_the_wrong_row_is_detected() {
    assert_caught(&revealing_pair(Drafting::Drawn), |guesses, verification, target, oracle| {
        let last = guesses.len().checked_sub(1);
        let mut wrong =
            |row: Option<usize>| target(if row == last { row.and_then(|r| r.checked_sub(1)) } else { row });
        as_shipped(guesses, verification, &mut wrong, oracle)
    });
}

#[test]
fn block_verification_without_its_memory_is_detected() {
    let base = revealing_pair(Drafting::Drawn);
    let always = |p: [f32; VOCABULARY]| Toy { rows: vec![p.map(f32::ln)], ..base.draft.clone() };
    // The draft overrates the last token; after it two tokens remain that the target prefers.
    let (target, draft) = (always([0.45, 0.3, 0.25]), always([0.05, 0.05, 0.9]));
    let pair = Pair { verification: Verification::Block, target, draft, ..base };
    assert_caught(&pair, |guesses, verification, target, oracle| {
        let mut verdict = as_shipped(guesses, verification, target, oracle);
        if verdict.path.len() < guesses.len() {
            // Unscaled, as if all earlier tokens had been certain.
            let p = target(verdict.path.last().copied());
            let q = guesses[verdict.path.len()].drawn_from.as_ref().unwrap();
            verdict.extra = oracle.draw(0, &p.residual(1.0, q).unwrap_or(p));
        }
        verdict
    });
}

#[test]
fn writing_on_after_an_end_token_is_detected() {
    let pair = Pair { end: Some(1), ..revealing_pair(Drafting::Drawn) };
    assert_caught(&pair, |guesses, verification, target, oracle| {
        let mut verdict = as_shipped(guesses, verification, target, oracle);
        // An accepted end token is dropped.
        let end = verdict.path.iter().position(|&index| guesses[index].token == 1);
        verdict.path.truncate(end.unwrap_or(verdict.path.len()));
        verdict
    });
}

#[test]
fn mistakes_with_a_constraint_are_detected() {
    for sound in [Masking::Both, Masking::Target] {
        let found = constrained(revealing_pair(Drafting::Drawn), sound).total_variation(as_shipped);
        assert!(found < TOLERANCE, "total variation {found:e}");
    }
    for mistake in [
        Masking::Dropping,
        Masking::Misreported,
        Masking::OffByOne,
        Masking::NotRolledBack,
        Masking::AfterFilters,
    ] {
        let mut pair = constrained(revealing_pair(Drafting::Drawn), mistake);
        if mistake == Masking::AfterFilters {
            pair.target.sampling.top_p = 0.8;
        }
        let found = pair.total_variation(as_shipped);
        assert!(found > 1e-3, "{mistake:?} went unseen: total variation {found:e}");
    }
}

#[test]
fn accepting_everything_is_detected() {
    assert_caught(&revealing_pair(Drafting::Certain), |guesses, _, target, oracle| Verdict {
        path: (0..guesses.len()).collect(),
        rejected: Vec::new(),
        extra: oracle.draw(0, &target(guesses.len().checked_sub(1))),
    });
}

#[test]
fn the_oracle_visits_every_leaf_once() {
    let mut total = 0.0;
    let leaves = Oracle::leaves(|oracle| {
        let first = oracle.choose(&[0.5, 0.25, 0.25]);
        if first > 0 {
            oracle.accepts(0.125);
        }
        total += oracle.weight;
    });
    assert_eq!((leaves, total), (5, 1.0));
}
