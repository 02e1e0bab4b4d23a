// Text positions that a row sees, from the first to before the second. The nodes of its path follow
// the cached ones. A row has a position of its own even if it has no key there.
fn visible_to(row: u32) -> vec2<u32> {
    let own = nodes[3u * row + 2u] - nodes[3u * row + 1u];
    let all = params.cached + own;
    let next = params.cached + max(own, 1u);
    let begin = next - min(next, params.window);
    if params.ahead == 0u {
        return vec2(begin, all);
    }
    // The window reaches as far ahead as back.
    let ahead = min(own - 1u + min(params.window, params.ahead), params.ahead);
    return vec2(begin, params.cached + ahead);
}
