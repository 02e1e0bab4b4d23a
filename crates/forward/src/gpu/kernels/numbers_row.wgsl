// Unpacks one number of a row.
fn unpack(panel: u32, index: u32, lane: u32, to: u32) {
    out[to + index] = number((panel * params.length + index) * 16u + lane) * params.scale;
}
