// Assigns tiles of slots and panels of their expert to workgroups.

struct Slot {
    row: u32,
    expert: u32,
    rows: u32, // rows of the tile that begins here, else 0
}
@group(0) @binding({{SLOTS}}) var<storage, read> slots: array<Slot>;

struct Tile {
    panel: u32, // the workgroup's first, in `weights`
    first: u32, // slot
    rows: u32,  // 0 if there is nothing to do: no tile begins, or `weights` lacks the panel
    out: u32,   // the same panel in the expert's matrix
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let slot = slots[group.x];
    let panel = slot.expert * params.panels + group.y * UNIT - params.first;
    return Tile(panel, group.x, select(0u, slot.rows, panel < params.held), group.y * UNIT);
}

// The input row of a slot.
fn given(slot: u32) -> u32 {
    return select(slot, slots[slot].row, params.by_row != 0u);
}

// The output row of a slot.
fn taken(slot: u32) -> u32 {
    return select(slot, slots[slot].row, params.by_row == 2u);
}
