// Quantises rows to 8 bits, one thread per block.

struct Params {
    rows: u32,
    blocks: u32, // of a row
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> plain: array<f32>;        // [rows, blocks, 32]
@group(0) @binding(1) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(2) var<storage, read_write> scales: array<vec2<f32>>; // in tile order: scale, scale * sum

@compute @workgroup_size(64)
fn quantise(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.rows * params.blocks {
        round_block(id.x / params.blocks, id.x % params.blocks, params.blocks);
    }
}
