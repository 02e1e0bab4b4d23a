// Index of a block of a row in rows quantised to 8 bits: the rows of a tile of eight are together
// for each block, [rows / 8, blocks, 8].
fn tiled(row: u32, block: u32, blocks: u32) -> u32 {
    return ((row >> 3u) * blocks + block) * 8u + (row & 7u);
}
