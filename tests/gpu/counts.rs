//! Work that a pass takes on the GPU: dispatches of each kind of layer, submissions and waits.

use candle_core::quantized::GgmlDType;
use foretoken_forward::device::Device;
use foretoken_forward::gpu::{DeviceCounts, GpuDevice};
use foretoken_forward::tree::TokenTree;
use foretoken_forward::{LogitSubset, Want, load};
use foretoken_model::config::MixerSpec;
use foretoken_tests::{family, on_the_gpu, starter_target};

/// Norm, heads, RoPE, attention and its join, output, norm, gate with up, down.
const DENSE: usize = 9;

/// Families with layers other than dense ones with attention, and the dispatches of such a layer:
/// norm, input, convolution, records, output (LFM2), and three for matrices between these; then the
/// feed-forward network's three.
const RECURRENT: [(&str, usize); 3] = [("lfm2", 8), ("granitehybrid", 10), ("qwen35", 10)];

#[test]
fn a_dense_layer_takes_nine_dispatches() {
    let mut model = on_the_gpu(&starter_target());
    let layers = model.config().depth();
    // The embedding lookup; with logits the last norm, the logits and their sketch, too.
    for (want, others) in [(Want::nothing(), 1), (Want::all_rows().subset(LogitSubset::Peaks), 4)] {
        for rows in [1, 8] {
            let tree = TokenTree::chain(vec![5; rows]);
            model.run(&tree, &want).unwrap().keep(&[]).unwrap();
            assert_eq!(model.dispatch_stats().unwrap().dispatches, DENSE * layers + others, "{rows} rows");
        }
    }
}

#[test]
fn recurrent_layers_take_as_few_dispatches_as_they_have_kernels() {
    let folder = tempfile::tempdir().unwrap();
    for (label, expected) in RECURRENT {
        let mut model = on_the_gpu(&family(label).gguf(folder.path(), GgmlDType::Q8_0));
        let layers = &model.config().layers;
        let recurrent = layers.iter().filter(|layer| matches!(layer.mixer, MixerSpec::Recurrent(_))).count();
        let lookup = usize::from(model.config().tied_embeddings);
        let all = expected * recurrent + DENSE * (layers.len() - recurrent) + lookup;
        model.run(&TokenTree::chain([5]), &Want::nothing()).unwrap().keep(&[]).unwrap();
        assert_eq!(model.dispatch_stats().unwrap().dispatches, all, "{label}");
    }
}

#[test]
fn a_token_takes_one_wait_and_its_first_layers_are_submitted_early() {
    // A device of its own, since it counts the passes of all threads.
    let gpu = GpuDevice::open(0, true).unwrap();
    let mut model = load(&starter_target(), &Device::Gpu(gpu.clone())).unwrap();
    let layers = model.config().depth();
    let mut count = |want: &Want<'_>| {
        // The first pass grows buffers.
        let passes = [0; 2].map(|_| {
            let before = gpu.counts();
            model.run(&TokenTree::chain([5]), want).unwrap().keep(&[]).unwrap();
            let DeviceCounts { submissions, waits } = gpu.counts();
            (submissions - before.submissions, waits - before.waits)
        });
        passes[1]
    };
    assert!((3..10).contains(&layers), "{layers} layers do not make two submissions");
    assert_eq!(count(&Want::all_rows().subset(LogitSubset::Peaks)), (2, 1), "the likeliest token");
    let likely = LogitSubset::Likely { temperature: 0.7, margin: 0.1, top: 1 };
    assert_eq!(count(&Want::all_rows().subset(likely)), (3, 2), "sampled");
    assert_eq!(count(&Want::nothing()), (2, 0), "without logits");
}
