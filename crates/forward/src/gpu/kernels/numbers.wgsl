// A panel of weights that are not quantised (f32, f16, bf16).

const BITS = {{BITS}}u;
const BRAIN = {{BRAIN}};

fn number(index: u32) -> f32 {
    if BITS == 32u {
        return bitcast<f32>(weights[index]);
    }
    let bits = (weights[index >> 1u] >> ((index & 1u) * 16u)) & 0xffffu;
    if BRAIN {
        return bitcast<f32>(bits << 16u);
    }
    return half(bits);
}
