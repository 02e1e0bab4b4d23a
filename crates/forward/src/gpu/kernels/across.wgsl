// Sum of sixteen of the `lanes`, reduced as the CPU's vectors are: lane i + 8 is added to lane i,
// then i + 4, i + 2 and i + 1.
fn across(first: u32) -> f32 {
    let eight = four_lanes(first) + four_lanes(first + 8u);
    let other = four_lanes(first + 4u) + four_lanes(first + 12u);
    let four = eight + other;
    let two = four.xy + four.zw;
    return two.x + two.y;
}

fn four_lanes(first: u32) -> vec4<f32> {
    return vec4(lanes[first], lanes[first + 1u], lanes[first + 2u], lanes[first + 3u]);
}
