//! Assembles a kernel's WGSL from the files in `kernels/`. Fills in constants of the weight format
//! and the device's fused multiply-add.

use super::kernels::{Arithmetic, Kernel, LONGEST_HEAD, LONGEST_LATENT, Lanes, MOST_RANKED};
use crate::cpu::panels::{Format, PanelLayout};

macro_rules! wgsl {
    ($name:literal) => {
        include_str!(concat!("kernels/", $name, ".wgsl"))
    };
}

/// Source of a kernel. Products of several rows have `lanes`.
pub fn source(kernel: Kernel, arithmetic: Arithmetic, lanes: Lanes) -> String {
    let fused = match arithmetic {
        Arithmetic::Own => "fn fused(a: f32, b: f32, c: f32) -> f32 { return fma(a, b, c); }\n",
        Arithmetic::Emulated => wgsl!("emulated"),
        #[cfg(test)]
        Arithmetic::Wrong => "fn fused(a: f32, b: f32, c: f32) -> f32 { return a * b - c; }\n",
    };
    let text = [own(kernel), vec![fused, wgsl!("arithmetic")]].concat().join("\n");
    // The buffer of slots is the kernel's last one.
    let text = text.replace("{{SLOTS}}", &(kernel.bindings().len() - 1).to_string());
    match kernel {
        Kernel::Product(format, rows)
        | Kernel::SlotProduct(format, rows)
        | Kernel::Gated(format, rows)
        | Kernel::SlotGated(format, rows) => in_lanes(&fill(&text, rows, format), kernel.lanes(lanes)),
        Kernel::Embed(format) => fill(&text, 1, format),
        Kernel::Attend(queries) => attention(&text, queries),
        Kernel::Norm => each_row(&text, 4),
        Kernel::Join => each_row(&text, 8),
        Kernel::AttendLatents => text.replace("{{LATENT}}", &LONGEST_LATENT.to_string()),
        Kernel::TopK => text.replace("{{EXPERTS}}", &MOST_RANKED.to_string()),
        Kernel::Recur => each_row(&text, 32),
        _ => text.replace("{{LONGEST}}", &LONGEST_HEAD.to_string()),
    }
}

/// Name and source of every kernel, for both kinds of fused multiply-add; of products in all lanes.
pub fn shaders() -> impl Iterator<Item = (String, String)> {
    let of = |arithmetic, kernel: Kernel| {
        let all = Lanes::ALL.into_iter().filter(move |&lanes| kernel.lanes(lanes) == lanes);
        all.map(move |lanes| {
            let name = if lanes == Lanes::Sixteen { String::new() } else { format!(", {lanes:?}") };
            (format!("{kernel:?}{name}, {arithmetic:?}"), source(kernel, arithmetic, lanes))
        })
    };
    [Arithmetic::Own, Arithmetic::Emulated]
        .into_iter()
        .flat_map(move |arithmetic| Kernel::all().flat_map(move |kernel| of(arithmetic, kernel)))
}

/// Files of a kernel beside the arithmetic.
fn own(kernel: Kernel) -> Vec<&'static str> {
    let rounding = [wgsl!("rounding"), wgsl!("block"), wgsl!("tiled")];
    match kernel {
        Kernel::Product(format, _) => [product(format), vec![wgsl!("product"), wgsl!("rows")]].concat(),
        Kernel::SlotProduct(format, _) => [product(format), vec![wgsl!("product"), wgsl!("slots")]].concat(),
        Kernel::Gated(format, _) => {
            [product(format), gated(), vec![wgsl!("no_biases"), wgsl!("rows")]].concat()
        }
        Kernel::SlotGated(format, _) => {
            [product(format), gated(), vec![wgsl!("expert_biases"), wgsl!("slots")]].concat()
        }
        Kernel::Embed(format) => [panel(format), vec![wgsl!("embed"), unpacking(format)]].concat(),
        Kernel::TopK => vec![wgsl!("top_k")],
        Kernel::Arrange => vec![wgsl!("arrange")],
        Kernel::Combine => vec![wgsl!("combine")],
        Kernel::AddGated => vec![wgsl!("add_gated")],
        Kernel::Concat => [vec![wgsl!("concat")], state_norm(), rounding.to_vec()].concat(),
        Kernel::Convolve => vec![wgsl!("convolve")],
        Kernel::Scatter => vec![wgsl!("scatter")],
        Kernel::Norm => [vec![wgsl!("norm")], state_norm(), shared_rounding()].concat(),
        Kernel::NormHeads => [vec![wgsl!("norm_heads")], state_norm()].concat(),
        Kernel::PerLayer => [vec![wgsl!("per_layer")], state_norm()].concat(),
        Kernel::Quantise => [vec![wgsl!("quantise")], rounding.to_vec()].concat(),
        Kernel::Activate => [vec![wgsl!("activate"), wgsl!("activation")], rounding.to_vec()].concat(),
        Kernel::Rope => [vec![wgsl!("rope"), wgsl!("rotate")], head_norm()].concat(),
        Kernel::CompleteLatents => [vec![wgsl!("complete_latents"), wgsl!("rotate")], state_norm()].concat(),
        Kernel::AttendLatents => vec![wgsl!("attend_latents"), wgsl!("visible"), wgsl!("across")],
        Kernel::Attend(_) => vec![wgsl!("attend"), wgsl!("visible"), wgsl!("across")],
        Kernel::Join => [vec![wgsl!("join"), wgsl!("visible")], shared_rounding()].concat(),
        Kernel::Gather => vec![wgsl!("gather"), wgsl!("kv_cache")],
        Kernel::LoadKv => vec![wgsl!("load_kv"), wgsl!("kv_cache")],
        Kernel::StoreKv => vec![wgsl!("store_kv"), wgsl!("kv_cache")],
        Kernel::ConvolveGates => [vec![wgsl!("convolve_gates")], convolution(), shared_rounding()].concat(),
        Kernel::ConvolveHeads => {
            [vec![wgsl!("convolve_heads"), wgsl!("activation")], convolution(), head_norm()].concat()
        }
        Kernel::Recur => vec![wgsl!("recur"), wgsl!("recurrence")],
        Kernel::GateHeads => {
            [vec![wgsl!("gate_heads"), wgsl!("activation")], state_norm(), shared_rounding()].concat()
        }
        Kernel::Remember => vec![wgsl!("remember"), wgsl!("recurrence"), wgsl!("taps")],
        Kernel::Score => vec![wgsl!("score")],
        Kernel::Sketch => vec![wgsl!("sketch")],
        Kernel::AddRows => vec![wgsl!("add_rows")],
        Kernel::Probe => vec![wgsl!("probe")],
    }
}

/// Layout of a panel.
fn panel(format: Format) -> Vec<&'static str> {
    match format.quantised() {
        true => vec![wgsl!("quants"), wgsl!("codebook")],
        false => vec![wgsl!("numbers")],
    }
}

/// Product of panels with a tile of rows.
fn product(format: Format) -> Vec<&'static str> {
    let run = if format.quantised() { wgsl!("quants_run") } else { wgsl!("numbers_run") };
    [panel(format), vec![wgsl!("tile"), run]].concat()
}

/// Activation of gate and up.
fn gated() -> Vec<&'static str> {
    vec![wgsl!("gated"), wgsl!("activation"), wgsl!("rounding"), wgsl!("tiled")]
}

/// Conversion of a row's part to numbers.
fn unpacking(format: Format) -> &'static str {
    if format.quantised() { wgsl!("quants_row") } else { wgsl!("numbers_row") }
}

/// Norm of a state.
fn state_norm() -> Vec<&'static str> {
    vec![wgsl!("state_scale"), wgsl!("norm_scale"), wgsl!("across")]
}

/// Norm of a head.
fn head_norm() -> Vec<&'static str> {
    vec![wgsl!("head_scale"), wgsl!("norm_scale"), wgsl!("across")]
}

/// Convolution of recurrent layers.
fn convolution() -> Vec<&'static str> {
    vec![wgsl!("recurrence"), wgsl!("taps"), wgsl!("convolved")]
}

/// Rounding of numbers that the threads of a workgroup have.
fn shared_rounding() -> Vec<&'static str> {
    vec![wgsl!("rounding"), wgsl!("eighth"), wgsl!("tiled")]
}

/// Fills in a tile of `queries`, so that workgroup memory stays below 16 KB.
fn attention(source: &str, queries: usize) -> String {
    let held = if queries > 4 { 896 } else { 1024 };
    let source = each_row(source, 4).replace("{{QUERIES}}", &queries.to_string());
    source.replace("{{HELD}}", &held.to_string())
}

/// Fills in the panel layout of a format, in words of four bytes.
fn fill(source: &str, rows: usize, format: Format) -> String {
    let (centre, scaled) = match format {
        Format::Q8_0 => (128, 0),
        Format::Q1_0 | Format::Q2_0 => (1, 0),
        Format::Nvfp4 => (0, 7),
        Format::Q4_0 => (8, 0),
        Format::Q5_0 => (16, 0),
        Format::Q4_1 | Format::Q5_1 => (0, 1),
        Format::Q4K | Format::Q5K => (0, 2),
        Format::Q6K => (32, 3),
        Format::Q3K | Format::Iq1M | Format::Iq2Xs | Format::Iq2S => (0, 3),
        Format::Iq1S | Format::Iq2Xxs | Format::Iq3Xxs | Format::Iq3S | Format::Iq4Xs => (0, 4),
        Format::Mxfp4 => (0, 5),
        Format::Q2K | Format::Tq1_0 | Format::Tq2_0 => (0, 6),
        Format::Iq4Nl | Format::F16 | Format::Bf16 | Format::F32 => (0, 0),
    };
    let values = [
        ("BITS", format.bits()),
        ("CENTRE", centre),
        ("SCALED", scaled),
        ("GROUPS", format.inputs() / 32),
        ("HEAD", format.head() / 4),
        ("GROUP", format.group() / 4),
        ("ROWS", rows),
    ];
    let words = format.codebook().unwrap_or_default().map(|value| value as u8);
    let words = words.as_chunks().0.iter().map(|&word| format!("{}u", u32::from_le_bytes(word)));
    let texts = [
        ("BRAIN", (format == Format::Bf16).to_string()),
        ("CHOSEN", format.codebook().is_some().to_string()),
        ("VALUES", words.collect::<Vec<_>>().join(", ")),
        ("FACTOR", format!("{:?}", format.factor())),
    ];
    let filled = texts.iter().fold(each_row(source, rows), |source, (name, text)| {
        source.replace(&format!("{{{{{name}}}}}"), text)
    });
    values
        .iter()
        .fold(filled, |source, (name, value)| source.replace(&format!("{{{{{name}}}}}"), &value.to_string()))
}

/// Fills in the threads of a product: runs of inputs at once, and output rows side by side.
fn in_lanes(source: &str, lanes: Lanes) -> String {
    let (runs, slot) = match lanes {
        Lanes::Sixteen => (8, "thread / LANES"),
        _ => (4, "subgroupBroadcastFirst(thread / LANES)"),
    };
    let values =
        [("LANES", lanes.count().to_string()), ("RUNS", runs.to_string()), ("SLOT", slot.to_owned())];
    values
        .iter()
        .fold(source.to_owned(), |source, (name, value)| source.replace(&format!("{{{{{name}}}}}"), value))
}

/// Repeats the text between `{{EACH}}` and `{{END}}` for every row: sums in separate variables stay
/// in registers.
fn each_row(source: &str, rows: usize) -> String {
    let mut parts = source.split("{{EACH}}");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (body, rest) = part.split_once("{{END}}").unwrap_or((part, ""));
        (0..rows).for_each(|row| written += &body.replace("{{ROW}}", &row.to_string()));
        written += rest;
    }
    written
}
