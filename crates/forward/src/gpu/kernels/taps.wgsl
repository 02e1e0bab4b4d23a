// Inputs of a recurrent layer's convolution, which are named by words: a row of the pass, a record,
// or a row of a state's tail.

fn input_of_row(row: u32, channel: u32) -> f32 {
    let at = row * params.sizes.stride + channel;
    if params.sizes.kind == SHORT {
        return projected[at] * projected[at + 2u * params.sizes.channels];
    }
    return projected[at];
}

fn input_of(word: u32, channel: u32) -> f32 {
    let number = word & NUMBER;
    switch word >> 30u {
        case ROW: {
            return input_of_row(number, channel);
        }
        case RECORD: {
            return records[number * record_size() + channel];
        }
        case STATE: {
            let rows = params.sizes.taps - 1u;
            let at = number / rows * state_size() + number % rows * params.sizes.channels;
            return states[at + channel];
        }
        default: {
            return 0.0;
        }
    }
}
