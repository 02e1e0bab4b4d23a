//! Programs written down for a device, which is handed them in parts, none of which keeps it for long.

use wgpu::{Buffer, CommandEncoder, ComputePass};

use super::device::GpuDevice;

/// See the module.
pub struct Recording<'a> {
    device: &'a GpuDevice,
    encoder: CommandEncoder,
    pass: Option<ComputePass<'static>>,
    /// Bytes that are read by what was written down and is not handed over, about.
    bytes: u64,
}

impl<'a> Recording<'a> {
    pub fn new(device: &'a GpuDevice) -> Self {
        Self { device, encoder: encoder(device), pass: None, bytes: 0 }
    }

    /// Where programs are written down.
    pub fn pass(&mut self) -> &mut ComputePass<'static> {
        let encoder = &mut self.encoder;
        self.pass.get_or_insert_with(|| encoder.begin_compute_pass(&Default::default()).forget_lifetime())
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
        self.pass = None;
        self.encoder.copy_buffer_to_buffer(from, 0, to, at, bytes);
    }

    /// Hands over what is left.
    pub fn end(mut self) {
        self.hand_over();
    }

    fn hand_over(&mut self) {
        self.pass = None;
        let encoder = std::mem::replace(&mut self.encoder, encoder(self.device));
        self.device.submit(encoder, std::mem::take(&mut self.bytes));
    }
}

fn encoder(device: &GpuDevice) -> CommandEncoder {
    device.raw().create_command_encoder(&Default::default())
}
