//! Recurrent layers on the GPU: the CPU's bits in any tree, and after any kept and dropped tokens.

use candle_core::quantized::GgmlDType;
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Model, Want};
use foretoken_model::token::TokenId;
use foretoken_tests::{family, on_the_gpu, small_qwen35};

use super::{assert_the_cpus, on_the_cpu};

/// Nodes of a tree with forks of several depths, and their parents.
const FORKS: [Option<usize>; 14] = [
    None,
    Some(0),
    Some(0),
    Some(1),
    Some(2),
    Some(3),
    Some(0),
    Some(4),
    Some(7),
    Some(5),
    None,
    Some(10),
    Some(8),
    Some(11),
];

/// Operation on a text.
enum Deed {
    /// Runs a chain, with logits of all tokens or of none, and keeps it.
    Read(usize, bool),
    /// Runs the first nodes of [`FORKS`], then all of them, and keeps a path.
    Tree(usize, &'static [usize]),
    /// Runs a chain and keeps the first tokens.
    Keep(usize, usize),
    /// Drops tokens.
    Back(usize),
}

fn token(number: usize, index: usize) -> TokenId {
    (3 + (number * 131 + index * 37) % 310) as TokenId
}

/// Logits of all rows that the deed scores.
fn act(model: &mut dyn Model, number: usize, deed: &Deed) -> Vec<f32> {
    let chain = |length: usize| TokenTree::chain((0..length).map(|index| token(number, index)));
    match *deed {
        Deed::Read(length, scored) => {
            let want = if scored { Want::all_rows() } else { Want::nothing() };
            let pass = model.run(&chain(length), &want).unwrap();
            let rows = if scored { 0..length } else { 0..0 };
            rows.flat_map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect()
        }
        Deed::Tree(first, path) => {
            let mut tree = TokenTree::default();
            let mut part = TokenTree::default();
            for (node, parent) in FORKS.into_iter().enumerate() {
                if node == first {
                    part = tree.clone();
                }
                tree.push(token(number, node), parent);
            }
            let pass = model.run(&part, &Want::all_rows()).unwrap();
            let mut found: Vec<f32> =
                (0..first).flat_map(|row| pass.logits().row(row).logits().unwrap().to_vec()).collect();
            let pass = pass.grow(&tree, &Want::all_rows()).unwrap();
            for row in 0..tree.len() - first {
                found.extend(pass.logits().row(row).logits().unwrap());
            }
            pass.keep(path).unwrap();
            found
        }
        Deed::Keep(length, kept) => {
            let pass = model.run(&chain(length), &Want::all_rows()).unwrap();
            pass.keep(&(0..kept).collect::<Vec<_>>()).unwrap();
            Vec::new()
        }
        Deed::Back(tokens) => {
            model.truncate(model.cached().len() - tokens);
            Vec::new()
        }
    }
}

#[test]
fn recurrent_layers_have_the_cpus_bits_in_trees_and_after_kept_and_dropped_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let deeds = [
        Deed::Tree(3, &[0, 2, 4, 7, 8]),
        Deed::Read(1, true),
        Deed::Read(1, true),
        Deed::Tree(9, &[10, 11, 13]),
        // Chunks of 32 rows with logits, then of 128 rows without.
        Deed::Read(40, true),
        Deed::Back(24),
        Deed::Read(2, true),
        Deed::Read(131, false),
        Deed::Tree(1, &[0, 1, 3]),
        Deed::Back(24),
        Deed::Tree(12, &[]),
        Deed::Keep(20, 3),
        Deed::Read(5, true),
        Deed::Back(60),
        Deed::Read(3, true),
        Deed::Keep(60, 50),
        Deed::Read(1, true),
    ];
    let sources = ["lfm2", "qwen35", "granitehybrid"]
        .map(|label| (label, family(label).gguf(folder.path(), GgmlDType::Q8_0)));
    // Heads of 128 numbers, which four threads share.
    for (label, source) in sources.into_iter().chain([("heads of 128", small_qwen35(folder.path()))]) {
        let (mut here, mut there) = (on_the_cpu(&source), on_the_gpu(&source));
        for (number, deed) in deeds.iter().enumerate() {
            let expected = act(here.as_mut(), number, deed);
            let found = act(there.as_mut(), number, deed);
            assert_the_cpus(&found, &expected, &format!("{label}, deed {number}"));
            assert_eq!(there.cached(), here.cached(), "{label}, deed {number}");
        }
    }
}
