//! Division of a layer's attention into units of work that can be computed side by side: some query
//! heads of some rows over some runs of positions.

use std::ops::Range;

use foretoken_model::ModelConfig;

use super::attention::AttentionRun;
use super::latent::HEADS_AT_ONCE;
use super::simd::LANES;

/// Units for each member of a team from which on runs need not be divided among units.
const UNITS_PER_MEMBER: usize = 4;

/// Query heads of all rows of a unit that attend together, unless one row alone has more: enough
/// for the kernel to load each key for several of them.
const HEADS_PER_UNIT: usize = 16;

/// Sizes of a kind of attention in the cache's terms: of latents where it has them.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Query heads, and how many of them form a group.
    pub heads: usize,
    pub group: usize,
    /// Numbers from one query to the next, and of a key.
    pub query_size: usize,
    pub value_size: usize,
}

impl AttentionShape {
    pub fn of(config: &ModelConfig, kind: usize) -> Self {
        let (heads, keys) = (config.heads, config.attention_kinds[kind].keys);
        let (group, query_size, value_size) = match config.latent() {
            Some(latent) => {
                (heads.min(HEADS_AT_ONCE), latent.keys().size.next_multiple_of(LANES), latent.size)
            }
            None => (heads / keys.count, keys.size, keys.size),
        };
        Self { heads, group, query_size, value_size }
    }

    /// Units of `rows` over `runs` on a team of `members`.
    pub fn units(&self, rows: usize, runs: Range<usize>, members: usize) -> AttentionUnits {
        AttentionUnits::new(self.heads.div_ceil(self.group), self.group, rows, runs, members)
    }
}

/// Division of a layer's attention. Heads that share keys form a group, and rows a tile.
#[derive(Debug, Clone)]
pub struct AttentionUnits {
    groups: usize,
    /// Query heads of a group.
    heads: usize,
    rows: usize,
    /// Most rows of a unit.
    tile: usize,
    /// Runs that some row sees.
    runs: Range<usize>,
    /// Each unit has one run. Otherwise it has all of them.
    split: bool,
    members: usize,
}

/// A unit of work.
#[derive(Debug, Clone)]
pub struct Unit {
    pub group: usize,
    pub rows: Range<usize>,
    pub runs: Range<usize>,
    /// Place of its parts in memory, shared by the units of a result.
    pub place: usize,
}

impl AttentionUnits {
    fn new(groups: usize, heads: usize, rows: usize, runs: Range<usize>, members: usize) -> Self {
        let tiles = rows.div_ceil((HEADS_PER_UNIT / heads).max(1)).max(1);
        let split = runs.len() > 1 && groups * tiles < UNITS_PER_MEMBER * members;
        Self { groups, heads, rows, tile: rows.div_ceil(tiles).max(1), runs, split, members }
    }

    fn tiles(&self) -> usize {
        self.rows.div_ceil(self.tile)
    }

    /// Number of units that share a result.
    pub fn units_of_result(&self) -> usize {
        if self.split { self.runs.len() } else { 1 }
    }

    pub fn count(&self) -> usize {
        self.groups * self.tiles() * self.units_of_result()
    }

    /// Returns a unit that `member` does.
    pub fn unit(&self, index: usize, member: usize) -> Unit {
        let (result, part) = (index / self.units_of_result(), index % self.units_of_result());
        let (group, first) = (result / self.tiles(), result % self.tiles() * self.tile);
        let run = self.runs.start + part;
        Unit {
            group,
            rows: first..self.rows.min(first + self.tile),
            runs: if self.split { run..run + 1 } else { self.runs.clone() },
            place: if self.split { result } else { member },
        }
    }

    /// Returns whether the unit has the last run.
    pub fn has_last_run(&self, unit: &Unit) -> bool {
        unit.runs.end == self.runs.end
    }

    /// Places of parts.
    pub fn places(&self) -> usize {
        (self.groups * self.tiles()).min(UNITS_PER_MEMBER * self.members).max(self.members)
    }

    /// Queries of a unit.
    pub fn heads_of_unit(&self) -> usize {
        self.tile * self.heads
    }

    /// Index, in parts of `value_size`, of a row's first head in a run.
    pub fn part(&self, unit: &Unit, run: usize, row: usize) -> usize {
        let run = unit.place * self.runs.len() + run - self.runs.start;
        (run * self.tile + row - unit.rows.start) * self.heads
    }

    /// Numbers of all parts.
    pub fn size(&self, value_size: usize) -> usize {
        self.places() * self.part_stride(value_size) * self.runs.len()
    }

    /// Numbers from a run's parts to the next run's.
    pub fn part_stride(&self, value_size: usize) -> usize {
        self.heads_of_unit() * AttentionRun::part_size(value_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all units, each done by a member of its own.
    fn units(of: &AttentionUnits) -> Vec<Unit> {
        (0..of.count()).map(|index| of.unit(index, index % of.members)).collect()
    }

    #[test]
    fn units_cover_every_group_row_and_run_once() {
        for (groups, heads, rows, runs, members) in
            [(3, 3, 1, 0..7, 2), (2, 7, 9, 4..5, 2), (8, 4, 70, 0..3, 4), (1, 32, 5, 1..9, 16)]
        {
            let of = AttentionUnits::new(groups, heads, rows, runs.clone(), members);
            let mut seen = vec![0; groups * rows * runs.end];
            for unit in units(&of) {
                for (row, run) in unit.rows.flat_map(|row| unit.runs.clone().map(move |run| (row, run))) {
                    seen[(unit.group * rows + row) * runs.end + run] += 1;
                }
            }
            for (index, seen) in seen.into_iter().enumerate() {
                assert_eq!(seen, usize::from(runs.contains(&(index % runs.end))));
            }
        }
    }

    #[test]
    fn few_heads_and_rows_are_divided_by_runs_and_many_are_not() {
        assert_eq!(AttentionUnits::new(3, 3, 1, 0..6, 2).units_of_result(), 6);
        assert_eq!(AttentionUnits::new(3, 3, 1, 2..3, 2).units_of_result(), 1);
        assert_eq!(AttentionUnits::new(3, 3, 128, 0..6, 2).units_of_result(), 1);
    }

    #[test]
    fn places_of_parts_overlap_only_where_a_member_reuses_its_own() {
        for (rows, members) in [(1, 2), (9, 2), (70, 3)] {
            let of = AttentionUnits::new(3, 3, rows, 2..8, members);
            let last = of.size(20) / AttentionRun::part_size(20);
            let mut owners = vec![None; last];
            for (index, unit) in units(&of).into_iter().enumerate() {
                let owner = if of.split { index } else { index % members };
                for (row, run) in
                    unit.rows.clone().flat_map(|row| unit.runs.clone().map(move |run| (row, run)))
                {
                    let part = of.part(&unit, run, row);
                    for owned in &mut owners[part..part + of.heads] {
                        assert!(*owned.get_or_insert(owner) == owner);
                    }
                }
            }
        }
    }
}
