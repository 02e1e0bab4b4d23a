// activation(gate * rows) * (up * rows) for 32 outputs, as f32 and quantised to 8 bits. Two panels
// of the gate and two of up are interleaved. One workgroup per tile and four such panels. With 64
// lanes all threads take the four at once; with 32, half of them take the gate and half take up;
// with 16, each half takes its first panel, then its second.

@group(0) @binding(1) var<storage, read_write> plain: array<f32>;              // [rows, stride]
@group(0) @binding(4) var<storage, read_write> gated_quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(5) var<storage, read_write> gated_scales: array<vec2<f32>>; // in tile order: scale, scale * sum

const UNIT = 4u;                        // panels of a workgroup
const AT_ONCE = 64u / max(LANES, 32u);  // groups of threads
const OUTPUTS = 64u / AT_ONCE;          // of a group, gate and up
const ALL = AT_ONCE * THREADS;

var<workgroup> sums: array<f32, 2u * ROWS * 32u>; // [gate and up, rows, outputs]
var<workgroup> sizes: array<f32, ALL>;            // [rows, outputs]
var<workgroup> bytes: array<i32, ALL>;            // [rows, outputs]

@compute @workgroup_size(ALL)
fn gated(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = tile_of(group, ROWS);
    if tile.rows == 0u {
        return;
    }
    let which = thread / THREADS;
    let own = thread % THREADS;
    for (var part = 0u; part < OUTPUTS / LANES; part++) {
        let skipped = (which * OUTPUTS + part * LANES) / 16u;
        let panels = Tile(tile.panel + skipped, tile.first, tile.rows, tile.out + skipped, tile.end);
        let found = sum_panels(panels, which, own);
        let output = 16u * skipped + own % LANES;
        let to = output / 32u * ROWS * 32u + output % 32u;
        let first = own / LANES;
        if first < ROWS {
            sums[to + first * 32u] = found.x;
        }
        if SLOTS < ROWS {
            sums[to + (first + SLOTS) * 32u] = found.y;
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
    let block = tile.out / 4u;
    plain[(tile.first + row) * params.stride + 32u * block + output] = number;
    let to = tiled(tile.first + row, block, params.stride / 32u);
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
