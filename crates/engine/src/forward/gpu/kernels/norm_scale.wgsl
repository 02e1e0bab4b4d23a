// What numbers are multiplied with by a norm: 1 / sqrt(mean of squares + epsilon). Sixteen lanes sum up the squares of
// every sixteenth number, and are added up as the CPU's vectors are.

var<workgroup> lanes: array<f32, 16>;

// Of so many squares, which the lanes have summed up.
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
