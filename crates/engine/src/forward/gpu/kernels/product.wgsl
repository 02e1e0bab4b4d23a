// The product of a panel of sixteen output rows with up to ROWS rows of activations in eight bits. What is in double
// braces is filled in by the host; which rows and which panel is in `rows.wgsl` or `slots.wgsl`. A workgroup is SLOTS
// blocks times 16 lanes (output rows).
//
// The panels are those of the CPU engine, byte for byte; see its `panels.rs`. Products within a block are integers and
// exact in any order. The one rounded sum runs over the blocks in their order, which are the CPU engine's operations
// in the CPU engine's order: what a row gets depends on no other row, and not on where in the tile it is.

struct Ask {
    blocks: u32, // of 32 inputs
    begin: u32,   // row that the first tile begins with
    rows: u32,   // of all tiles, and those before
    stride: u32, // of `out`
    first: u32,  // panel of the matrix that is the first of `weights`
    add: u32,    // to what is in `out`
    width: u32,  // of rows that are numbers
    panels: u32, // of an expert's matrix, as are the others
    held: u32,   // panels in `weights`
    by_row: u32, // a slot's input is its row's, else its own
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read> quants: array<vec4<u32>>;  // [rows, blocks, 2]
@group(0) @binding(2) var<storage, read> scales: array<vec2<f32>>;  // [rows, blocks]: scale, scale * sum
@group(0) @binding(3) var<storage, read_write> out: array<f32>;     // [rows, stride]

const ROWS = {{ROWS}}u;
const SLOTS = 8u;
const THREADS = SLOTS * 16u;

// Of the format: bits of a quant, what is taken off it, how it is scaled, and how many groups of 32 inputs a block of
// the file has; sizes in words.
const BITS = {{BITS}}u;
const CENTRE = {{CENTRE}}u;
const SCALED = {{SCALED}}u;
const GROUPS = {{GROUPS}}u;
const HEAD = {{HEAD}}u;
const GROUP = {{GROUP}}u;
const CHOSEN = {{CHOSEN}};
const FACTOR = {{FACTOR}};

// Values of SCALED.
const BY_HALF = 0u;
const WITH_MINIMUM = 1u;
const WITH_PARTS = 2u;
const IN_HALVES = 3u;
const IN_GROUPS = 4u;
const BY_POWER = 5u;
const WITH_NIBBLES = 6u;

var<workgroup> products: array<f32, SLOTS * ROWS * 16u>;
var<workgroup> factors: array<vec2<f32>, SLOTS * 16u>;
// What minimums of halves take off.
var<workgroup> offsets: array<f32, select(1u, SLOTS * ROWS * 16u, SCALED == WITH_NIBBLES)>;

fn half_of(word: u32, lane: u32) -> f32 {
    return half((weights[word + (lane >> 1u)] >> ((lane & 1u) * 16u)) & 0xffffu);
}

// Of each row a byte, after `index` times as many.
fn byte_of(word: u32, index: u32, lane: u32) -> u32 {
    return (weights[word + index * 4u + (lane >> 2u)] >> ((lane & 3u) * 8u)) & 255u;
}

// The block of the file that `block` is a group of.
fn head_of(panel: u32, block: u32) -> u32 {
    return panel + block / GROUPS * (HEAD + GROUPS * GROUP);
}

// Four quants a word, with their signs.
fn quants_of(panel: u32, block: u32, lane: u32) -> array<u32, 8> {
    let at = head_of(panel, block) + HEAD + block % GROUPS * GROUP + lane;
    var w: array<u32, 8>;
    for (var j = 0u; j < 8u; j++) {
        var word = 0u;
        if BITS == 8u {
            word = weights[at + 16u * j];
        } else if BITS < 4u {
            word = (weights[at + 16u * (j & 1u)] >> (j & 6u)) & 0x03030303u;
        } else {
            word = (weights[at + 16u * (j & 3u)] >> (4u * (j >> 2u))) & 0x0f0f0f0fu;
        }
        if BITS == 3u {
            word |= ((weights[at + 32u] >> j) & 0x01010101u) << 2u;
        }
        if BITS == 5u {
            word |= ((weights[at + 64u] >> j) & 0x01010101u) << 4u;
        }
        if BITS == 6u {
            word |= ((weights[at + 64u + 16u * (j & 1u)] >> (j & 6u)) & 0x03030303u) << 4u;
        }
        w[j] = word;
    }
    for (var j = 0u; CHOSEN && j < 8u; j += 4u) {
        let values = chosen(vec4(w[j], w[j + 1u], w[j + 2u], w[j + 3u]));
        w[j] = values.x;
        w[j + 1u] = values.y;
        w[j + 2u] = values.z;
        w[j + 3u] = values.w;
    }
    for (var j = 0u; !CHOSEN && j < 8u; j++) {
        w[j] = (w[j] + (128u - CENTRE) * 0x01010101u) ^ 0x80808080u;
    }
    return w;
}

// What the products are multiplied with, and what the row's sum is.
fn factor_of(panel: u32, block: u32, lane: u32) -> vec2<f32> {
    let head = head_of(panel, block);
    if SCALED == BY_POWER {
        // The exponent plus one.
        return vec2(0.25 * bitcast<f32>(byte_of(head, 0u, lane) << 23u), 0.0);
    }
    if SCALED == IN_GROUPS {
        let part = i32(byte_of(head + 8u, block % GROUPS, lane) << 24u) >> 24u;
        return vec2(half_of(head, lane) * FACTOR * f32(part), 0.0);
    }
    if SCALED == WITH_MINIMUM || SCALED == WITH_NIBBLES {
        return vec2(half_of(head, lane), half_of(head + 8u, lane));
    }
    if SCALED != WITH_PARTS {
        return vec2(half_of(head, lane) * FACTOR, 0.0);
    }
    let group = block % GROUPS;
    var part = vec2<u32>();
    if group < 4u {
        part = vec2(byte_of(head + 16u, group, lane) & 63u, byte_of(head + 16u, group + 4u, lane) & 63u);
    } else {
        let low = byte_of(head + 16u, group + 4u, lane);
        let high = vec2(byte_of(head + 16u, group - 4u, lane), byte_of(head + 16u, group, lane));
        part = vec2(low & 15u, low >> 4u) | ((high >> vec2(2u)) & vec2(48u));
    }
    return vec2(half_of(head, lane), -half_of(head + 8u, lane)) * vec2<f32>(part);
}

// What the products of the first and of the second 16 inputs are multiplied with before they are added.
fn parts_of(panel: u32, block: u32, lane: u32) -> vec2<i32> {
    if SCALED != IN_HALVES && SCALED != WITH_NIBBLES {
        return vec2(1, 1);
    }
    let head = head_of(panel, block) + select(8u, 16u, SCALED == WITH_NIBBLES);
    let index = 2u * (block % GROUPS);
    let parts = vec2(byte_of(head, index, lane), byte_of(head, index + 1u, lane));
    return vec2<i32>(parts << vec2(24u)) >> vec2(24u);
}

fn dot16(a: u32, b: u32, c: u32, d: u32, x: vec4<u32>) -> i32 {
    return dot4I8Packed(a, x.x) + dot4I8Packed(b, x.y) + dot4I8Packed(c, x.z) + dot4I8Packed(d, x.w);
}

fn sum16(x: vec4<u32>) -> i32 {
    let ones = 0x01010101u;
    return dot16(ones, ones, ones, ones, x);
}

@compute @workgroup_size(THREADS)
fn product(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread & 15u;
    let slot = thread >> 4u;
    let tile = tile_of(group, ROWS);
    if tile.rows == 0u {
        return;
    }
    let panel = tile.panel * (ask.blocks / GROUPS * (HEAD + GROUPS * GROUP));
    var sum = 0.0;
    for (var first = 0u; first < ask.blocks; first += SLOTS) {
        let block = first + slot;
        if block < ask.blocks {
            let w = quants_of(panel, block, lane);
            let parts = parts_of(panel, block, lane);
            factors[slot * 16u + lane] = factor_of(panel, block, lane);
            for (var row = 0u; row < ROWS; row++) {
                if row >= tile.rows {
                    break;
                }
                let at = given(tile.first + row) * ask.blocks + block;
                let lower = dot16(w[0], w[1], w[2], w[3], quants[2u * at]);
                let upper = dot16(w[4], w[5], w[6], w[7], quants[2u * at + 1u]);
                let to = (slot * ROWS + row) * 16u + lane;
                if SCALED == WITH_NIBBLES {
                    let dot = (parts.x & 15) * lower + (parts.y & 15) * upper;
                    let sums = vec2(sum16(quants[2u * at]), sum16(quants[2u * at + 1u]));
                    let minimums = (parts >> vec2(4u)) & vec2(15);
                    products[to] = f32(dot) * scales[at].x;
                    offsets[to] = f32(-(minimums.x * sums.x + minimums.y * sums.y)) * scales[at].x;
                } else {
                    products[to] = f32(parts.x * lower + parts.y * upper) * scales[at].x;
                }
            }
        }
        workgroupBarrier();
        // A thread for each row of the tile and lane goes on with its sum.
        if slot < tile.rows {
            let x = given(tile.first + slot) * ask.blocks + first;
            let count = min(SLOTS, ask.blocks - first);
            for (var at = 0u; at < count; at++) {
                let by = factors[at * 16u + lane];
                sum = fused(products[(at * ROWS + slot) * 16u + lane], by.x, sum);
                if SCALED == WITH_NIBBLES {
                    sum = fused(offsets[(at * ROWS + slot) * 16u + lane], by.y, sum);
                }
                if SCALED == WITH_MINIMUM || SCALED == WITH_PARTS {
                    sum = fused(by.y, scales[x + at].y, sum);
                }
            }
        }
        workgroupBarrier();
    }
    if slot < tile.rows {
        let at = (tile.first + slot) * ask.stride + tile.out * 16u + lane;
        if ask.add != 0u {
            sum += out[at];
        }
        out[at] = sum;
    }
}
