// The scale of a norm: 1 / sqrt(mean of squares + epsilon). Each of sixteen lanes sums the squares
// of every sixteenth number; the lanes are then reduced as the CPU's vectors are.

var<workgroup> lanes: array<f32, 16>;

// Computes the scale from the lanes' sums of `length` squares.
fn norm_scale(lane: u32, squares: f32, length: u32, epsilon: f32) -> f32 {
    if lane < 16u {
        lanes[lane] = squares;
    }
    workgroupBarrier();
    for (var half = 8u; half > 0u; half = half >> 1u) {
        if lane < half {
            lanes[lane] += lanes[lane + half];
        }
        workgroupBarrier();
    }
    let sum = lanes[0];
    workgroupBarrier();
    return divide(1.0, root(divide(sum, f32(length)) + epsilon));
}
