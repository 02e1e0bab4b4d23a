//! Draft trees: finds the best one and compares it with a chain.

use super::plan::{Plan, Prospect};
use super::shape::{CachedTree, Grown, Plans, Shape, TreeLimits};
use super::{Governor, HYSTERESIS};
use crate::speculation::{DraftLength, MAX_DRAFT_LENGTH, MAX_TREE_WIDTH, Room, Speculation, Tree};
use crate::trace::LengthReason;

/// Rounds after which the best tree is computed again.
const TREE_AGE: usize = 16;

impl Governor {
    /// Tree with the most expected accepted tokens, by the drafter's statistics.
    pub fn tree(&self, drafter: usize, width: usize, depth: usize, nodes: usize) -> Shape {
        let ranks = self.stats(drafter).acceptance.by_depth_and_rank(depth);
        let nodes = nodes.min(MAX_DRAFT_LENGTH);
        Plans::new(&ranks, width.min(MAX_TREE_WIDTH), nodes).shape(nodes)
    }

    /// Turns the plan into a tree where requested. The best tree changes slowly, and finding it
    /// takes as long as a small draft, so it is cached.
    pub(super) fn spread(&self, plan: &mut Plan, speculation: &Speculation, room: Room) {
        let (width, must) = match speculation.tree {
            Tree::Off | Tree::Width(..=1) => return,
            Tree::Auto => (MAX_TREE_WIDTH, false),
            Tree::Width(width) => ((width as usize).min(MAX_TREE_WIDTH), true),
        };
        if plan.reason == LengthReason::Probe {
            return;
        }
        // With a fixed length, a tree is as deep as the chain it replaces.
        let auto = speculation.length == DraftLength::Auto;
        let depth = if auto { room.longest() } else { plan.length };
        let depth = depth.min(self.drafters[plan.drafter].longest());
        let limits = TreeLimits { width, depth, nodes: room.longest() };
        let known = &self.drafters[plan.drafter].tree;
        let known = if known.limits != limits || known.age >= TREE_AGE {
            CachedTree { limits, age: 1, best: self.best_tree(plan.drafter, limits, auto, plan.staged) }
        } else {
            CachedTree { age: known.age + 1, ..known.clone() }
        };
        let Some(tree) = &plan.tree.insert(known).best else { return };
        let prospect = self.of_tree(plan.drafter, tree, plan.staged);
        if must || prospect.rate() > plan.prospect.rate() * HYSTERESIS {
            (plan.shape, plan.prospect) = (Some(tree.shape.clone()), prospect);
        }
    }

    /// Tree with the most tokens per millisecond within `limits`; of the largest size unless `any`.
    fn best_tree(&self, drafter: usize, limits: TreeLimits, any: bool, staged: bool) -> Option<Grown> {
        let ranks = self.stats(drafter).acceptance.by_depth_and_rank(limits.depth);
        let plans = Plans::new(&ranks, limits.width, limits.nodes);
        let least = if any { 2 } else { limits.nodes };
        let trees = (least..=limits.nodes)
            .map(|nodes| Grown { shape: plans.shape(nodes), accepted: plans.expected(nodes) })
            .map(|tree| (self.of_tree(drafter, &tree, staged).rate(), tree));
        trees.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, tree)| tree)
    }

    /// Expected tokens and time of a tree.
    fn of_tree(&self, drafter: usize, Grown { shape, accepted }: &Grown, staged: bool) -> Prospect {
        let levels: f64 = shape.inner_widths().iter().map(|&rows| self.level_ms(drafter, rows, staged)).sum();
        let account = &self.drafters[drafter];
        // A one-pass draft has all levels from the start.
        let first = if account.at_once.is_some() { shape.depth() } else { 1 };
        let draft_ms = account.chain_ms(first, staged) + levels * account.level.get();
        Prospect { tokens: 1.0 + accepted, ms: self.drafted_time(drafter, shape.len(), draft_ms) }
    }

    /// Milliseconds of the drafter's pass over several rows; more rows are assumed to cost as much
    /// more as for the target.
    pub(super) fn level_ms(&self, drafter: usize, rows: usize, staged: bool) -> f64 {
        self.drafters[drafter].token_ms(staged) * self.verify.get(rows) / self.verify.get(1)
    }
}
