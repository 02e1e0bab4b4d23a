//! Weight blocks in every format: any bytes decode to the expected number of weights, all finite if
//! the scales are.

use foretoken_model::format::{Block, Format};

use super::{Memory, Target};

pub fn target() -> Target {
    let quantised: Vec<Format> = Format::ALL.into_iter().filter(|format| format.quantised()).collect();
    let seed = |kind: usize| [&[kind as u8][..], &[0x55; 64], &[0x3c; 256]].concat();
    Target {
        name: "formats",
        seeds: (0..quantised.len()).map(seed).collect(),
        words: &[],
        head: usize::MAX,
        longest: 1024,
        // A weight takes four bytes in memory, and at least two bits in a file.
        memory: Memory { each: 32, beside: 1 << 16 },
        run: Box::new(move |input| {
            let (&kind, bytes) = input.split_first()?;
            let format = quantised[usize::from(kind) % quantised.len()];
            let weights = format.dequantise(bytes);
            assert_eq!(weights.len(), bytes.len() / format.stored() * format.inputs());
            let mut block = Block::default();
            let blocks = bytes.chunks_exact(format.stored()).zip(weights.chunks_exact(format.inputs()));
            for (bytes, weights) in blocks {
                block.take_apart(format, bytes);
                assert!(!block.finite(format) || weights.iter().all(|weight| weight.is_finite()));
            }
            None
        }),
    }
}
