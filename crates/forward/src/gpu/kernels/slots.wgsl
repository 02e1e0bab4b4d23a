// Assigns tiles of slots and panels of their expert to workgroups.

struct Slot {
    row: u32,
    expert: u32,
    rows: u32, // rows of the tile that begins here, else 0
}
@group(0) @binding({{SLOTS}}) var<storage, read> slots: array<Slot>;

struct Tile {
    panel: u32, // the workgroup's first, in `weights`; below 0 if that is in an earlier part
    first: u32, // slot
    rows: u32,  // 0 if there is nothing to do: no tile begins, or `weights` has none of the panels
    out: u32,   // the same panel in the expert's matrix
    end: u32,   // of the expert's panels
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let slot = slots[group.x];
    let panel = slot.expert * params.panels + group.y * UNIT - params.first;
    var held = false;
    for (var other = 0u; other < UNIT; other++) {
        held = held || panel + other < params.held;
    }
    return Tile(panel, group.x, select(0u, slot.rows, held), group.y * UNIT, params.panels);
}

// The index of a row of the tile in rows of numbers. Slots beyond the tile repeat its last one.
fn input_row(tile: Tile, row: u32) -> u32 {
    let slot = tile.first + min(row, tile.rows - 1u);
    return select(slot, slots[slot].row, params.by_row != 0u);
}

// Place of a row of the tile in quantised rows: the first block of its eight rows, and the row
// among these.
fn input_place(tile: Tile, row: u32) -> vec2<u32> {
    let input = input_row(tile, row);
    return vec2((input >> 3u) * params.length, input & 7u);
}

// The output row of a slot.
fn taken(slot: u32) -> u32 {
    return select(slot, slots[slot].row, params.by_row == 2u);
}
