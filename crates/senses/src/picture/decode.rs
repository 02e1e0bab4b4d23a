//! Decoding of a picture file within its limits, in the process that calls it.

use std::io::Cursor;

use foretoken_model::Picture;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, RgbaImage};

use crate::resample::{Filter, resized};

/// Pixels per side of a file, and of all.
const MAX_SIDE: u32 = 16_384;
const MAX_PIXELS: u64 = 40_000_000;

/// Pixels of a decoded picture, at most; larger ones are reduced. No model sees more.
const KEPT_PIXELS: usize = 12_000_000;

/// Bytes that a decoder may allocate.
const MAX_MEMORY: u64 = 400_000_000;

/// Formats that are read.
const FORMATS: [ImageFormat; 5] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif, ImageFormat::Bmp];

/// Decodes a file as 8-bit RGB: upright, and on white where it is transparent.
///
/// # Errors
/// The reason, as part of a sentence.
pub(super) fn decoded(bytes: &[u8]) -> Result<Picture, String> {
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|error| error.to_string())?;
    if !reader.format().is_some_and(|format| FORMATS.contains(&format)) {
        return Err("it is no PNG, JPEG, WebP, GIF or BMP file".to_owned());
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_MEMORY);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| sentence(&error))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!("it has {width} x {height} pixels, and at most 40 megapixels are read"));
    }
    let orientation = decoder.orientation().map_err(|error| sentence(&error))?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| sentence(&error))?;
    image.apply_orientation(orientation);
    reduced(&rgb(image)?)
}

/// Pixels in 8-bit RGB, on white.
fn rgb(image: DynamicImage) -> Result<Picture, String> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let pixels = match image.has_alpha() {
        false => image.into_rgb8().into_raw(),
        true => on_white(&image.into_rgba8()),
    };
    Picture::new(width, height, pixels).map_err(|error| error.to_string())
}

fn on_white(image: &RgbaImage) -> Vec<u8> {
    let mixed = |colour: u8, alpha: u8| {
        let (colour, alpha) = (u32::from(colour), u32::from(alpha));
        ((colour * alpha + 255 * (255 - alpha) + 127) / 255) as u8
    };
    image.pixels().flat_map(|pixel| [0, 1, 2].map(|channel| mixed(pixel[channel], pixel[3]))).collect()
}

/// The picture with at most [`KEPT_PIXELS`].
fn reduced(picture: &Picture) -> Result<Picture, String> {
    let (width, height) = (picture.width(), picture.height());
    if width * height <= KEPT_PIXELS {
        return Ok(picture.clone());
    }
    let factor = (KEPT_PIXELS as f64 / (width * height) as f64).sqrt();
    let side = |side: usize| ((side as f64 * factor) as usize).max(1);
    resized(picture, side(width), side(height), Filter::Lanczos3).map_err(|error| error.to_string())
}

/// Reason of a decoder, as part of a sentence.
fn sentence(error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => "it has more pixels than are read".to_owned(),
        ImageError::Unsupported(_) => "its kind of compression or colour is not read".to_owned(),
        _ => "it is damaged or cut short".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use image::{ImageBuffer, Luma, Rgba};

    use super::*;

    fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// Two pixels of red over two of blue.
    fn flag() -> DynamicImage {
        let colour = |_, y| if y == 0 { Rgba([255, 0, 0, 255]) } else { Rgba([0, 0, 255, 255]) };
        DynamicImage::ImageRgba8(ImageBuffer::from_fn(2, 2, colour))
    }

    const FLAG: [u8; 12] = [255, 0, 0, 255, 0, 0, 0, 0, 255, 0, 0, 255];

    #[test]
    fn every_format_is_known_by_its_content() {
        for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif, ImageFormat::Bmp] {
            let picture = decoded(&encoded(&flag(), format)).unwrap();
            assert_eq!(
                (picture.width(), picture.height(), picture.pixels()),
                (2, 2, &FLAG[..]),
                "{format:?}"
            );
        }
        let grey = DynamicImage::ImageLuma8(ImageBuffer::from_pixel(8, 8, Luma([90])));
        let picture = decoded(&encoded(&grey, ImageFormat::Jpeg)).unwrap();
        assert!(picture.pixels().iter().all(|&byte| byte.abs_diff(90) <= 1));
    }

    #[test]
    fn transparency_lies_on_white_and_sixteen_bits_are_read() {
        let half = DynamicImage::ImageRgba8(ImageBuffer::from_pixel(1, 1, Rgba([0, 0, 0, 128])));
        assert_eq!(decoded(&encoded(&half, ImageFormat::Png)).unwrap().pixels(), [127; 3]);
        let deep = DynamicImage::ImageLuma16(ImageBuffer::from_pixel(1, 1, Luma([0x8000u16])));
        assert_eq!(decoded(&encoded(&deep, ImageFormat::Png)).unwrap().pixels(), [128; 3]);
    }

    #[test]
    fn a_cut_or_changed_file_is_a_sentence_and_never_a_panic() {
        for format in FORMATS.into_iter().filter(|format| *format != ImageFormat::Jpeg) {
            let whole = encoded(&flag(), format);
            for end in 0..whole.len() {
                if let Err(reason) = decoded(&whole[..end]) {
                    assert!(!reason.is_empty() && !reason.ends_with('.'), "{reason}");
                }
                let mut changed = whole.clone();
                changed[end] ^= 0x55;
                let _ = decoded(&changed);
            }
        }
    }

    /// PNG file that claims this size and has hardly any pixels.
    fn claims(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let header = chunk(b"IHDR", &[&size[..], &[8, 2, 0, 0, 0]].concat());
        [b"\x89PNG\r\n\x1a\n".to_vec(), header, chunk(b"IDAT", &[0x78, 0x9c, 3, 0])].concat()
    }

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let named = [&name[..], data].concat();
        [&(data.len() as u32).to_be_bytes()[..], &named, &crc32(&named).to_be_bytes()].concat()
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0u32, |sum, &byte| {
            (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg()))
        })
    }

    #[test]
    fn billions_of_pixels_are_refused_by_the_header() {
        for (width, height) in [(60_000, 60_000), (100_000, 100_000), (16_000, 16_000)] {
            let reason = decoded(&claims(width, height)).unwrap_err();
            assert!(reason.contains("pixels"), "{reason}");
        }
    }

    #[test]
    fn large_pictures_are_reduced_and_other_files_are_named() {
        let large = DynamicImage::ImageLuma8(ImageBuffer::from_pixel(5000, 4000, Luma([7])));
        let picture = decoded(&encoded(&large, ImageFormat::Png)).unwrap();
        assert!(picture.width() * picture.height() <= KEPT_PIXELS && picture.width() > 3800);
        for other in [&b"%PDF-1.4"[..], b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"II*\0\x08\0\0\0"]
        {
            assert!(decoded(other).unwrap_err().contains("PNG, JPEG"));
        }
    }
}
