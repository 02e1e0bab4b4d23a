//! Animated screenshots of the window, as APNG files, which browsers and GitHub play.

use std::path::Path;

use png::{BitDepth, BlendOp, ColorType, Encoder};

use crate::picture::opaque;

/// An animation that repeats forever. Frames store only the pixels that differ from the previous
/// frame.
#[derive(Default)]
pub struct Animation {
    size: (u32, u32),
    /// Last frame as RGBA.
    last: Vec<u8>,
    frames: Vec<Frame>,
}

/// Pixels of the whole picture, transparent where nothing changed.
struct Frame {
    data: Vec<u8>,
    milliseconds: u16,
}

impl Animation {
    /// Adds a PNG, shown for `milliseconds`. All frames have the size of the first.
    pub fn add(&mut self, picture: &[u8], milliseconds: u16) {
        let (size, pixels) = opaque(picture);
        assert!(self.frames.is_empty() || self.size == size, "{:?} and {size:?}", self.size);
        self.size = size;
        let mut data = pixels.clone();
        for (pixel, before) in data.chunks_exact_mut(4).zip(self.last.chunks_exact(4)) {
            if pixel == before {
                pixel.fill(0);
            }
        }
        self.last = pixels;
        match self.frames.last_mut() {
            Some(same) if data.iter().all(|&byte| byte == 0) => same.milliseconds += milliseconds,
            _ => self.frames.push(Frame { data, milliseconds }),
        }
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) {
        let (width, height) = self.size;
        let mut encoder = Encoder::new(std::fs::File::create(path).unwrap(), width, height);
        encoder.set_color(ColorType::Rgba);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        encoder.set_animated(self.frames.len() as u32, 0).unwrap();
        encoder.set_blend_op(BlendOp::Over).unwrap();
        let mut writer = encoder.write_header().unwrap();
        for Frame { data, milliseconds } in &self.frames {
            writer.set_frame_delay(*milliseconds, 1000).unwrap();
            writer.write_image_data(data).unwrap();
        }
        writer.finish().unwrap();
    }
}
