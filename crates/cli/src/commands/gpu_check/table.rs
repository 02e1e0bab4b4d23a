//! The report as one table for people.

use super::Report;
use super::accuracy::Accuracy;
use super::speed::{ACCEPTANCE, Speed};
use super::texts::Text;
use crate::commands::bench::numbers::number;

impl Report {
    pub fn table(&self) -> String {
        let mut lines = vec![
            self.device.clone(),
            format!("memory is read and written at {:.0} GB/s", self.memory_gb_s),
            "\ntexts of the starter        replies  tokens  as on the CPU  near ties  mistakes".to_owned(),
        ];
        lines.extend(self.texts.iter().map(text));
        lines.push("\nerror of logits       device      CPU  between  rows with the bits of one".to_owned());
        lines.extend(self.accuracy.iter().map(accuracy));
        for found in &self.speed {
            lines.extend(self.speed(found));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn speed(&self, found: &Speed) -> Vec<String> {
        let Speed { model, bytes, plain, speculative, verify_cost, draft_ms, host_ms, reckoned } = found;
        let one = plain.tokens_per_second;
        let share = one.map(|speed| speed * *bytes as f64 / 1e9 / self.memory_gb_s * 100.0);
        let mut lines = vec![
            format!("\n{model}\n              tokens/s  speedup  acceptance"),
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
        let costs = |of: fn(&crate::commands::bench::cost::RowCost) -> String| {
            verify_cost.iter().map(of).collect::<Vec<_>>().join(" ")
        };
        lines.push(format!(
            "plain decoding reads {} % of what memory gives (wished for: 60)",
            number(share, 0)
        ));
        lines.push(format!("T_v(1..17)         {} ms", costs(|cost| format!("{:.2}", cost.ms))));
        lines.push(format!(
            "T_v(n) / T_v(1)    {}  (of 8 wished for: 1.6)",
            costs(|cost| format!("{:.2}", cost.ratio))
        ));
        lines.push(format!("T_s                {} ms", number(*draft_ms, 3)));
        lines.push(format!(
            "host               {host_ms:.3} ms to hand over the layers of a token (wished for: less than 1)"
        ));
        if let Some((speedup, length)) = reckoned {
            lines.push(format!(
                "reckoned at {:.0} %   {speedup:.2} times plain with drafts of {length}",
                ACCEPTANCE * 100.0
            ));
        }
        lines
    }
}

fn text(found: &Text) -> String {
    let Text { way, replies, tokens, same, near_ties } = found;
    let mistakes = found.mistakes();
    format!("{way:26}  {replies:>7}  {tokens:>6}  {same:>13}  {near_ties:>9}  {mistakes:>8}")
}

fn accuracy(found: &Accuracy) -> String {
    let Accuracy { model, device, cpu, between, same_bits, .. } = found;
    let rows = match (same_bits.first(), same_bits.last()) {
        (Some(2), Some(17)) if same_bits.len() == 16 => "all, 2 to 17".to_owned(),
        (Some(_), _) => same_bits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        (None, _) => "none".to_owned(),
    };
    format!("{model:18}  {device:>8.1e}  {cpu:>7.1e}  {between:>7.1e}  {rows}")
}
