//! A round as coloured text for a terminal: accepted, bonus and recovered tokens, and rejected ones
//! struck out before their replacement. Discarded tokens, which were never judged, are not shown.

use std::fmt::Write;

use anstyle::{AnsiColor, Color, Style};
use foretoken_engine::trace::{ExtraKind, Outcome, Round};

use crate::output::harmless;

const fn coloured(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

const ACCEPTED: Style = coloured(AnsiColor::Green).underline();
const BONUS: Style = coloured(AnsiColor::Blue);
const RECOVERED: Style = coloured(AnsiColor::Yellow);
const REJECTED: Style = coloured(AnsiColor::Red).strikethrough();

/// Explains the colours, in these colours.
pub fn legend() -> String {
    let words = [(ACCEPTED, "accepted"), (BONUS, "bonus"), (RECOVERED, "recovered"), (REJECTED, "rejected")];
    words.map(|(style, word)| format!("{style}{word}{style:#}")).join(" ")
}

/// The round's tokens in text order.
pub fn paint(round: &Round) -> String {
    let mut painted = String::new();
    for drafted in &round.drafted {
        match drafted.outcome {
            Outcome::Accepted => put(&mut painted, ACCEPTED, &drafted.text),
            Outcome::Rejected => put(&mut painted, REJECTED, &drafted.text.replace('\n', "⏎")),
            Outcome::Discarded => {}
        }
    }
    if let Some(extra) = &round.extra {
        let style = match extra.kind {
            ExtraKind::Bonus => BONUS,
            ExtraKind::Recovered => RECOVERED,
            ExtraKind::Plain => Style::new(),
        };
        put(&mut painted, style, &extra.text);
    }
    painted
}

// A line break between the codes would colour the rest of the line on some terminals.
fn put(painted: &mut String, style: Style, text: &str) {
    for (index, line) in harmless(text).split('\n').enumerate() {
        if index > 0 {
            painted.push('\n');
        }
        if !line.is_empty() {
            let _ = write!(painted, "{style}{line}{style:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use foretoken_engine::drafter_kind::DrafterKind;
    use foretoken_engine::trace::{Drafted, Extra, LengthReason, Times};

    use super::*;

    fn drafted(text: &str, outcome: Outcome) -> Drafted {
        Drafted {
            token: 0,
            text: text.to_owned(),
            parent: None,
            draft_probability: 1.0,
            target_probability: None,
            acceptance: None,
            outcome,
            drafter: DrafterKind::Model,
            survival: None,
        }
    }

    fn round(drafted: Vec<Drafted>, extra: Option<Extra>) -> Round {
        Round {
            index: 0,
            position: 0,
            draft_length: drafted.len() as u32,
            drafted,
            extra,
            reason: LengthReason::Fixed,
            threshold: None,
            expected: None,
            row_price: None,
            staged: false,
            decision: None,
            experts: None,
            times: Times::default(),
            at_ms: 0.0,
            logprobs: Vec::new(),
        }
    }

    #[test]
    fn a_rejected_token_is_struck_out_before_its_replacement_and_discarded_ones_are_not_shown() {
        let outcomes = [Outcome::Accepted, Outcome::Rejected, Outcome::Discarded];
        let guesses = ["a\nb", "c\n", "d"].into_iter().zip(outcomes);
        let guesses = guesses.map(|(text, outcome)| drafted(text, outcome)).collect();
        let extra = Extra { token: 0, text: "e".to_owned(), kind: ExtraKind::Recovered };
        let painted = paint(&round(guesses, Some(extra)));
        let expected = "\u{1b}[4m\u{1b}[32ma\u{1b}[0m\n\u{1b}[4m\u{1b}[32mb\u{1b}[0m\
                        \u{1b}[9m\u{1b}[31mc⏎\u{1b}[0m\u{1b}[33me\u{1b}[0m";
        assert_eq!(painted, expected);
    }

    #[test]
    fn a_token_of_a_round_without_drafts_is_uncoloured() {
        let extra = Extra { token: 0, text: "\u{1b}x".to_owned(), kind: ExtraKind::Plain };
        assert_eq!(paint(&round(vec![], Some(extra))), "\u{FFFD}x");
    }
}
