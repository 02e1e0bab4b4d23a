// Quantises rows to 8 bits, one thread per block.

struct Params {
    blocks: u32, // in all rows
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> plain: array<f32>;        // [blocks, 32]
@group(0) @binding(1) var<storage, read_write> quants: array<u32>;       // [blocks, 8]
@group(0) @binding(2) var<storage, read_write> scales: array<vec2<f32>>; // [blocks]: scale, scale * sum

@compute @workgroup_size(64)
fn quantise(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.blocks {
        round_block(id.x);
    }
}
