// Biases of the experts' gate and up matrices.
@group(0) @binding(6) var<storage, read> vectors: array<f32>; // ..., [experts, 2, stride], ...

// Adds the biases of a slot's expert to an output of gate and of up.
fn with_biases(sums: vec2<f32>, slot: u32, output: u32) -> vec2<f32> {
    if params.biases == 0xffffffffu {
        return sums;
    }
    let at = params.biases + 2u * slots[slot].expert * params.stride + output;
    return sums + vec2(vectors[at], vectors[at + params.stride]);
}
