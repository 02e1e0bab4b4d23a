//! The report as one table for people.

use foretoken_forward::gpu::Comparison;

use super::Report;
use super::accuracy::Accuracy;
use super::speed::{ACCEPTANCE, Speed};
use super::texts::Text;
use crate::commands::bench::cost::RowCost;
use crate::commands::bench::numbers::number;

impl Report {
    pub fn table(&self) -> String {
        let memory = match self.software {
            true => "software renderer: its speed is not measured".to_owned(),
            false => format!("memory is read and written at {:.0} GB/s", self.memory_gb_s),
        };
        let mut lines = vec![self.device.clone(), memory];
        lines.extend(self.operations.iter().map(operation));
        lines.push(
            "\ntexts of the starter        replies  tokens  as on the CPU  near ties  mistakes".to_owned(),
        );
        lines.extend(self.texts.iter().map(text));
        lines.push(
            "\nerror of logits       device      CPU  difference  bit-identical  pass sizes with the bits of one row"
                .to_owned(),
        );
        lines.extend(self.accuracy.iter().map(accuracy));
        for found in &self.speed {
            lines.push(format!("\n{}", found.model));
            lines.extend(pass_work(found));
            if !self.software {
                lines.extend(self.speed(found));
            }
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Figures that need the times of real hardware.
    fn speed(&self, found: &Speed) -> Vec<String> {
        let Speed { bytes, plain, speculative, draft_ms, estimate, .. } = found;
        let one = plain.tokens_per_second;
        let read = found.pass_work.as_ref().map_or(*bytes, |pass_work| pass_work.read_bytes);
        let share = one.map(|speed| speed * read as f64 / 1e9 / self.memory_gb_s * 100.0);
        let mut lines = vec![
            costs("T_v(1..17)     ", found, |cost| format!("{:.2}", cost.ms), "ms"),
            costs("T_v(n) / T_v(1)", found, |cost| format!("{:.2}", cost.ratio), "(target for 8: 1.3)"),
            format!("T_s                {} ms", number(*draft_ms, 3)),
            format!("prompt             {:.0} tokens/s", found.prompt_tokens_per_second),
            format!(
                "bandwidth          plain decoding reads {} % of the memory bandwidth (target: 60)",
                number(share, 0)
            ),
            "              tokens/s  speedup  acceptance".to_owned(),
            format!("plain       {:>10}", number(one, 1)),
        ];
        for drafted in speculative {
            let speed = drafted.speed.tokens_per_second;
            let speedup = speed.zip(one).map(|(speed, one)| speed / one);
            let rate =
                drafted.speed.acceptance_rate.map_or("-".to_owned(), |rate| format!("{:.0} %", rate * 100.0));
            lines.push(format!(
                "draft {:6}{:>10}  {:>7}  {rate:>10}",
                drafted.name,
                number(speed, 1),
                number(speedup, 2)
            ));
        }
        if let Some((speedup, length)) = estimate {
            lines.push(format!(
                "estimate           {speedup:.2} times plain decoding, at {:.0} % acceptance and draft length {length}",
                ACCEPTANCE * 100.0
            ));
        }
        lines
    }
}

/// Figures that do not depend on the device's speed.
fn pass_work(found: &Speed) -> Vec<String> {
    let host = format!(
        "host               {:.0} µs to submit the layers of a pass (target: below 500)",
        found.host_ms * 1e3
    );
    let of_pass = found.pass_work.as_ref().map(|pass_work| {
        let megabytes = pass_work.read_bytes as f64 / 1e6;
        format!(
            "a pass             {} dispatches, {:.1} per layer; reads {megabytes:.1} MB of weights",
            pass_work.dispatches, pass_work.per_layer
        )
    });
    of_pass.into_iter().chain([host]).collect()
}

fn costs(name: &str, found: &Speed, of: fn(&RowCost) -> String, note: &str) -> String {
    let costs: Vec<String> = found.verify_cost.iter().map(of).collect();
    format!("{name}    {} {note}", costs.join(" "))
}

fn operation(found: &Comparison) -> String {
    let Comparison { operation: name, numbers, different, first, .. } = found;
    match first {
        None => format!("{name}: the CPU's bits in all {numbers} results"),
        Some((at, ours, theirs)) => {
            format!(
                "{name}: {different} of {numbers} results differ, first {ours:?} at {at} instead of {theirs:?}"
            )
        }
    }
}

fn text(found: &Text) -> String {
    let Text { way, replies, tokens, same, near_ties } = found;
    let mistakes = found.mistakes();
    format!("{way:26}  {replies:>7}  {tokens:>6}  {same:>13}  {near_ties:>9}  {mistakes:>8}")
}

fn accuracy(found: &Accuracy) -> String {
    let Accuracy { model, device, cpu, between, cpu_bits, same_bits, .. } = found;
    let cpu_bits = if *cpu_bits { "yes" } else { "no" };
    let rows = match (same_bits.first(), same_bits.last()) {
        (Some(2), Some(17)) if same_bits.len() == 16 => "all, 2 to 17".to_owned(),
        (Some(_), _) => same_bits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        (None, _) => "none".to_owned(),
    };
    format!("{model:18}  {device:>8.1e}  {cpu:>7.1e}  {between:>10.1e}  {cpu_bits:>13}  {rows}")
}
