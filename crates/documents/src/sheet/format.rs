//! Values of .xlsx cells as a spreadsheet shows them: dates and percentages are stored as numbers.

use chrono::{NaiveDate, TimeDelta};

/// How a number is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    General,
    Percent,
    /// A date, a time, or both.
    Date,
}

impl Format {
    /// Returns the format with one of the numbers that every program knows.
    pub fn built_in(id: u32) -> Self {
        match id {
            9 | 10 => Self::Percent,
            14..=22 | 27..=36 | 45..=47 | 50..=58 => Self::Date,
            _ => Self::General,
        }
    }

    /// Returns the format that a code such as `yyyy-mm-dd` describes.
    pub fn of_code(code: &str) -> Self {
        let (mut quoted, mut bracketed, mut escaped) = (false, false, false);
        for letter in code.chars() {
            if std::mem::take(&mut escaped) {
                continue;
            }
            match letter {
                '"' => quoted = !quoted,
                '\\' | '_' | '*' => escaped = true,
                _ if quoted => {}
                '[' => bracketed = true,
                ']' => bracketed = false,
                _ if bracketed => {}
                'y' | 'Y' | 'd' | 'D' | 'h' | 'H' | 's' | 'S' => return Self::Date,
                '%' => return Self::Percent,
                _ => {}
            }
        }
        Self::General
    }

    /// Returns a stored value as it is shown. `base` is the number of days from 1899-12-30 to the
    /// file's day 0.
    pub fn shown(self, value: &str, base: i64) -> String {
        let Ok(number) = value.parse::<f64>() else { return value.to_owned() };
        match self {
            Self::General => rounded(number),
            Self::Percent => format!("{}%", rounded(number * 100.0)),
            Self::Date => date(number, base).unwrap_or_else(|| rounded(number)),
        }
    }
}

/// Returns a number with the 15 digits that spreadsheets have.
fn rounded(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse::<f64>().unwrap_or(number);
    if rounded.abs() >= 1e21 { format!("{rounded:e}") } else { rounded.to_string() }
}

/// Returns a date, a time below one day, or both.
fn date(number: f64, base: i64) -> Option<String> {
    if !(0.0..3_000_000.0).contains(&number) {
        return None;
    }
    let seconds = (number * 86_400.0).round() as i64;
    let start = NaiveDate::from_ymd_opt(1899, 12, 30)?.and_hms_opt(0, 0, 0)?;
    let time = start.checked_add_signed(TimeDelta::try_seconds(seconds.checked_add(base * 86_400)?)?)?;
    let format = match (seconds < 86_400, seconds % 86_400 == 0) {
        (true, _) => "%H:%M:%S",
        (false, true) => "%Y-%m-%d",
        (false, false) => "%Y-%m-%d %H:%M:%S",
    };
    Some(time.format(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_a_spreadsheet_shows_them() {
        assert_eq!(Format::General.shown("0.30000000000000004", 0), "0.3");
        assert_eq!(Format::General.shown("1234567", 0), "1234567");
        assert_eq!(Format::General.shown("fox", 0), "fox");
        assert_eq!(Format::built_in(10).shown("0.125", 0), "12.5%");
        assert_eq!(Format::of_code("yyyy\\-mm\\-dd").shown("45000", 0), "2023-03-15");
        assert_eq!(Format::built_in(14).shown("43538", 1_462), "2023-03-15");
        assert_eq!(Format::built_in(22).shown("45000.5", 0), "2023-03-15 12:00:00");
        assert_eq!(Format::built_in(20).shown("0.75", 0), "18:00:00");
        for code in ["0.00", "[Red]0", "#,##0 \"days\"", "General", "0.0\\d"] {
            assert_eq!(Format::of_code(code), Format::General, "{code}");
        }
        for absurd in ["1e300", "-1e300", "NaN", "inf"] {
            assert!(!Format::Date.shown(absurd, 1_462).is_empty());
        }
    }
}
