// Quantisation of blocks of 32 numbers to 8 bits with eight threads each.

var<workgroup> sizes: array<f32, THREADS>;
var<workgroup> sums: array<i32, THREADS>;

// Quantises the four numbers of a thread, an eighth of the block at index `to` (see `tiled.wgsl`).
// All threads of the workgroup call this; only those that are `used` write.
fn round_eighth(four: vec4<f32>, thread: u32, to: u32, used: bool) {
    let all = abs(four);
    sizes[thread] = max(max(all.x, all.y), max(all.z, all.w));
    workgroupBarrier();
    let first = thread & 0xfffffff8u;
    var largest = 0.0;
    for (var i = 0u; i < 8u; i++) {
        largest = max(largest, sizes[first + i]);
    }
    let inverse = inverse_of(largest);
    let rounded = vec4(
        quant_of(four.x, inverse),
        quant_of(four.y, inverse),
        quant_of(four.z, inverse),
        quant_of(four.w, inverse),
    );
    sums[thread] = rounded.x + rounded.y + rounded.z + rounded.w;
    workgroupBarrier();
    if used {
        quants[8u * to + thread % 8u] = packed(rounded);
        if thread == first {
            var sum = 0;
            for (var i = 0u; i < 8u; i++) {
                sum += sums[first + i];
            }
            let scale = scale_of(largest);
            scales[to] = vec2(scale, scale * f32(sum));
        }
    }
}
