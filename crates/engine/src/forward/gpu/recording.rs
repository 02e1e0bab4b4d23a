//! Programs written down for a device, which is handed them in parts, none of which keeps it for long.

use wgpu::{Buffer, CommandEncoder};

use super::device::GpuDevice;
use super::dispatches::Dispatches;

/// See the module.
pub struct Recording<'a> {
    device: &'a GpuDevice,
    encoder: CommandEncoder,
    pass: Option<Dispatches>,
    /// Programs of passes that are over.
    dispatches: usize,
    /// Bytes that are read by what was written down and is not handed over, about.
    bytes: u64,
}

impl<'a> Recording<'a> {
    pub fn new(device: &'a GpuDevice) -> Self {
        Self { device, encoder: encoder(device), pass: None, dispatches: 0, bytes: 0 }
    }

    /// Where programs are written down.
    pub fn pass(&mut self) -> &mut Dispatches {
        let encoder = &mut self.encoder;
        self.pass.get_or_insert_with(|| Dispatches::begin(encoder))
    }

    /// What is written down next reads about so many bytes, and may be handed over by itself.
    pub fn next(&mut self, bytes: u64) {
        if self.bytes > 0 && self.bytes + bytes > self.device.at_once() {
            self.hand_over();
        }
        self.bytes += bytes;
    }

    /// Copies so many bytes from the beginning of a buffer to a place in another.
    pub fn copy(&mut self, from: &Buffer, (to, at): (&Buffer, u64), bytes: u64) {
        self.end_pass();
        self.encoder.copy_buffer_to_buffer(from, 0, to, at, bytes);
    }

    /// Hands over what is left, and says how many programs there were.
    pub fn end(mut self) -> usize {
        self.hand_over();
        self.dispatches
    }

    fn end_pass(&mut self) {
        self.dispatches += self.pass.take().map_or(0, |pass| pass.count);
    }

    fn hand_over(&mut self) {
        self.end_pass();
        let encoder = std::mem::replace(&mut self.encoder, encoder(self.device));
        self.device.submit(encoder, std::mem::take(&mut self.bytes));
    }
}

fn encoder(device: &GpuDevice) -> CommandEncoder {
    device.raw().create_command_encoder(&Default::default())
}
