// Activations of the feed-forward network, with the CPU engine's bits.

const SILU = 0u;
const GELU = 1u;

// gpt-oss's: the gate is at most 7 and has a steeper sigmoid, up is within [-7, 7] and increased.
const CLAMPED = 2u;

fn activation(kind: u32, a: f32) -> f32 {
    var power = 0.0 - a; // exponent of e
    if kind == GELU {
        power = a * fused(a * a, -0.071354814, -1.595769);
    }
    return divide(a, 1.0 + exponential(power));
}

// activation(gate) * up
fn activated(kind: u32, gate: f32, up: f32) -> f32 {
    if kind != CLAMPED {
        return activation(kind, gate) * up;
    }
    let a = min(gate, 7.0);
    let factor = min(max(up, -7.0), 7.0) + 1.0;
    return divide(a, 1.0 + exponential(a * -1.702)) * factor;
}
