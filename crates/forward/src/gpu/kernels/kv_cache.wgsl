// Words of a layer's KV cache that have a pair of numbers of a head at a position.

fn key(position: u32, kv_head: u32, pair: u32) -> u32 {
    let block = (position / 256u * params.kv_heads + kv_head) * 16u + position % 256u / 16u;
    return (block * params.pairs + pair) * 16u + position % 16u;
}

fn value(position: u32, kv_head: u32, pair: u32) -> u32 {
    return ((position / 256u * params.kv_heads + kv_head) * 256u + position % 256u) * params.pairs + pair;
}
