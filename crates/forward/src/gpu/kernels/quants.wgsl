// A panel of quantised weights, byte for byte the CPU engine's (see its `panels.rs`). The host
// fills in a format's constants: bits per quant, whether a quant is a codebook index, the offset
// taken off it, how it is scaled, and how many groups of 32 inputs a block of the file has. Sizes
// are in words.

const BITS = {{BITS}}u;
const CHOSEN = {{CHOSEN}};
const CENTRE = {{CENTRE}}u;
const SCALED = {{SCALED}}u;
const FACTOR = {{FACTOR}};
const GROUPS = {{GROUPS}}u;
const HEAD = {{HEAD}}u;
const GROUP = {{GROUP}}u;
const BLOCK = HEAD + GROUPS * GROUP;

// Values of SCALED.
const BY_HALF = 0u;
const WITH_MINIMUM = 1u;
const WITH_PARTS = 2u;
const IN_HALVES = 3u;
const IN_GROUPS = 4u;
const BY_POWER = 5u;
const WITH_NIBBLES = 6u;
const BY_SIXTEENS = 7u;

// A row's scales for a block of the file.
struct Head {
    halves: vec2<f32>, // scale, minimum
    parts: vec3<u32>,  // four bytes per word
}

// Signed quants of 32 inputs, four per word.
struct Quants {
    lower: vec4<u32>,
    upper: vec4<u32>,
}

fn half_of(word: u32, lane: u32) -> f32 {
    return half((weights[word + (lane >> 1u)] >> ((lane & 1u) * 16u)) & 0xffffu);
}

// The row's byte of entry `index`; each entry has one byte per row.
fn byte_of(word: u32, index: u32, lane: u32) -> u32 {
    return (weights[word + index * 4u + (lane >> 2u)] >> ((lane & 3u) * 8u)) & 255u;
}

fn four_of(word: u32, index: u32, lane: u32) -> u32 {
    return byte_of(word, index, lane) | (byte_of(word, index + 1u, lane) << 8u)
        | (byte_of(word, index + 2u, lane) << 16u) | (byte_of(word, index + 3u, lane) << 24u);
}

fn head_of(block: u32, lane: u32) -> Head {
    var head = Head(vec2<f32>(), vec3<u32>());
    if SCALED == BY_POWER {
        // Stored as the exponent plus one.
        head.halves.x = 0.25 * bitcast<f32>(byte_of(block, 0u, lane) << 23u);
        return head;
    }
    if SCALED == BY_SIXTEENS {
        return head;
    }
    head.halves.x = half_of(block, lane) * FACTOR;
    if SCALED == WITH_MINIMUM || SCALED == WITH_PARTS || SCALED == WITH_NIBBLES {
        head.halves.y = half_of(block + 8u, lane);
    }
    if SCALED == WITH_PARTS {
        let parts = block + 16u;
        head.parts = vec3(four_of(parts, 0u, lane), four_of(parts, 4u, lane), four_of(parts, 8u, lane));
    }
    return head;
}

// Half of an unsigned number with four bits of exponent and three of mantissa.
fn half_of_e4m3(byte: u32) -> f32 {
    return select(bitcast<f32>((byte << 20u) + 0x3b800000u), f32(byte) * 0.0009765625, byte < 8u);
}

// The factor of a group's products, and of the row's sum. With a scale for each 16 inputs, the
// factors of both halves.
fn factor_of(head: Head, block: u32, group: u32, lane: u32) -> vec2<f32> {
    if SCALED == BY_SIXTEENS {
        let first = half_of_e4m3(byte_of(block, 2u * group, lane));
        return vec2(first, half_of_e4m3(byte_of(block, 2u * group + 1u, lane)));
    }
    if SCALED == IN_GROUPS {
        let part = i32(byte_of(block + 8u, group, lane) << 24u) >> 24u;
        return vec2(head.halves.x * f32(part), 0.0);
    }
    if SCALED != WITH_PARTS {
        return head.halves;
    }
    let bytes = (head.parts >> vec3(8u * (group & 3u))) & vec3(255u);
    var parts = bytes.xy & vec2(63u);
    if group >= 4u {
        parts = (vec2(bytes.z, bytes.z >> 4u) & vec2(15u)) | ((bytes.xy >> vec2(2u)) & vec2(48u));
    }
    return vec2(head.halves.x, -head.halves.y) * vec2<f32>(parts);
}

// The integer factors of the first and second 16 inputs' products.
fn parts_of(block: u32, group: u32, lane: u32) -> vec2<i32> {
    if SCALED != IN_HALVES && SCALED != WITH_NIBBLES {
        return vec2(1, 1);
    }
    let at = block + select(8u, 16u, SCALED == WITH_NIBBLES);
    let parts = vec2(byte_of(at, 2u * group, lane), byte_of(at, 2u * group + 1u, lane));
    return vec2<i32>(parts << vec2(24u)) >> vec2(24u);
}

fn four_words(at: u32) -> vec4<u32> {
    return vec4(weights[at], weights[at + 16u], weights[at + 32u], weights[at + 48u]);
}

fn quants_of(group: u32, lane: u32) -> Quants {
    let at = group + lane;
    var found = Quants();
    if BITS == 8u {
        found = Quants(four_words(at), four_words(at + 64u));
    } else if BITS == 1u {
        let one = vec4(weights[at]);
        found.lower = ((one >> vec4(0u, 1u, 2u, 3u)) & vec4(0x01010101u)) << vec4(1u);
        found.upper = ((one >> vec4(4u, 5u, 6u, 7u)) & vec4(0x01010101u)) << vec4(1u);
    } else if BITS < 4u {
        let two = vec2(weights[at], weights[at + 16u]).xyxy;
        found.lower = (two >> vec4(0u, 0u, 2u, 2u)) & vec4(0x03030303u);
        found.upper = (two >> vec4(4u, 4u, 6u, 6u)) & vec4(0x03030303u);
    } else {
        let four = four_words(at);
        found.lower = four & vec4(0x0f0f0f0fu);
        found.upper = (four >> vec4(4u)) & vec4(0x0f0f0f0fu);
    }
    if BITS == 3u || BITS == 5u {
        let one = vec4(weights[at + select(64u, 32u, BITS == 3u)]);
        let left = vec4(BITS - 1u);
        found.lower |= ((one >> vec4(0u, 1u, 2u, 3u)) & vec4(0x01010101u)) << left;
        found.upper |= ((one >> vec4(4u, 5u, 6u, 7u)) & vec4(0x01010101u)) << left;
    }
    if BITS == 6u {
        let two = vec2(weights[at + 64u], weights[at + 80u]).xyxy;
        found.lower |= ((two >> vec4(0u, 0u, 2u, 2u)) & vec4(0x03030303u)) << vec4(4u);
        found.upper |= ((two >> vec4(4u, 4u, 6u, 6u)) & vec4(0x03030303u)) << vec4(4u);
    }
    if CHOSEN {
        return Quants(chosen(found.lower), chosen(found.upper));
    }
    if CENTRE != 0u {
        let down = vec4((128u - CENTRE) * 0x01010101u);
        found.lower = (found.lower + down) ^ vec4(0x80808080u);
        found.upper = (found.upper + down) ^ vec4(0x80808080u);
    }
    return found;
}
