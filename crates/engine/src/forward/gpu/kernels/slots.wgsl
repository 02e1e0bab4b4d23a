// Which rows a workgroup of a product multiplies with which panel: those of a tile of slots with their expert's.

struct Slot {
    row: u32,
    expert: u32,
    rows: u32, // of the tile that begins here, 0 where none does
}
@group(0) @binding(4) var<storage, read> slots: array<Slot>;

struct Tile {
    panel: u32, // of `weights`
    first: u32, // slot
    rows: u32,  // 0 where there is nothing to do: no tile begins, or the panel is not among `weights`
    out: u32,   // panel of the expert's matrix
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let slot = slots[group.y];
    let panel = slot.expert * ask.panels + group.x - ask.first;
    return Tile(panel, group.y, select(0u, slot.rows, panel < ask.held), group.x);
}

// The row that goes in for a slot that comes out.
fn given(slot: u32) -> u32 {
    return select(slot, slots[slot].row, ask.by_row != 0u);
}
