// Assigns tiles of consecutive rows and panels to workgroups. The tiles of a panel are adjacent, so
// that all but one find it in a cache.

struct Tile {
    panel: u32, // the workgroup's first, in `weights`
    first: u32, // output row
    rows: u32,
    out: u32,   // the same panel, in the matrix
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let first = params.begin + group.x * size;
    let panel = params.skip + group.y * UNIT;
    return Tile(panel, first, min(size, params.rows - first), params.first + panel);
}

// The input row of an output row.
fn given(row: u32) -> u32 {
    return row;
}

// The output row of a row.
fn taken(row: u32) -> u32 {
    return row;
}
