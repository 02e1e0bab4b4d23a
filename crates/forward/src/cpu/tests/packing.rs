//! From a file's bytes to panels and back.

use foretoken_model::format::set_halves;
use half::f16;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::super::panels::{Format, PackError, Panels};
use super::{dequantised, file};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn packing_and_unpacking_changes_no_weight(
        format in prop::sample::select(&Format::ALL),
        rows in 1usize..40,
        blocks in 1usize..4,
        seed: u64,
    ) {
        let inputs = blocks * format.inputs();
        let bytes = file(&mut StdRng::seed_from_u64(seed), format, rows, inputs);
        let panels = Panels::pack(format, rows, inputs, &bytes).unwrap();
        prop_assert_eq!((panels.rows(), panels.inputs(), panels.format()), (rows, inputs, format));
        let expected = dequantised(format, rows, inputs, &bytes);
        let mut found = vec![0.0; inputs];
        for (row, expected) in expected.chunks(inputs).enumerate() {
            panels.unpack_row(row, &mut found);
            prop_assert_eq!(&found, expected, "row {}", row);
        }
    }
}

#[test]
fn padding_rows_of_the_last_panel_are_zero() {
    for format in Format::ALL {
        let inputs = format.inputs();
        let bytes = file(&mut StdRng::seed_from_u64(1), format, 17, inputs);
        let panels = Panels::pack(format, 17, inputs, &bytes).unwrap();
        assert_eq!(panels.panels(), 2);
        let mut found = vec![1.0; inputs];
        for row in 17..32 {
            panels.unpack_row(row, &mut found);
            assert!(found.iter().all(|&weight| weight == 0.0), "{format:?}, row {row}");
        }
    }
}

#[test]
fn bytes_that_are_not_a_whole_matrix_are_rejected() {
    for format in Format::ALL {
        let inputs = 2 * format.inputs();
        let bytes = file(&mut StdRng::seed_from_u64(1), format, 3, inputs);
        let pack = |rows, inputs, bytes: &[u8]| Panels::pack(format, rows, inputs, bytes).err();
        assert_eq!(pack(3, inputs, &bytes), None);
        let size = |found| Some(PackError::Size { expected: bytes.len(), found });
        assert_eq!(pack(3, inputs, &bytes[1..]), size(bytes.len() - 1), "{format:?}");
        assert_eq!(pack(3, inputs, &[&bytes[..], &[0]].concat()), size(bytes.len() + 1), "{format:?}");
        assert_eq!(pack(0, inputs, &[]), Some(PackError::Size { expected: 0, found: 0 }), "{format:?}");
        if format.quantised() {
            assert!(matches!(pack(3, inputs + 1, &bytes), Some(PackError::Size { .. })), "{format:?}");
        }
    }
}

#[test]
fn infinite_numbers_and_nan_are_rejected() {
    for format in Format::ALL {
        let inputs = 2 * format.inputs();
        let bytes = file(&mut StdRng::seed_from_u64(1), format, 20, inputs);
        let offsets: &[usize] = if format.quantised() { format.halves_at() } else { &[0] };
        for (row, offset) in [0, 15, 19].into_iter().flat_map(|row| offsets.iter().map(move |&at| (row, at)))
        {
            for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut bytes = bytes.clone();
                // In the row's second block.
                let at = (2 * row + 1) * format.stored() + offset;
                match format {
                    Format::F32 => bytes[at..at + 4].copy_from_slice(&number.to_le_bytes()),
                    Format::Bf16 => {
                        bytes[at..at + 2].copy_from_slice(&half::bf16::from_f32(number).to_le_bytes())
                    }
                    _ => bytes[at..at + 2].copy_from_slice(&f16::from_f32(number).to_le_bytes()),
                }
                let found = Panels::pack(format, 20, inputs, &bytes).err();
                assert_eq!(found, Some(PackError::NotFinite { row }), "{format:?} {number}");
            }
        }
    }
}

#[test]
fn infinite_scales_in_other_formats_than_half_precision_are_rejected() {
    let refused = |format: Format, change: &dyn Fn(&mut [u8])| {
        let inputs = 2 * format.inputs();
        let mut bytes = file(&mut StdRng::seed_from_u64(1), format, 20, inputs);
        change(&mut bytes[39 * format.stored()..]);
        Panels::pack(format, 20, inputs, &bytes).err()
    };
    let last = Some(PackError::NotFinite { row: 19 });
    for exponent in [253, 254, 255] {
        assert_eq!(refused(Format::Mxfp4, &|block| block[0] = exponent), last, "{exponent}");
    }
    for exponent in [0, 1, 252] {
        assert_eq!(refused(Format::Mxfp4, &|block| block[0] = exponent), None, "{exponent}");
    }
    let infinite = |block: &mut [u8]| {
        block[55] |= 0x70;
        block[53] |= 0xc0;
    };
    assert_eq!(refused(Format::Iq1M, &infinite), last);
}

/// Bytes of a matrix in a file that depend on no library, with finite scales.
fn reproducible_file(format: Format, rows: usize, inputs: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    let mut bytes = vec![0; rows * inputs / format.inputs() * format.stored()];
    bytes.iter_mut().for_each(|byte| *byte = next() as u8);
    for block in bytes.chunks_exact_mut(format.stored()) {
        // Below 2, positive or negative.
        let half = f16::from_bits((next() & 0xbfff) as u16);
        match format {
            Format::F32 => block.copy_from_slice(&half.to_f32().to_le_bytes()),
            Format::Bf16 => block.copy_from_slice(&half::bf16::from_f32(half.to_f32()).to_le_bytes()),
            Format::F16 => block.copy_from_slice(&half.to_le_bytes()),
            _ => set_halves(format, block, [half, f16::from_f32(0.5)]),
        }
    }
    bytes
}

/// Computes the 64-bit FNV-1a hash of all panels.
fn hash(panels: &Panels) -> u64 {
    let bytes = (0..panels.panels()).flat_map(|panel| panels.panel(panel));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Hashes of 37 rows of 768 inputs, in the order of [`Format::ALL`].
#[rustfmt::skip]
const HASHES: [u64; Format::ALL.len()] = [
    0xcf77_c181_e2bf_5540, // F32
    0x5208_015a_8045_a707, // F16
    0x7985_890a_14a1_c853, // BF16
    0xb033_756c_1051_57c9, // Q4_0
    0x7170_2d76_6e81_8c7e, // Q4_1
    0x4d3e_98e5_53ab_f24b, // Q5_0
    0x143a_2ee5_a664_8c29, // Q5_1
    0xe295_bdca_2432_bb8b, // Q8_0
    0xd909_8f57_f422_c59d, // Q2_K
    0x7134_b271_f741_1d7f, // Q3_K
    0x9494_b5c9_8c31_183d, // Q4_K
    0xf0d4_5714_3b7d_e620, // Q5_K
    0x2f5d_011e_67bc_9e90, // Q6_K
    0xe920_5bfb_5d66_63f0, // IQ1_S
    0x31a8_f628_612c_1359, // IQ1_M
    0xe237_9fc6_b1e7_3844, // IQ2_XXS
    0x7246_3887_ad9f_2316, // IQ2_XS
    0x3b28_444a_33e3_1c54, // IQ2_S
    0xbd49_8c48_fd99_0430, // IQ3_XXS
    0x2a17_7a79_cf27_a741, // IQ3_S
    0xb033_756c_1051_57c9, // IQ4_NL
    0xcb50_b118_ffa2_6e3b, // IQ4_XS
    0xdef1_c87c_981b_6446, // TQ1_0
    0x626d_85f1_1724_5fe1, // TQ2_0
    0x546d_2880_05f5_7caf, // MXFP4
    0xf906_60d8_e927_b5d4, // NVFP4
    0x64a5_9844_af2e_22e1, // Q1_0
    0xd952_7635_220e_c9a3, // Q2_0
];

#[test]
fn panels_of_every_format_have_the_bits_they_always_had() {
    for (format, expected) in Format::ALL.into_iter().zip(HASHES) {
        let panels = Panels::pack(format, 37, 768, &reproducible_file(format, 37, 768)).unwrap();
        let found = hash(&panels);
        assert_eq!(found, expected, "{}: {found:#018x}", format.name());
    }
}
