// What a device's arithmetic comes to: of three numbers each a multiply-add, a quotient, a root, a power of e, and half
// precision there and back.

struct Ask {
    count: u32,
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> x: array<f32>;          // [count, 3]
@group(0) @binding(1) var<storage, read_write> out: array<f32>;  // [count, 5]

@compute @workgroup_size(64)
fn probe(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= ask.count {
        return;
    }
    let a = x[3u * id.x];
    let b = x[3u * id.x + 1u];
    let c = x[3u * id.x + 2u];
    out[5u * id.x] = fused(a, b, c);
    out[5u * id.x + 1u] = divide(a, b);
    out[5u * id.x + 2u] = root(abs(a));
    out[5u * id.x + 3u] = exponential(a);
    out[5u * id.x + 4u] = half(to_half(a));
}
