//! Cost of a pass over several rows relative to one row: the first estimate for a model that was
//! never run, from measurements of others.

use serde::{Deserialize, Serialize};

use super::costs::{Costs, MAX_ROWS};

/// Version of the stored form, raised when it changes its meaning; other versions are ignored.
const VERSION: u32 = 1;

/// Numbers of rows that must have been measured before the ratios of a model are stored.
const MEASURED: usize = 4;

/// Largest believable ratio over the number of rows: passes over few rows of experts read more
/// weights for each of them.
const LARGEST: f32 = 2.0;

/// T_v(M) / T_v(1) for M of 1 to [`MAX_ROWS`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct RowRatios {
    version: u32,
    ratios: [f32; MAX_ROWS],
}

#[derive(Deserialize)]
struct Stored {
    version: u32,
    ratios: [f32; MAX_ROWS],
}

impl TryFrom<Stored> for RowRatios {
    type Error = &'static str;

    /// # Errors
    /// The reason why the stored ratios cannot have been measured.
    fn try_from(Stored { version, ratios }: Stored) -> Result<Self, Self::Error> {
        if version != VERSION {
            return Err("another version of row ratios");
        }
        let rises = ratios.is_sorted() && ratios[0] == 1.0;
        let possible = |(rows, &ratio): (usize, &f32)| ratio.is_finite() && ratio <= LARGEST * rows as f32;
        if !rises || !(1..).zip(&ratios).all(possible) {
            return Err("impossible row ratios");
        }
        Ok(Self { version, ratios })
    }
}

/// Device and model by which row ratios are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostClass {
    /// Label of the device, with its threads and instruction set.
    pub device: String,
    pub on_gpu: bool,
    /// Instruction set of the CPU in use: "AVX-512".
    pub instructions: String,
    pub threads: usize,
    /// Format of most weights: "Q4_K_M".
    pub format: String,
    /// Bytes of weights that a pass over one row reads.
    pub bytes: u64,
    /// True if feed-forward networks have experts.
    pub has_experts: bool,
    /// True if a layer is recurrent.
    pub is_recurrent: bool,
}

/// Sizes of weights in bytes from which more products are hidden behind reading.
const MEDIUM: u64 = 200_000_000;
const LARGE: u64 = 700_000_000;

/// Measured ratios: of 2, 4, 8 and 17 rows.
type Points = [f32; 4];
const ROWS: [usize; 4] = [2, 4, 8, 17];

const GPU: Points = [1.05, 1.12, 1.31, 1.7];
const EXPERTS: Points = [1.25, 1.5, 2.3, 4.5];
const RECURRENT: Points = [1.15, 1.3, 1.65, 3.0];
const ONE_THREAD: Points = [1.03, 1.18, 1.69, 3.4];
/// By [`MEDIUM`] and [`LARGE`]; weights of small models fit into the processor's cache.
const AVX_512: [Points; 3] = [[1.2, 1.5, 2.2, 4.0], [1.05, 1.2, 1.41, 2.5], [1.05, 1.06, 1.28, 2.3]];
/// Without VNNI, or with an instruction set that was not measured.
const OTHERS: Points = [1.2, 1.6, 2.5, 5.0];

impl CostClass {
    /// Key of stored ratios: sizes within a factor of four share theirs.
    pub fn key(&self) -> String {
        let size = self.bytes.checked_ilog2().unwrap_or(0) / 2;
        let kind = match (self.has_experts, self.is_recurrent) {
            (true, _) => "experts",
            (false, true) => "recurrent",
            (false, false) => "dense",
        };
        format!("{}, {}, {kind}, size {size}", self.device, self.format)
    }

    fn points(&self) -> Points {
        let size = usize::from(self.bytes >= MEDIUM) + usize::from(self.bytes >= LARGE);
        match self {
            Self { on_gpu: true, .. } => GPU,
            Self { has_experts: true, .. } => EXPERTS,
            Self { is_recurrent: true, .. } => RECURRENT,
            Self { threads: 1, instructions, .. } if instructions == "AVX-512" => ONE_THREAD,
            Self { instructions, .. } if instructions == "AVX-512" => AVX_512[size],
            _ => OTHERS,
        }
    }
}

impl RowRatios {
    /// Ratios measured with models like this one when the program was built.
    pub fn shipped(class: &CostClass) -> Self {
        let points = class.points();
        let known = [(1, 1.0)].into_iter().chain(ROWS.into_iter().zip(points.map(f64::from)));
        let costs = Costs::measured(&known.collect::<Vec<_>>());
        Self { version: VERSION, ratios: std::array::from_fn(|index| costs.get(index + 1) as f32) }
    }

    /// Ratios of measured costs; `None` if too few numbers of rows were measured.
    pub(super) fn of(costs: &Costs) -> Option<Self> {
        let measured = (1..=MAX_ROWS).filter(|&rows| costs.is_measured(rows)).count();
        if measured < MEASURED || !costs.is_measured(1) {
            return None;
        }
        let mut ratios = [1.0; MAX_ROWS];
        let mut least = f32::INFINITY;
        // More rows cost no less, so a smaller ratio of more rows is a limit.
        for (index, ratio) in ratios.iter_mut().enumerate().skip(1).rev() {
            least = least.min((costs.get(index + 1) / costs.get(1)) as f32);
            *ratio = least.clamp(1.0, LARGEST * (index + 1) as f32);
        }
        Self::try_from(Stored { version: VERSION, ratios }).ok()
    }

    pub fn get(&self, rows: usize) -> f64 {
        f64::from(self.ratios[rows.clamp(1, MAX_ROWS) - 1])
    }
}

impl Default for RowRatios {
    fn default() -> Self {
        Self::shipped(&CostClass::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<RowRatios> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn shipped_ratios_are_possible_for_every_class() {
        let instructions = ["AVX-512", "AVX2", "NEON", ""];
        for (number, instructions) in (0..8).flat_map(|number| instructions.map(|name| (number, name))) {
            for bytes in [0, 97_000_000, 400_000_000, 5_000_000_000, u64::MAX] {
                let class = CostClass {
                    on_gpu: number == 7,
                    has_experts: number & 1 > 0,
                    is_recurrent: number & 2 > 0,
                    threads: 1 + (number & 4),
                    instructions: instructions.to_owned(),
                    bytes,
                    ..CostClass::default()
                };
                let ratios = RowRatios::shipped(&class);
                assert_eq!(read(&serde_json::to_string(&ratios).unwrap()), Some(ratios.clone()), "{class:?}");
                assert!(ratios.get(2) > 1.0 && ratios.get(17) < 6.0, "{class:?}: {ratios:?}");
            }
        }
    }

    #[test]
    fn impossible_stored_ratios_are_rejected() {
        let sound = serde_json::to_value(RowRatios::default()).unwrap();
        let spoiled = |spoil: &dyn Fn(&mut serde_json::Value)| {
            let mut stored = sound.clone();
            spoil(&mut stored);
            read(&stored.to_string())
        };
        assert!(spoiled(&|_| ()).is_some());
        assert_eq!(spoiled(&|stored| stored["version"] = 2.into()), None);
        assert_eq!(spoiled(&|stored| stored["ratios"][0] = 1.5.into()), None, "one row costs one row");
        assert_eq!(spoiled(&|stored| stored["ratios"][3] = 0.9.into()), None, "more rows cost no less");
        assert_eq!(spoiled(&|stored| stored["ratios"][16] = 1e9.into()), None);
        assert_eq!(spoiled(&|stored| stored["ratios"][16] = serde_json::Value::Null), None);
        assert_eq!(spoiled(&|stored| stored["ratios"] = vec![1.0; 18].into()), None, "too many");
        assert_eq!(spoiled(&|stored| stored["ratios"] = vec![1.0; 16].into()), None, "too few");
    }

    #[test]
    fn ratios_are_taken_from_costs_once_enough_rows_were_measured() {
        let mut costs = Costs::assumed(|rows| rows as f64);
        for (number, rows) in (1..).zip([1, 2, 5, 9]) {
            assert_eq!(RowRatios::of(&costs), None, "{number}");
            costs.learn(rows, 10.0 + rows as f64);
        }
        let ratios = RowRatios::of(&costs).unwrap();
        assert!((ratios.get(5) - 15.0 / 11.0).abs() < 0.01, "{ratios:?}");
        assert!((ratios.get(9) - 19.0 / 11.0).abs() < 0.01, "{ratios:?}");
    }

    #[test]
    fn models_of_a_size_share_their_key_and_devices_do_not() {
        let class =
            |device: &str, bytes| CostClass { device: device.to_owned(), bytes, ..CostClass::default() };
        assert_eq!(class("CPU, 2 threads", 300_000_000).key(), class("CPU, 2 threads", 400_000_000).key());
        assert_ne!(class("CPU, 2 threads", 300_000_000).key(), class("CPU, 4 threads", 300_000_000).key());
        assert_ne!(class("CPU, 2 threads", 90_000_000).key(), class("CPU, 2 threads", 980_000_000).key());
    }
}
