// activation(gate * rows) * (up * rows) for 32 outputs, as f32 and quantised to 8 bits. Two panels
// of the gate and two of up are interleaved. One workgroup per tile and four such panels: half of
// its threads compute the gate, half compute up; each half takes its first panel, then its second.

@group(0) @binding(1) var<storage, read_write> plain: array<f32>;              // [rows, stride]
@group(0) @binding(4) var<storage, read_write> gated_quants: array<u32>;       // [rows, blocks, 8]
@group(0) @binding(5) var<storage, read_write> gated_scales: array<vec2<f32>>; // [rows, blocks]: scale, scale * sum

const AT_ONCE = 2u; // panels
const UNIT = 4u;    // panels of a workgroup

var<workgroup> sums: array<f32, 2u * ROWS * 32u>; // [gate and up, rows, outputs]
var<workgroup> sizes: array<f32, 2u * THREADS>;   // [rows, outputs]
var<workgroup> bytes: array<i32, 2u * THREADS>;   // [rows, outputs]

@compute @workgroup_size(2u * THREADS)
fn gated(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = tile_of(group, ROWS);
    if tile.rows == 0u {
        return;
    }
    let which = thread / THREADS;
    let own = thread % THREADS;
    for (var half = 0u; half < 2u; half++) {
        let sum = sum_panel(tile, tile.panel + 2u * which + half, which, own);
        if (own >> 4u) < ROWS {
            sums[(which * ROWS + (own >> 4u)) * 32u + half * 16u + (own & 15u)] = sum;
        }
    }
    workgroupBarrier();
    // From here on one thread per row and output.
    let row = thread >> 5u;
    let output = thread & 31u;
    var number = 0.0;
    if row < tile.rows {
        let both = vec2(sums[thread], sums[ROWS * 32u + thread]); // of gate and up
        let biased = with_biases(both, tile.first + row, 8u * tile.out + output);
        number = activated(params.mode, biased.x, biased.y);
    }
    sizes[thread] = abs(number);
    workgroupBarrier();
    for (var half = 16u; half > 0u; half = half >> 1u) {
        if output < half {
            sizes[thread] = max(sizes[thread], sizes[thread + half]);
        }
        workgroupBarrier();
    }
    let largest = sizes[row * 32u];
    bytes[thread] = quant_of(number, inverse_of(largest));
    workgroupBarrier();
    if row >= tile.rows {
        return;
    }
    // A block spans four panels of the interleaved matrix.
    let to = (tile.first + row) * params.stride / 32u + tile.out / 4u;
    plain[32u * to + output] = number;
    let at = row * 32u + 4u * (output & 7u);
    if output < 8u {
        gated_quants[8u * to + output] = packed(vec4(bytes[at], bytes[at + 1u], bytes[at + 2u], bytes[at + 3u]));
    }
    if output == 8u {
        var sum = 0;
        for (var other = row * 32u; other < row * 32u + 32u; other++) {
            sum += bytes[other];
        }
        let scale = scale_of(largest);
        gated_scales[to] = vec2(scale, scale * f32(sum));
    }
}
