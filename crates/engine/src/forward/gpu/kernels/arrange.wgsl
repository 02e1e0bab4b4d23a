// Puts the choices of all rows into the order of their experts, so that an expert's weights are read once for its rows.
// A slot is a row on its way through an expert; the slots of an expert follow each other, in the order of their rows,
// and are cut into tiles. One workgroup.

struct Ask {
    choices: u32, // of all rows
    used: u32,    // of a row
    tile: u32,    // slots of a tile, at most
}
var<immediate> ask: Ask;

struct Slot {
    row: u32,
    expert: u32,
    rows: u32, // of the tile that begins here, 0 where none does
}

@group(0) @binding(0) var<storage, read> choices: array<vec2<u32>>;      // [rows, used]: expert, ...
@group(0) @binding(1) var<storage, read_write> slots: array<Slot>;
@group(0) @binding(2) var<storage, read_write> slot_of: array<u32>;      // [rows, used]

const THREADS = 128u;

@compute @workgroup_size(THREADS)
fn arrange(@builtin(local_invocation_index) thread: u32) {
    for (var choice = thread; choice < ask.choices; choice += THREADS) {
        let expert = choices[choice].x;
        var before = 0u;  // slots of experts before this one
        var earlier = 0u; // slots of this one that are of rows before
        var later = 0u;
        for (var other = 0u; other < ask.choices; other++) {
            let others = choices[other].x;
            before += u32(others < expert);
            earlier += u32(others == expert && other < choice);
            later += u32(others == expert && other > choice);
        }
        let begins = earlier % ask.tile == 0u;
        slot_of[choice] = before + earlier;
        slots[before + earlier] =
            Slot(choice / ask.used, expert, select(0u, min(ask.tile, later + 1u), begins));
    }
}
