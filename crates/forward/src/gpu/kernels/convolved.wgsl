// The convolution of a channel of a row: the bias, then the products, the oldest row first.
fn convolved_at(row: u32, channel: u32) -> f32 {
    var sum = 0.0;
    if params.bias != NONE {
        sum = vectors[params.bias + channel];
    }
    for (var tap = 0u; tap < params.sizes.taps; tap++) {
        let word = words[row * params.sizes.taps + tap];
        if word >> 30u != ZERO {
            let weight = vectors[params.weights + tap * whole(params.sizes.channels) + channel];
            sum = fused(weight, input_of(word, channel), sum);
        }
    }
    return sum;
}
