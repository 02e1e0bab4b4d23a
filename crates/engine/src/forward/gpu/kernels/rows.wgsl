// Which rows a workgroup multiplies with which panels: a tile of those in turn. The tiles of a panel are next to each
// other, so that all but one find it in a cache.

struct Tile {
    panel: u32, // of `weights`, the first of the workgroup's
    first: u32, // row that comes out
    rows: u32,
    out: u32,   // the same panel in the matrix
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let first = ask.begin + group.x * size;
    let panel = ask.skip + group.y * UNIT;
    return Tile(panel, first, min(size, ask.rows - first), ask.first + panel);
}

// The row that goes in for one that comes out.
fn given(row: u32) -> u32 {
    return row;
}
