// Activations of the feed-forward network, with the CPU engine's bits.

const SILU = 0u;
const GELU = 1u;

fn activation(kind: u32, a: f32) -> f32 {
    var power = 0.0 - a; // exponent of e
    if kind == GELU {
        power = a * fused(a * a, -0.071354814, -1.595769);
    }
    return divide(a, 1.0 + exponential(power));
}
