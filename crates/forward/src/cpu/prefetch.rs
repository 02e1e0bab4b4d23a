//! Distribution of panels among members: in runs, each with the address that is read afterwards for
//! prefetching.

use std::ops::Range;

use super::panels::Panels;
use super::team::Member;

/// Units that a member takes at a time: few enough that a delayed member does not delay the others
/// for long, enough for long sequential reads.
pub fn run_length(total: usize, member: &Member<'_>) -> usize {
    (total / (8 * member.size())).max(1)
}

/// Does this member's share of the units `0..total`. `work` gets a unit and the address that is
/// read after it; the address after the last unit is `next`. `at(unit)` is where a unit is read. To
/// know what follows, a run of units is taken before the previous one is done.
pub fn share_with_prefetch(
    member: &Member<'_>,
    total: usize,
    at: impl Fn(usize) -> *const u8,
    next: *const u8,
    mut work: impl FnMut(usize, *const u8),
) {
    let mut pending = 0..0;
    let mut finish = |units: Range<usize>, next| {
        let end = units.end;
        units.for_each(|unit| work(unit, if unit + 1 < end { at(unit + 1) } else { next }));
    };
    member.share(total, run_length(total, member), |units| {
        let next_run = at(units.start);
        finish(std::mem::replace(&mut pending, units), next_run);
    });
    finish(pending, next);
}

/// Address where this member will probably start to read `weights`.
pub fn first_address(weights: &Panels, member: &Member<'_>) -> *const u8 {
    let panels = weights.panels();
    weights.panel(member.portion(panels, member.index()).start.min(panels - 1)).as_ptr()
}
