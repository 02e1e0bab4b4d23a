//! Screenshots of the window, compared with reference pictures.

use std::path::{Path, PathBuf};

/// Channel differences below this are ignored: systems smooth fonts and lines a little differently.
const SAME: u8 = 48;

/// A decoded picture: RGB or RGBA, row by row.
#[derive(Debug, PartialEq)]
struct Pixels {
    width: u32,
    height: u32,
    channels: usize,
    data: Vec<u8>,
}

/// Share of the pixels in which `picture`, a PNG, differs from the reference of that name; 1 if
/// sizes differ. With FORETOKEN_KEEP_PICTURES set, the picture becomes the reference.
pub fn difference(name: &str, picture: &[u8]) -> f64 {
    let path = kept(name);
    if are_kept() {
        std::fs::write(&path, picture).unwrap();
    }
    let expected = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    share(&decoded(&expected), &decoded(picture))
}

/// Rectangle in pixels.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// A region of a PNG as a PNG.
pub fn part(picture: &[u8], Region { left, top, width, height }: Region) -> Vec<u8> {
    let whole = decoded(picture);
    let [left, top, width, height] = [left, top, width, height].map(|length| length.round() as usize);
    let row = |y: usize| {
        let start = (y * whole.width as usize + left) * whole.channels;
        &whole.data[start..start + width * whole.channels]
    };
    let data: Vec<u8> = (top..top + height).flat_map(|y| row(y).iter().copied()).collect();
    let mut part = Vec::new();
    let mut encoder = png::Encoder::new(&mut part, width as u32, height as u32);
    encoder.set_color(if whole.channels == 4 { png::ColorType::Rgba } else { png::ColorType::Rgb });
    encoder.write_header().unwrap().write_image_data(&data).unwrap();
    part
}

/// Returns a PNG's width and height, and its pixels as RGBA with full opacity.
pub fn opaque(picture: &[u8]) -> ((u32, u32), Vec<u8>) {
    let Pixels { width, height, channels, data } = decoded(picture);
    let pixels = data.chunks(channels).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
    ((width, height), pixels)
}

/// Returns whether this run replaces the reference pictures: `make pictures`.
pub fn are_kept() -> bool {
    std::env::var_os("FORETOKEN_KEEP_PICTURES").is_some()
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pictures").join(format!("{name}.png"))
}

fn share(left: &Pixels, right: &Pixels) -> f64 {
    if (left.width, left.height, left.channels) != (right.width, right.height, right.channels) {
        return 1.0;
    }
    let pixels = left.data.chunks(left.channels).zip(right.data.chunks(right.channels));
    let differ = |(left, right): &(&[u8], &[u8])| left.iter().zip(*right).any(|(a, b)| a.abs_diff(*b) > SAME);
    pixels.filter(differ).count() as f64 / f64::from(left.width * left.height)
}

fn decoded(png: &[u8]) -> Pixels {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    data.truncate(info.buffer_size());
    Pixels { width: info.width, height: info.height, channels: info.color_type.samples(), data }
}
