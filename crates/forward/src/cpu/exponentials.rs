//! e^x in 64 bits over a row of logits, for sampling: the same bits for all instruction sets,
//! because every operation is rounded on its own. Loops are vectorised by the compiler.

/// Lowest exponent of a weight that is not 0.
const LOWEST: f64 = -708.0;

/// Computes `out = e^(scale (x - largest))`, accurate to two units in the last place; 0 for NaN and
/// for weights below e^-708.
#[inline(always)]
pub fn exponentials(x: &[f32], largest: f32, scale: f64, out: &mut [f64]) {
    for (out, &x) in out.iter_mut().zip(x) {
        *out = exp((f64::from(x) - f64::from(largest)) * scale);
    }
}

/// Returns e^x for x from [`LOWEST`] to 0, and 0 for NaN and below. Computed as 2^n e^r, with n the
/// integer nearest to x / ln 2 and the Taylor series of e^r.
#[inline(always)]
fn exp(x: f64) -> f64 {
    // ln 2 as a sum whose first part has few bits, so that its product with n is exact.
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Adding it rounds to an integer, whose lowest bits are then those of the sum.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const FACTORIALS: [f64; 12] = [
        6_227_020_800.0,
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
    ];
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut series = 1.0 / FACTORIALS[0];
    let mut term = 1;
    while term < FACTORIALS.len() {
        series = series * r + 1.0 / FACTORIALS[term];
        term += 1;
    }
    series = (series * r + 1.0) * r + 1.0;
    let power = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    if x >= LOWEST { series * power } else { 0.0 }
}
