// Norm scale of `length` numbers of `state` from `start` on.
fn state_scale(thread: u32, start: u32, length: u32, epsilon: f32) -> f32 {
    var squares = 0.0;
    if thread < 16u {
        for (var at = thread; at < length; at += 16u) {
            squares = fused(state[start + at], state[start + at], squares);
        }
    }
    return norm_scale(thread, squares, length, epsilon);
}
