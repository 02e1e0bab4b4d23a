// activation(gate) * up, as f32 and quantised to 8 bits, for gates that `gated.wgsl` cannot take.
// One thread per block of 32.

struct Params {
    blocks: u32, // of a row; the last may be partial
    rows: u32,
    length: u32,
    stride: u32, // of `gate`
    width: u32,  // of `plain`
    kind: u32,   // of activation
    ups: u32,    // stride of `up`
    first: u32,  // column of `up`
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> gate: array<f32>;               // [rows, stride]
@group(0) @binding(1) var<storage, read> up: array<f32>;                 // [rows, ups]
@group(0) @binding(2) var<storage, read_write> plain: array<f32>;        // [rows, width]
@group(0) @binding(3) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(4) var<storage, read_write> scales: array<vec2<f32>>; // in tile order

@compute @workgroup_size(64)
fn activate(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x / params.blocks;
    let block = id.x % params.blocks;
    if row >= params.rows {
        return;
    }
    let end = min(32u * block + 32u, params.length);
    for (var at = 32u * block; at < end; at++) {
        let number = up[row * params.ups + params.first + at];
        plain[row * params.width + at] = activated(params.kind, gate[row * params.stride + at], number);
    }
    if params.length % 32u == 0u {
        round_block(row, block, params.blocks);
    }
}
