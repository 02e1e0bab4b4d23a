//! Tests of the kernels against the CPU engine, bit by bit, on a software renderer or on a GPU that
//! guarantees those bits; and of failures.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use foretoken_model::error::Error;
use foretoken_model::token::TokenId;
use foretoken_model::{Activation, ModelSource};
use foretoken_testkit::Gguf;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::cache::{Cache, PAGE};
use super::device::GpuDevice;
use super::guarantees::Guarantees;
use super::kernels::{Arithmetic, Lanes, TILES};
use super::matrix::Matrix;
use super::model::GpuModel;
use super::opening::adapters;
use super::probe::{activate, compute, norm, products};
use super::product::Product;
use super::recording::Recording;
use super::scores::{LogitRequest, Scorer, Scores};
use super::state::Rows;
use super::step::Quantise;
use crate::cpu::panels::{Format, Panels};
use crate::cpu::reference;
use crate::tree::TokenTree;
use crate::{LogitSubset, Logits, Model, Row, Want};

pub fn gpu() -> &'static Arc<GpuDevice> {
    static GPU: OnceLock<Arc<GpuDevice>> = OnceLock::new();
    let hint = "`make setup-tests` installs a software renderer";
    GPU.get_or_init(|| GpuDevice::open(0, true).unwrap_or_else(|why| panic!("no GPU: {why:?}; {hint}")))
}

/// Devices for products with each number of lanes that the adapter can have.
fn all_lanes() -> &'static [(Lanes, GpuDevice)] {
    static DEVICES: OnceLock<Vec<(Lanes, GpuDevice)>> = OnceLock::new();
    let open = |lanes| {
        let adapter = &adapters(true).0[0];
        let arithmetic = [Arithmetic::Own, Arithmetic::Emulated];
        (lanes, GpuDevice::in_lanes(adapter, "a GPU", &arithmetic, lanes).unwrap())
    };
    DEVICES.get_or_init(|| Lanes::ALL.map(open).into())
}

#[track_caller]
pub fn assert_bits(found: &[f32], expected: &[f32], what: &str) {
    let pairs = found.iter().zip(expected).enumerate();
    let differing = pairs.filter(|(_, (a, b))| a.to_bits() != b.to_bits());
    let (differ, first) = (differing.clone().count(), differing.clone().next());
    assert!(found.len() == expected.len(), "{} numbers for {}: {what}", found.len(), expected.len());
    assert!(
        differ == 0 || !gpu().guarantees().cpu_bits,
        "{differ} of {} differ, the first in {first:?}: {what}",
        expected.len()
    );
}

/// Numbers of many magnitudes and both signs.
pub fn numbers(random: &mut StdRng, count: usize) -> Vec<f32> {
    let mut number = || random.random_range(-1.0..1.0f32) * random.random_range(-12.0..6.0f32).exp2();
    (0..count).map(|_| number()).collect()
}

/// A matrix as in a file: any quants, with finite scales or numbers.
fn matrix(random: &mut StdRng, format: Format, rows: usize, inputs: usize) -> Panels {
    let size = rows * inputs / format.inputs() * format.stored();
    let mut bytes: Vec<u8> = (0..size).map(|_| random.random()).collect();
    for block in bytes.chunks_exact_mut(format.stored()) {
        // Clears the highest exponent bit of scales and numbers.
        let highest: &[usize] = match format {
            Format::F16 | Format::Bf16 => &[0],
            Format::F32 => &[2],
            Format::Iq1M => &[54],
            _ => format.halves_at(),
        };
        if format == Format::Mxfp4 {
            block[0] = block[0] % 8 + 120;
        }
        highest.iter().for_each(|&at| block[at + 1] &= 0xbf);
        // A device may flush numbers below 2^-126, and their sums, to zero.
        match format {
            Format::Bf16 => block[1] |= 0x20,
            Format::F32 => block[3] |= 0x20,
            _ => {}
        }
    }
    Panels::pack(format, rows, inputs, &bytes).unwrap()
}

/// The formula of `scale_of` in `rounding.wgsl`; no result depends on the exponent.
#[test]
fn the_scale_of_activations_is_the_rounded_quotient_for_every_mantissa() {
    let part = 1.0f32 / 127.0;
    assert_eq!(part.to_bits(), 0.007_874_016_f32.to_bits(), "the constant in the kernel");
    let wrong = (1.0f32.to_bits()..2.0f32.to_bits()).map(f32::from_bits).find(|&largest| {
        let near = largest * part;
        let rest = (-near).mul_add(127.0, largest);
        rest.mul_add(part, near) != largest / 127.0
    });
    assert_eq!(wrong, None);
}

#[test]
fn products_of_every_format_have_the_cpus_bits_in_tiles_of_every_size() {
    let mut random = StdRng::seed_from_u64(11);
    for format in Format::ALL {
        // Neither whole slots of blocks nor whole panels.
        let inputs = if format.quantised() { 256 * 3 } else { 80 };
        let panels = matrix(&mut random, format, 40, inputs);
        let rows = numbers(&mut random, 8 * inputs);
        let expected: Vec<f32> =
            rows.chunks(inputs).flat_map(|row| reference::product(&panels, row)).collect();
        for (lanes, device) in all_lanes() {
            let found = products(device, &panels, &rows, &TILES).unwrap();
            assert_eq!(found.len(), TILES.len());
            for (tile, found) in TILES.iter().zip(found) {
                assert_bits(&found, &expected, &format!("{format:?} in tiles of {tile}, {lanes:?}"));
            }
        }
    }
}

/// Outputs of the gated kernels for up to eight rows, in tiles of every size: numbers and quants.
fn gated(
    device: &GpuDevice,
    [gate, up]: [&Panels; 2],
    rows: &[f32],
    activation: Activation,
) -> Vec<Vec<f32>> {
    let (inputs, outputs, count) = (gate.inputs(), gate.rows(), rows.len() / gate.inputs());
    let (x, to) = (Rows::new(device, 8, inputs).unwrap(), Rows::new(device, 8, outputs).unwrap());
    device.write(&x.plain, rows.iter().map(|number| number.to_bits()));
    let quantise = Quantise::new(device, &x).unwrap();
    let matrix = Matrix::interleave(device, &[gate], &[up]).unwrap().unwrap();
    let product = Product::gated(device, &matrix, &x, &to, activation).unwrap();
    let read = |from, count| compute(device, from, count, |_| ()).unwrap();
    let run = |tile: &usize| {
        let plain = compute(device, &to.plain, count * outputs, |pass| {
            quantise.run(pass, count);
            product.run_in_tiles(pass, 0..count, *tile, 0);
        });
        let quants = read(&to.quants, count * outputs / 4);
        [plain.unwrap(), quants, read(&to.scales, count * outputs / 16)].concat()
    };
    TILES.iter().map(run).collect()
}

// Uses a matrix in one buffer and one split over many, none of which has whole rows.
#[test]
fn gates_of_every_format_have_the_cpus_bits_in_tiles_of_every_size() {
    let mut random = StdRng::seed_from_u64(15);
    let small = GpuDevice::open(0, true).unwrap();
    for format in Format::ALL {
        let inputs = if format.quantised() { 256 } else { 80 };
        let [gate, up] = [(); 2].map(|()| matrix(&mut random, format, 96, inputs));
        // Each part is a single group of interleaved panels.
        small.bound(|bounds| bounds.buffer = (5 * gate.panel(0).len() as u64).max(8 * 4 * 256));
        let rows = numbers(&mut random, 8 * inputs);
        let of_lanes = all_lanes().iter().map(|(_, device)| (device, Activation::Clamped));
        for (device, activation) in
            [(&**gpu(), Activation::Silu), (&small, Activation::Gelu)].into_iter().chain(of_lanes)
        {
            let row = |row: &[f32]| {
                reference::activate(
                    activation,
                    &reference::product(&gate, row),
                    &reference::product(&up, row),
                )
            };
            let expected: Vec<f32> = rows.chunks(inputs).flat_map(row).collect();
            let rounded = Rows::new(gpu(), 8, 96).unwrap();
            gpu().write(&rounded.plain, expected.iter().map(|number| number.to_bits()));
            let quantise = Quantise::new(gpu(), &rounded).unwrap();
            let quants = compute(gpu(), &rounded.quants, 8 * 24, |pass| quantise.run(pass, 8)).unwrap();
            let scales = compute(gpu(), &rounded.scales, 8 * 6, |_| ()).unwrap();
            let expected = [expected, quants, scales].concat();
            for (tile, found) in TILES.iter().zip(gated(device, [&gate, &up], &rows, activation)) {
                assert_bits(&found, &expected, &format!("{format:?}, {activation:?} in tiles of {tile}"));
            }
        }
    }
}

#[test]
fn norms_and_activations_have_the_cpus_bits() {
    let mut random = StdRng::seed_from_u64(12);
    for length in [1, 17, 255, 256, 320, 600, 1536] {
        let (rows, weight) = (numbers(&mut random, 5 * length), numbers(&mut random, length));
        let expected: Vec<f32> =
            rows.chunks(length).flat_map(|row| reference::rms_norm(row, &weight, 1e-5)).collect();
        assert_bits(&norm(gpu(), &rows, &weight, 1e-5).unwrap(), &expected, &format!("norms of {length}"));
    }
    let (gate, up) = (numbers(&mut random, 4999), numbers(&mut random, 4999));
    for activation in [Activation::Silu, Activation::Gelu, Activation::Clamped] {
        let expected = reference::activate(activation, &gate, &up);
        assert_bits(&activate(gpu(), activation, &gate, &up).unwrap(), &expected, &format!("{activation:?}"));
    }
}

// Rows have whole stretches and a partial one, an odd vocabulary and equal logits.
#[test]
fn a_sketch_gives_the_same_answers_as_the_row_on_the_cpu() {
    let mut random = StdRng::seed_from_u64(14);
    let vocabulary: usize = 2 * 4096 + 1000 + 7;
    let stride = vocabulary.next_multiple_of(16);
    let rows: Vec<f32> = (0..3 * stride).map(|_| random.random_range(-160..160) as f32 / 16.0).collect();
    let tokens: Vec<TokenId> = vec![0, 4095, 9000, vocabulary as TokenId - 1, 900_000];
    let buffer = |words: Vec<u32>| {
        let buffer = gpu().buffer(4 * words.len()).unwrap();
        gpu().write(&buffer, words);
        buffer
    };
    let logits = buffer(rows.iter().map(|number| number.to_bits()).collect());
    let ids = buffer(tokens.clone());
    let mut scorer = Scorer::new(gpu(), &logits, &ids, vocabulary).unwrap();
    // Peaks; some slices; too many slices to fetch; only the first tokens.
    let likely = |margin, top| LogitSubset::Likely { temperature: 0.7, margin, top };
    let requests =
        [(LogitSubset::Peaks, 0), (likely(0.3, 3), 0), (likely(99.0, 0), 0), (likely(0.3, 3), 5001)];
    for (subset, beyond) in requests {
        let vocabulary = vocabulary - beyond;
        let request = LogitRequest { tokens: &tokens, rows: 3, vocabulary, subset, penalised: &[] };
        let mut recording = Recording::new(gpu());
        scorer.sketch(recording.pass(), &request);
        scorer.copy_out(&mut recording, &request).unwrap();
        recording.end();
        let scores = scorer.collect(&request, Scores::none()).unwrap();
        let found = scorer.logits(&scores, vocabulary);
        for (index, row) in rows.chunks(stride).enumerate() {
            let mut padded = row.to_vec();
            padded.truncate(vocabulary.next_multiple_of(16));
            let peak = reference::peak(&mut padded, vocabulary);
            let peaks = [peak];
            let expected = Logits::new(&row[..vocabulary], vocabulary, vocabulary, &peaks).row(0);
            let found = found.row(index);
            let all = |row: Row<'_>| {
                let mut all = vec![row.likeliest() as f32, row.largest(), row.sum_exp(1.0).unwrap()];
                all.push(row.sum_exp(1.0 / 0.7).unwrap());
                all.extend(row.top(3).unwrap().into_iter().flat_map(|(token, logit)| [token as f32, logit]));
                let within = row.at_least(row.largest() - 0.3, |token, logit| {
                    all.extend([token as f32, logit]);
                    ControlFlow::Continue(())
                });
                assert!(within.unwrap().is_continue());
                all.extend(tokens[..2].iter().map(|&token| row.probability(token).unwrap()));
                all.extend(row.logits().unwrap());
                all
            };
            assert_bits(&all(found), &all(expected), &format!("{subset:?}, row {index}"));
        }
    }
}

#[test]
fn a_software_renderer_gives_every_guarantee() {
    if gpu().label().ends_with("software") {
        assert_eq!(gpu().guarantees(), Guarantees::default(), "{}", gpu().label());
    }
}

#[test]
fn a_gpu_that_is_not_there_is_not_opened() {
    assert!(GpuDevice::open(99, true).is_err());
}

#[test]
fn a_buffer_beyond_the_devices_limit_is_an_out_of_memory_error_and_the_device_still_works() {
    let error = gpu().buffer(usize::MAX / 2).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    gpu().buffer(1000).unwrap();
    gpu().wait().unwrap();
}

#[test]
fn a_shader_that_the_driver_rejects_is_an_error_and_the_device_still_works() {
    let wrong =
        wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl("fn no {".into()) };
    let error = gpu().guarded(|| gpu().raw().create_shader_module(wrong)).unwrap_err();
    assert!(matches!(error, Error::Compute(_)), "{error}");
    gpu().wait().unwrap();
}

/// A model on a device that tests can destroy.
pub fn tiny(device: &Arc<GpuDevice>) -> GpuModel {
    let folder = tempfile::tempdir().unwrap();
    GpuModel::load(&ModelSource::open(&Gguf::tiny().write(folder.path())).unwrap(), device).unwrap()
}

#[test]
fn losing_the_device_in_mid_reply_is_an_error_and_keeps_the_list_of_cached_tokens() {
    let lost = GpuDevice::open(0, true).unwrap();
    let mut model = tiny(&lost);
    model.run(&TokenTree::chain([5, 6, 7]), &Want::all_rows()).unwrap();
    lost.lose();
    for tree in [TokenTree::chain([8]), TokenTree::chain(vec![8; 40])] {
        let Err(error) = model.run(&tree, &Want::all_rows()) else { panic!("computed on nothing") };
        assert!(matches!(error, Error::Compute(_)), "{error}");
    }
    assert_eq!(model.cached(), [5, 6, 7]);
    let failed = model.run(&TokenTree::chain([8]), &Want::nothing()).is_err() || model.wait().is_err();
    assert!(failed, "nothing was requested, and no error was reported");
}

#[test]
fn threads_that_share_a_device_submit_and_wait_at_the_same_time() {
    let work = || {
        let mut model = tiny(gpu());
        for _ in 0..60 {
            model.run(&TokenTree::chain([5]), &Want::all_rows()).unwrap().keep(&[]).unwrap();
        }
    };
    std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(work));
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_cache_grows_by_half_in_whole_pages() {
    let mut cache = Cache::new(gpu(), 2, 8).unwrap();
    let mut grow = |positions| (cache.reserve(gpu(), positions).unwrap(), cache.positions() / PAGE);
    let found = [PAGE, PAGE + 1, 4 * PAGE, 4 * PAGE + 1].map(&mut grow);
    assert_eq!(found, [(false, 1), (true, 2), (true, 4), (true, 6)]);
}

#[test]
fn a_lost_device_returns_errors_and_never_panics() {
    let lost = GpuDevice::open(0, true).unwrap();
    lost.lose();
    let mut random = StdRng::seed_from_u64(13);
    let weight = numbers(&mut random, 64);
    let error = norm(&lost, &weight, &weight, 1e-5).unwrap_err();
    assert!(matches!(error, Error::Compute(_)), "{error}");
}
