//! Distribution of panels among members: in runs, taken on demand, each with the address that is
//! read afterwards for prefetching.

use std::ops::Range;

use super::panels::Panels;
use super::team::Member;

/// Units that a member takes at a time: few enough that a delayed member does not delay the others
/// for long, enough for long sequential reads.
pub fn run(total: usize, member: &Member<'_>) -> usize {
    (total / (8 * member.size())).max(1)
}

/// Does this member's share of the units `0..total`. `work` gets a unit and the address that is
/// read after it; the address after the last unit is `then`. `at(unit)` is where a unit is read. To
/// know what follows, a run of units is taken before the previous one is done.
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

/// Address where this member will probably start to read `weights`.
pub fn opening(weights: &Panels, member: &Member<'_>) -> *const u8 {
    let panels = weights.panels();
    weights.panel((member.index() * run(panels, member)).min(panels - 1)).as_ptr()
}
