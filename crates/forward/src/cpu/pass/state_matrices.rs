//! State matrices of recurrent layers in a pass: step logs are applied to them and rows read them,
//! in the order that `walk` planned. The contents of a log entry are defined in `delta` and
//! `mamba`.

use foretoken_model::Recurrence;

use super::PassContext;
use crate::cpu::memory::{Memory, StepRecord};
use crate::cpu::simd::LANES;
use crate::cpu::step::{BlockUpdate, MAX_UPDATES, MatrixStep, Read};
use crate::cpu::team::Member;
use crate::cpu::tree_walk::{MatrixSlot, Updates, Visit};

/// Block of columns of a value head's state matrix.
#[derive(Clone, Copy)]
pub struct HeadBlock {
    pub head: usize,
    pub block: usize,
}

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Takes a block of a head's matrix through all rows. Calls `on_read` with each node and what
    /// it read before its own step.
    ///
    /// # Safety
    /// The head must belong to this unit; the keys and decays of its records must have been
    /// written.
    pub unsafe fn walk_block(
        &self,
        member: &Member<'_>,
        memory: &Memory,
        recurrence: &Recurrence,
        block: HeadBlock,
        mut on_read: impl FnMut(usize, &Read),
    ) {
        for visit in &self.workspace.recurrent.walk.visits {
            // SAFETY: guaranteed by the caller.
            let read = unsafe { self.visit(member, memory, recurrence, block, visit) };
            if let Some(node) = visit.read {
                on_read(node, &read);
            }
        }
    }

    /// Applies records to a block of a head's matrix, then reads it for a row.
    ///
    /// # Safety
    /// As [`Self::walk_block`].
    unsafe fn visit(
        &self,
        member: &Member<'_>,
        memory: &Memory,
        recurrence: &Recurrence,
        HeadBlock { head, block }: HeadBlock,
        visit: &Visit,
    ) -> Read {
        let (scratch, heads) = (&self.workspace.recurrent, &recurrence.heads);
        let key_head = heads.key_of(head);
        let plan = &scratch.walk.plan;
        let state =
            |slot: Option<usize>| slot.map_or(std::ptr::null_mut(), |slot| memory.matrix(slot, head, block));
        let matrix = |slot: MatrixSlot| match slot {
            MatrixSlot::Initial => state(plan.from),
            MatrixSlot::Cached => state(plan.to),
            MatrixSlot::ChainEnd => state(plan.end),
            MatrixSlot::Copy(copy) => scratch.copy(member.index(), copy, heads.key_size),
        };
        let update = |record: StepRecord| BlockUpdate {
            // SAFETY: decays were written before this phase began, or by passes before.
            decay: unsafe { *record.decay(head) },
            key: record.key(key_head),
            correction: record.correction(head, block),
        };
        let to = visit.to.map_or(std::ptr::null_mut(), matrix);
        let mut read = Read::ZERO;
        let reader = visit.read.map(|node| {
            let query = self.convolved(node - self.first, recurrence.queries() + key_head * heads.key_size);
            (self.record(memory, node).key(key_head).cast_const(), query.cast_const(), &raw mut read)
        });
        let step =
            MatrixStep { keys: heads.key_size, from: matrix(visit.from), to, updates: &[], read: reader };
        // SAFETY: guaranteed by the caller; matrices, keys and corrections are as large as the
        // heads say.
        unsafe {
            match visit.updates {
                Updates::None => (self.kernels.step)(&step),
                Updates::Node(node) => {
                    let updates = [update(self.record(memory, node))];
                    (self.kernels.step)(&MatrixStep { updates: &updates, ..step });
                }
                Updates::Before => self.apply(&plan.before, |slot| update(memory.record(slot)), step),
            }
        }
        read
    }

    /// Applies any number of records in steps of at most `MAX_UPDATES`.
    ///
    /// # Safety
    /// The contract of the `step` kernel.
    unsafe fn apply(&self, slots: &[usize], update_at: impl Fn(usize) -> BlockUpdate, step: MatrixStep<'_>) {
        let nothing = BlockUpdate { decay: 0.0, key: std::ptr::null(), correction: std::ptr::null() };
        let (mut from, mut left) = (step.from, slots);
        while !left.is_empty() {
            let (now, later) = left.split_at(MAX_UPDATES.min(left.len()));
            let mut updates = [nothing; MAX_UPDATES];
            now.iter().zip(&mut updates).for_each(|(&slot, update)| *update = update_at(slot));
            let read = step.read.filter(|_| later.is_empty());
            // SAFETY: guaranteed by the caller.
            unsafe {
                (self.kernels.step)(&MatrixStep { from, updates: &updates[..now.len()], read, ..step })
            };
            (from, left) = (step.to, later);
        }
    }

    /// Convolution output of a row, from `channel` on.
    pub fn convolved(&self, row: usize, channel: usize) -> *mut f32 {
        let channels = self.config.recurrence().map_or(0, |recurrence| recurrence.channels);
        self.workspace.recurrent.convolved.at(row * channels.next_multiple_of(LANES) + channel)
    }
}
