//! Timestamps after the dispatches of compute passes.

use std::sync::{Mutex, PoisonError};

use wgpu::{ComputePass, Features, QuerySet, QuerySetDescriptor, QueryType};

use super::kernels::Kernel;

/// Device features that timestamps need.
pub const FEATURES: Features = Features::TIMESTAMP_QUERY.union(Features::TIMESTAMP_QUERY_INSIDE_PASSES);

/// Most timestamps; later dispatches have none.
const MOST: u32 = wgpu::QUERY_SET_MAX_QUERIES;

/// A dispatch of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Dispatch {
    pub kernel: Kernel,
    /// Workgroups in x and y.
    pub groups: [usize; 2],
}

/// Timestamps that passes write while a profile runs.
#[derive(Debug)]
pub struct Timestamps {
    pub queries: QuerySet,
    /// Dispatch that ended at each timestamp; `None` at the beginning of a compute pass.
    ended: Mutex<Vec<Option<Dispatch>>>,
}

impl Timestamps {
    /// Creates the query set; `None` if the device has no timestamps.
    pub fn new(device: &wgpu::Device) -> Option<Self> {
        let descriptor = QuerySetDescriptor { label: None, ty: QueryType::Timestamp, count: MOST };
        device
            .features()
            .contains(FEATURES)
            .then(|| Self { queries: device.create_query_set(&descriptor), ended: Mutex::default() })
    }

    /// Writes a timestamp behind the dispatches encoded so far.
    pub fn mark(&self, pass: &mut ComputePass<'_>, ended: Option<Dispatch>) {
        let mut all = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST as usize {
            pass.write_timestamp(&self.queries, all.len() as u32);
            all.push(ended);
        }
    }

    /// Dispatches in the order of their timestamps.
    pub fn ended(&self) -> Vec<Option<Dispatch>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
