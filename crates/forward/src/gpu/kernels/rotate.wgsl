// RoPE on the `numbers` of a head, by the angles of a row.

// Bit of `ways`: pairs are adjacent, else half the rotated width apart.
const INTERLEAVED = 1u;

fn rotate(row: u32, thread: u32) {
    for (var pair = thread; pair < params.rotated; pair += THREADS) {
        let angle = angles[row * params.rotated + pair];
        var first = pair;
        var second = pair + params.rotated;
        if (params.ways & INTERLEAVED) != 0u {
            first = 2u * pair;
            second = first + 1u;
        }
        let a = numbers[first];
        let b = numbers[second];
        numbers[first] = fused(a, angle.x, -(b * angle.y));
        numbers[second] = fused(a, angle.y, b * angle.x);
    }
    workgroupBarrier();
}
