// Rows of the embedding, which are the states that a pass begins with. A thread for each row and what of it is unpacked at
// once, as `quants_row.wgsl` and `numbers_row.wgsl` say.

struct Ask {
    length: u32, // of a row, counted in what is unpacked at once
    stride: u32, // of `out`
    first: u32,  // panel of the matrix that is the first of `weights`
    held: u32,   // panels in `weights`
    scale: f32,
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;     // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<f32>;  // [rows, stride]

@compute @workgroup_size(64)
fn embed(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y;
    let panel = tokens[row] / 16u - ask.first;
    if id.x < ask.length && panel < ask.held {
        unpack(panel, id.x, tokens[row] % 16u, row * ask.stride);
    }
}
