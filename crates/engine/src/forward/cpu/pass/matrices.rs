//! State matrices of recurrent layers in a pass: step logs are applied to them and rows read them,
//! in the order that `walk` planned. The contents of a log entry are defined in `delta` and
//! `mamba`.

use super::Phases;
use crate::forward::cpu::memory::{Memory, Record};
use crate::forward::cpu::simd::LANES;
use crate::forward::cpu::step::{AT_ONCE, Applied, Read, Step};
use crate::forward::cpu::team::Member;
use crate::forward::cpu::walk::{self, Place, Visit};
use crate::model::Recurrence;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl Phases<'_> {
    /// Takes a block of a head's matrix through all rows. Calls `found` with each node and what it
    /// read before its own step.
    ///
    /// # Safety
    /// The head must belong to this unit; the keys and decays of its records must have been
    /// written.
    pub unsafe fn walk_block(
        &self,
        (member, memory): (&Member<'_>, &Memory),
        of: &Recurrence,
        block: (usize, usize),
        mut found: impl FnMut(usize, &Read),
    ) {
        for visit in &self.workspace.recurrent.walk.visits {
            // SAFETY: guaranteed by the caller.
            let read = unsafe { self.visit((member, memory), of, block, visit) };
            if let Some(node) = visit.read {
                found(node, &read);
            }
        }
    }

    /// Applies records to a block of a head's matrix, then reads it for a row.
    ///
    /// # Safety
    /// As [`Self::walk_block`].
    unsafe fn visit(
        &self,
        (member, memory): (&Member<'_>, &Memory),
        of: &Recurrence,
        (head, block): (usize, usize),
        visit: &Visit,
    ) -> Read {
        let (scratch, heads) = (&self.workspace.recurrent, &of.heads);
        let key_head = heads.key_of(head);
        let plan = &scratch.walk.plan;
        let state = |place: Option<usize>| {
            place.map_or(std::ptr::null_mut(), |place| memory.matrix(place, head, block))
        };
        let matrix = |place: Place| match place {
            Place::From => state(plan.from),
            Place::To => state(plan.to),
            Place::End => state(plan.end),
            Place::Copy(copy) => scratch.copy(member.index(), copy, heads.key_size),
        };
        let applied = |record: Record| Applied {
            // SAFETY: decays were written before this phase began, or by passes before.
            decay: unsafe { *record.decay(head) },
            key: record.key(key_head),
            correction: record.correction(head, block),
        };
        let to = visit.to.map_or(std::ptr::null_mut(), matrix);
        let mut found = Read::NOTHING;
        let reading = visit.read.map(|node| {
            let query = self.convolved(node - self.first, of.queries() + key_head * heads.key_size);
            (self.record(memory, node).key(key_head).cast_const(), query.cast_const(), &raw mut found)
        });
        let step = Step { keys: heads.key_size, from: matrix(visit.from), to, applied: &[], read: reading };
        // SAFETY: guaranteed by the caller; matrices, keys and corrections are as large as the
        // heads say.
        unsafe {
            match visit.applied {
                walk::Applied::Nothing => (self.kernels.step)(&step),
                walk::Applied::Node(node) => {
                    let applied = [applied(self.record(memory, node))];
                    (self.kernels.step)(&Step { applied: &applied, ..step });
                }
                walk::Applied::Before => {
                    self.apply(&plan.before, |place| applied(memory.record(place)), step)
                }
            }
        }
        found
    }

    /// Applies any number of records in steps of at most `AT_ONCE`.
    ///
    /// # Safety
    /// The contract of the `step` kernel.
    unsafe fn apply(&self, places: &[usize], of: impl Fn(usize) -> Applied, step: Step<'_>) {
        let nothing = Applied { decay: 0.0, key: std::ptr::null(), correction: std::ptr::null() };
        let (mut from, mut left) = (step.from, places);
        while !left.is_empty() {
            let (now, later) = left.split_at(AT_ONCE.min(left.len()));
            let mut applied = [nothing; AT_ONCE];
            now.iter().zip(&mut applied).for_each(|(&place, applied)| *applied = of(place));
            let read = step.read.filter(|_| later.is_empty());
            // SAFETY: guaranteed by the caller.
            unsafe { (self.kernels.step)(&Step { from, applied: &applied[..now.len()], read, ..step }) };
            (from, left) = (step.to, later);
        }
    }

    /// Convolution output of a row, from `channel` on.
    pub fn convolved(&self, row: usize, channel: usize) -> *mut f32 {
        let channels = self.config.recurrence.as_ref().map_or(0, |recurrence| recurrence.channels);
        self.workspace.recurrent.convolved.at(row * channels.next_multiple_of(LANES) + channel)
    }
}

/// Softplus: `ln(1 + e^x)`.
pub fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}
