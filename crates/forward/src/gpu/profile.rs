//! Times of kernels on the device, by timestamps after every dispatch.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretoken_model::error::{Error, Result};
use wgpu::BufferUsages;

use super::device::GpuDevice;
use super::timestamps::{Dispatch, Timestamps};

/// Time that a kernel took with one number of workgroups.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTime {
    /// Kernel with its parameters, such as `Product(Q4K, 8)`.
    pub kernel: String,
    /// Workgroups in x and y.
    pub groups: [usize; 2],
    pub dispatches: usize,
    /// Microseconds of all dispatches.
    pub micros: f64,
}

/// Runs `work`, and returns the time of each kernel on the device, those that took longest first;
/// none if the device has no timestamps.
///
/// # Errors
/// Those of `work`, and `Error::Compute` when the device failed.
pub fn profiled<E: From<Error>>(
    device: &GpuDevice,
    work: impl FnOnce() -> std::result::Result<(), E>,
) -> std::result::Result<Vec<KernelTime>, E> {
    let timestamps = Timestamps::new(device.raw()).map(Arc::new);
    device.write_timestamps(timestamps.clone());
    let done = work();
    device.write_timestamps(None);
    done?;
    device.wait()?;
    Ok(timestamps.map(|timestamps| read(device, &timestamps)).transpose()?.unwrap_or_default())
}

fn read(device: &GpuDevice, timestamps: &Timestamps) -> Result<Vec<KernelTime>> {
    let ended = timestamps.ended();
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let size = 8 * ended.len() as u64;
    let usage = BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC;
    let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
    let resolved = device.guarded(|| device.raw().create_buffer(&descriptor))?;
    let readable = device.readable(size as usize)?;
    let mut encoder = device.raw().create_command_encoder(&Default::default());
    encoder.resolve_query_set(&timestamps.queries, 0..ended.len() as u32, &resolved, 0);
    encoder.copy_buffer_to_buffer(&resolved, 0, &readable, 0, size);
    device.submit(encoder, 0);
    let words = device.fetch_words(&readable, 2 * ended.len())?;
    let ticks = words.as_chunks().0.iter().map(|&[low, high]| u64::from(high) << 32 | u64::from(low));
    let period = f64::from(device.queue().get_timestamp_period()) / 1e3;
    Ok(sums(&ended, &ticks.collect::<Vec<_>>(), period))
}

/// Sums of the times between timestamps by dispatch; `period` is microseconds per tick.
fn sums(ended: &[Option<Dispatch>], ticks: &[u64], period: f64) -> Vec<KernelTime> {
    let mut times = BTreeMap::<(String, [usize; 2]), (usize, f64)>::new();
    for (at, dispatch) in ended.iter().enumerate() {
        let (Some(Dispatch { kernel, groups }), Some(before)) = (dispatch, at.checked_sub(1)) else {
            continue;
        };
        let (dispatches, micros) = times.entry((format!("{kernel:?}"), *groups)).or_default();
        *dispatches += 1;
        *micros += ticks[at].saturating_sub(ticks[before]) as f64 * period;
    }
    let time = |((kernel, groups), (dispatches, micros))| KernelTime { kernel, groups, dispatches, micros };
    let mut times: Vec<_> = times.into_iter().map(time).collect();
    times.sort_by(|one, two| two.micros.total_cmp(&one.micros));
    times
}

#[cfg(test)]
mod tests {
    use super::super::kernels::Kernel;
    use super::*;

    #[test]
    fn times_between_timestamps_are_summed_by_kernel_and_workgroups() {
        let norm = Some(Dispatch { kernel: Kernel::Norm, groups: [1, 1] });
        let rope = Some(Dispatch { kernel: Kernel::Rope, groups: [3, 1] });
        let found = sums(&[None, norm, rope, None, norm], &[100, 110, 150, 1_000, 1_007], 0.5);
        let kernels: Vec<_> =
            found.iter().map(|time| (time.kernel.as_str(), time.dispatches, time.micros)).collect();
        assert_eq!(kernels, [("Rope", 1, 20.0), ("Norm", 2, 8.5)]);
    }
}
