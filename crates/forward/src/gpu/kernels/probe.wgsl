// Computes the device's multiply-add, to compare its rounding.

struct Params {
    count: u32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> x: array<f32>;          // [count, 3]
@group(0) @binding(1) var<storage, read_write> out: array<f32>;  // [count]

@compute @workgroup_size(64)
fn probe(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.count {
        out[id.x] = fused(x[3u * id.x], x[3u * id.x + 1u], x[3u * id.x + 2u]);
    }
}
