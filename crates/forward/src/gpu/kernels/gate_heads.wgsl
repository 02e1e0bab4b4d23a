// Norm and gate of what the state matrices of a recurrent layer gave, as f32 and quantised to 8
// bits: silu(gate) * norm(given), or norm(silu(gate) * given). One workgroup per row and numbers
// that are normed together.

struct Params {
    stride: u32,      // of `projected`
    gates: u32,       // offset of the gates in a row
    size: u32,        // numbers that are normed together, a multiple of 32
    width: u32,       // of `given` and `state`
    weight: u32,      // of the norm, its offset in `vectors`
    epsilon: f32,
    gate_first: u32,  // whether the gate is before the norm, whose weights then differ by group
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> projected: array<f32>;          // [rows, stride]
@group(0) @binding(1) var<storage, read> given: array<f32>;              // [rows, width]
@group(0) @binding(2) var<storage, read> vectors: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;        // [rows, width]: before the norm, then the output
@group(0) @binding(4) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(5) var<storage, read_write> scales: array<vec2<f32>>; // in tile order

const THREADS = 128u;

@compute @workgroup_size(THREADS)
fn gate_heads(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let size = params.size;
    let first = group.x * size;
    let own = group.y * params.width + first;
    let gate = group.y * params.stride + params.gates + first;
    for (var at = thread; at < size; at += THREADS) {
        var number = given[own + at];
        if params.gate_first != 0u {
            number = activation(SILU, projected[gate + at]) * number;
        }
        state[own + at] = number;
    }
    storageBarrier();
    workgroupBarrier();
    let scale = state_scale(thread, own, size, params.epsilon);
    let weight = params.weight + select(0u, first, params.gate_first != 0u);
    for (var begin = 0u; begin < size; begin += 4u * THREADS) {
        let at = begin + 4u * thread;
        let used = at < size;
        var four = vec4<f32>();
        if used {
            for (var i = 0u; i < 4u; i++) {
                four[i] = state[own + at + i] * scale * vectors[weight + at + i];
                if params.gate_first == 0u {
                    four[i] = activation(SILU, projected[gate + at + i]) * four[i];
                }
                state[own + at + i] = four[i];
            }
        }
        round_eighth(four, thread, tiled(group.y, (first + at) / 32u, params.width / 32u), used);
    }
}
