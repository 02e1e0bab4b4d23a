//! From a file's bytes to panels and back.

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
