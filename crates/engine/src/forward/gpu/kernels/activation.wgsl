// The activation of a feed-forward network, as the CPU engine's.

const SILU = 0u;
const GELU = 1u;

fn activation(kind: u32, a: f32) -> f32 {
    var power = 0.0 - a; // of e
    if kind == GELU {
        power = a * fused(a * a, -0.071354814, -1.595769);
    }
    return divide(a, 1.0 + exponential(power));
}
