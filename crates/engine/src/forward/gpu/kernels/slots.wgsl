// Which rows a workgroup multiplies with which panels: those of a tile of slots with their expert's.

struct Slot {
    row: u32,
    expert: u32,
    rows: u32, // of the tile that begins here, 0 where none does
}
@group(0) @binding({{SLOTS}}) var<storage, read> slots: array<Slot>;

struct Tile {
    panel: u32, // of `weights`, the first of the workgroup's
    first: u32, // slot
    rows: u32,  // 0 where there is nothing to do: no tile begins, or the panel is not among `weights`
    out: u32,   // the same panel in the expert's matrix
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let slot = slots[group.x];
    let panel = slot.expert * ask.panels + group.y * UNIT - ask.first;
    return Tile(panel, group.x, select(0u, slot.rows, panel < ask.held), group.y * UNIT);
}

// The row that goes in for a slot that comes out.
fn given(slot: u32) -> u32 {
    return select(slot, slots[slot].row, ask.by_row != 0u);
}
