// Quants that are indices into a codebook. The host fills in its values: signed bytes, four per
// word.

const VALUES = vec4<u32>({{VALUES}});

// Looks up the value of each byte, an index below 16.
fn chosen(indices: vec4<u32>) -> vec4<u32> {
    var values = vec4<u32>();
    for (var byte = 0u; byte < 32u; byte += 8u) {
        let index = indices >> vec4(byte);
        let lower = select(vec4(VALUES.x), vec4(VALUES.y), (index & vec4(4u)) != vec4<u32>());
        let upper = select(vec4(VALUES.z), vec4(VALUES.w), (index & vec4(4u)) != vec4<u32>());
        let four = select(lower, upper, (index & vec4(8u)) != vec4<u32>());
        values |= ((four >> (8u * (index & vec4(3u)))) & vec4(255u)) << vec4(byte);
    }
    return values;
}
