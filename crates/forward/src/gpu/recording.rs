//! Command encoding for a pass. Work is submitted in parts, so that none keeps the device busy for
//! long.

use wgpu::{Buffer, CommandEncoder};

use super::device::GpuDevice;
use super::dispatches::Dispatches;

/// Commands of a pass, encoded and partly submitted.
pub struct Recording<'a> {
    device: &'a GpuDevice,
    encoder: CommandEncoder,
    pass: Option<Dispatches>,
    /// Dispatches of compute passes that have ended.
    dispatches: usize,
    /// Bytes that the encoded, unsubmitted work reads, roughly.
    bytes: u64,
    /// Dispatches of the next submission.
    part: usize,
}

/// Dispatches of a pass's first submission: about two layers. The device begins with them while the
/// rest is encoded; each further submission has [`GROWTH`] times as many.
const FIRST: usize = 16;

/// Growth of submissions. A model of 32 layers takes three.
const GROWTH: usize = 4;

impl<'a> Recording<'a> {
    pub fn new(device: &'a GpuDevice) -> Self {
        Self { device, encoder: encoder(device), pass: None, dispatches: 0, bytes: 0, part: FIRST }
    }

    /// Compute pass for further dispatches.
    pub fn pass(&mut self) -> &mut Dispatches {
        let (device, encoder) = (self.device, &mut self.encoder);
        self.pass.get_or_insert_with(|| Dispatches::begin(device, encoder))
    }

    /// Announces work that reads about `bytes` bytes. Submits earlier work if it is enough for a
    /// submission, or if both together would take too long.
    pub fn next(&mut self, bytes: u64) {
        let encoded = self.pass.as_ref().map_or(0, |pass| pass.count);
        if encoded >= self.part {
            self.part *= GROWTH;
            self.submit();
        } else if self.bytes > 0 && self.bytes + bytes > self.device.at_once() {
            self.submit();
        }
        self.bytes += bytes;
    }

    /// Copies `bytes` bytes from the beginning of a buffer to an offset in another.
    pub fn copy(&mut self, from: &Buffer, to: &Buffer, at: u64, bytes: u64) {
        self.end_pass();
        self.encoder.copy_buffer_to_buffer(from, 0, to, at, bytes);
    }

    /// Submits the rest and returns the number of dispatches.
    pub fn end(mut self) -> usize {
        self.submit();
        self.dispatches
    }

    fn end_pass(&mut self) {
        self.dispatches += self.pass.take().map_or(0, |pass| pass.count);
    }

    fn submit(&mut self) {
        self.end_pass();
        let encoder = std::mem::replace(&mut self.encoder, encoder(self.device));
        self.device.submit(encoder, std::mem::take(&mut self.bytes));
    }
}

fn encoder(device: &GpuDevice) -> CommandEncoder {
    device.raw().create_command_encoder(&Default::default())
}
