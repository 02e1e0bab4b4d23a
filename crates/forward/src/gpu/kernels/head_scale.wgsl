// Norm scale of `size` of the `numbers` of a head from `first` on, at most 1,024.
fn head_scale(thread: u32, first: u32, size: u32, epsilon: f32) -> f32 {
    var squares = 0.0;
    for (var step = 0u; step < 16u; step++) {
        let at = lane_of(thread) + 16u * step;
        if at < size {
            squares = fused(numbers[first + at], numbers[first + at], squares);
        }
    }
    return norm_scale(thread, add_runs(thread, squares, 0.0), size, epsilon);
}
