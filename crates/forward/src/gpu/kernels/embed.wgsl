// Looks up embedding rows, the initial states of a pass. One thread per row and unit to unpack,
// which `quants_row.wgsl` or `numbers_row.wgsl` defines.

struct Params {
    length: u32, // of a row, in units to unpack
    stride: u32, // of `out`
    first: u32,  // panel of the matrix at which `weights` begins
    held: u32,   // panels in `weights`
    scale: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read> tokens: array<u32>;     // [rows]
@group(0) @binding(2) var<storage, read_write> out: array<f32>;  // [rows, stride]

@compute @workgroup_size(64)
fn embed(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y;
    let panel = tokens[row] / 16u - params.first;
    if id.x < params.length && panel < params.held {
        unpack(panel, id.x, tokens[row] % 16u, row * params.stride);
    }
}
