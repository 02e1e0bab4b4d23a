// Turns the output matrix's product into logits: multiplies by the scale, then applies the soft cap
// cap * tanh(x / cap) = cap - 2 cap / (1 + e^(2x / cap)). One thread per number.

struct Params {
    stride: u32, // of `logits`
    scale: f32,
    cap: f32,    // 0 where there is none
    twice: f32,  // 2 cap
    rate: f32,   // 2 / cap
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> logits: array<f32>; // [rows, stride]

@compute @workgroup_size(64)
fn score(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.stride {
        return;
    }
    let at = id.y * params.stride + id.x;
    var number = logits[at] * params.scale;
    if params.cap != 0.0 {
        let below = 1.0 + exponential(number * params.rate);
        number = params.cap - divide(params.twice, below);
    }
    logits[at] = number;
}
