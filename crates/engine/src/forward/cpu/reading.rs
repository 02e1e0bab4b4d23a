//! Who reads which weights: runs of panels, shared out as members come for them, each knowing what it will
//! read after. What is done with the panels is for others to say.

use std::ops::Range;

use super::panels::Panels;
use super::team::Member;

/// Units that a member takes at a time: few enough that a member that is held up does not hold up the
/// others for long, enough that memory is read in long runs.
pub fn run(total: usize, member: &Member<'_>) -> usize {
    (total / (8 * member.size())).max(1)
}

/// Does the member's share of the units `0..total`, each of which reads from `at(unit)` on: `work` is
/// given the unit and what will be read after it, which is what is at `then` after the last. For that a
/// run of units is taken before the one in hand is done.
pub fn share_reading(
    member: &Member<'_>,
    total: usize,
    at: impl Fn(usize) -> *const u8,
    then: *const u8,
    mut work: impl FnMut(usize, *const u8),
) {
    let mut in_hand = 0..0;
    let mut finish = |units: Range<usize>, then| {
        let end = units.end;
        units.for_each(|unit| work(unit, if unit + 1 < end { at(unit + 1) } else { then }));
    };
    member.share(total, run(total, member), |units| {
        let next = at(units.start);
        finish(std::mem::replace(&mut in_hand, units), next);
    });
    finish(in_hand, then);
}

/// Where this member will probably begin to read `weights`.
pub fn opening(weights: &Panels, member: &Member<'_>) -> *const u8 {
    let panels = weights.panels();
    weights.panel((member.index() * run(panels, member)).min(panels - 1)).as_ptr()
}
