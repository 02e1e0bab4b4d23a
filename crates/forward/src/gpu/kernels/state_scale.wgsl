// Norm scale of `length` numbers of `state` from `start` on.
fn state_scale(thread: u32, start: u32, length: u32, epsilon: f32) -> f32 {
    var total = 0.0;
    for (var begin = 0u; begin < length; begin += AT_ONCE) {
        var squares = 0.0;
        for (var step = 0u; step < 16u; step++) {
            let at = begin + lane_of(thread) + 16u * step;
            if at < length {
                squares = fused(state[start + at], state[start + at], squares);
            }
        }
        total = add_runs(thread, squares, total);
    }
    return norm_scale(thread, total, length, epsilon);
}
