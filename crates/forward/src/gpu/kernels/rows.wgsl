// Assigns tiles of consecutive rows and panels to workgroups. The tiles of a panel are adjacent, so
// that all but one find it in a cache.

struct Tile {
    panel: u32, // the workgroup's first, in `weights`
    first: u32, // output row
    rows: u32,
    out: u32,   // the same panel, in the matrix
    end: u32,   // of the matrix's panels
}

fn tile_of(group: vec3<u32>, size: u32) -> Tile {
    let first = params.begin + group.x * size;
    let panel = params.skip + group.y * UNIT;
    return Tile(panel, first, min(size, params.rows - first), params.first + panel, params.panels);
}

// The index of a row of the tile in rows of numbers. Rows beyond the tile repeat its last one.
fn input_row(tile: Tile, row: u32) -> u32 {
    return tile.first + min(row, tile.rows - 1u);
}

// Place of a row of the tile in quantised rows: the first block of its eight rows, and the row
// among these. A tile is within eight rows; of those beyond it, any values do.
fn input_place(tile: Tile, row: u32) -> vec2<u32> {
    let first = (tile.first >> 3u) * params.length;
    if ROWS == 8u {
        return vec2(first, row);
    }
    return vec2(first, (tile.first & 7u) + row);
}

// The output row of a row.
fn taken(row: u32) -> u32 {
    return row;
}
