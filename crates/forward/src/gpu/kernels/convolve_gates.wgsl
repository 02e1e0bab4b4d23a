// Gated short convolution (LFM2): c * conv(b * v) of rows [b, c, v], as f32 and quantised to 8
// bits. One workgroup per row and 256 channels.

struct Params {
    sizes: Sizes,
    weights: u32, // of the convolution, their offset in `vectors`
    bias: u32,    // NONE if there is none
    width: u32,   // of `plain`
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> projected: array<f32>;          // [rows, stride]
@group(0) @binding(1) var<storage, read> records: array<f32>;
@group(0) @binding(2) var<storage, read> states: array<f32>;
@group(0) @binding(3) var<storage, read> words: array<u32>;              // [rows, taps], ...
@group(0) @binding(4) var<storage, read> vectors: array<f32>;
@group(0) @binding(5) var<storage, read_write> plain: array<f32>;        // [rows, width]
@group(0) @binding(6) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(7) var<storage, read_write> scales: array<vec2<f32>>; // in tile order

const THREADS = 64u;

@compute @workgroup_size(THREADS)
fn convolve_gates(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    let channels = params.sizes.channels;
    let first = 4u * (group.x * THREADS + thread);
    let used = first < channels;
    var four = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        let channel = first + i;
        if channel < channels {
            four[i] = convolved_at(row, channel) * projected[row * params.sizes.stride + channels + channel];
            plain[row * params.width + channel] = four[i];
        }
    }
    if channels % 32u == 0u {
        round_eighth(four, thread, tiled(row, first / 32u, channels / 32u), used);
    }
}
