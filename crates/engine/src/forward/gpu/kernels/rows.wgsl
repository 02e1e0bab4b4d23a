// Which rows a workgroup of a product multiplies with which panel: a tile of those in turn.

struct Tile {
    panel: u32, // of `weights`
    first: u32, // row that comes out
    rows: u32,
    out: u32,   // panel of the matrix
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let first = ask.begin + group.y * size;
    return Tile(group.x, first, min(size, ask.rows - first), ask.first + group.x);
}

// The row that goes in for one that comes out.
fn given(row: u32) -> u32 {
    return row;
}
