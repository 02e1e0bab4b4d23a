// Sorts the selected experts of all rows by expert, so that an expert's weights are read once for
// all its rows. A slot is one row at one expert. The slots of an expert are adjacent, in the order
// of their rows, and are cut into tiles. One workgroup.

struct Params {
    choices: u32, // in all rows
    top_k: u32,    // per row
    tile: u32,    // most slots of a tile
}
var<immediate> params: Params;

struct Slot {
    row: u32,
    expert: u32,
    rows: u32, // rows of the tile that begins here, else 0
}

@group(0) @binding(0) var<storage, read> choices: array<vec2<u32>>;      // [rows, top_k]: expert, ...
@group(0) @binding(1) var<storage, read_write> slots: array<Slot>;
@group(0) @binding(2) var<storage, read_write> slot_of: array<u32>;      // [rows, top_k]

const THREADS = 128u;

@compute @workgroup_size(THREADS)
fn arrange(@builtin(local_invocation_index) thread: u32) {
    for (var choice = thread; choice < params.choices; choice += THREADS) {
        let expert = choices[choice].x;
        var before = 0u;  // slots of lower experts
        var earlier = 0u; // slots of this expert in earlier rows
        var later = 0u;
        for (var other = 0u; other < params.choices; other++) {
            let others = choices[other].x;
            before += u32(others < expert);
            earlier += u32(others == expert && other < choice);
            later += u32(others == expert && other > choice);
        }
        let begins = earlier % params.tile == 0u;
        slot_of[choice] = before + earlier;
        slots[before + earlier] =
            Slot(choice / params.top_k, expert, select(0u, min(params.tile, later + 1u), begins));
    }
}
