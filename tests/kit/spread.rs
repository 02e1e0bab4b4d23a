//! Median and extremes of repeated benchmark measurements.

use std::fmt;

#[derive(Debug, Default)]
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn add(&mut self, measured: f64) {
        self.0.push(measured);
    }

    pub fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// Value below which this share of the measurements lies; 0 without measurements.
    fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get((share * sorted.len() as f64) as usize).or(sorted.last()).copied().unwrap_or(0.0)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (self.at(0.0), self.at(1.0));
        write!(f, "median {:.0} of {} ({least:.0} to {most:.0})", self.median(), self.0.len())
    }
}
