//! Encoding of a decoded picture for another program: without metadata, and not larger than models
//! see.

use foretoken_model::Picture;
use foretoken_model::error::{Error, Result};
use image::ExtendedColorType::Rgb8;
use image::codecs::jpeg::JpegEncoder;

use crate::resample::{Filter, resized};

/// Pixels of the longest side.
const SIDE: usize = 2048;

const QUALITY: u8 = 90;

/// Returns a picture as a JPEG file of at most 2,048 pixels a side.
///
/// # Errors
/// `Error::Picture` if it cannot be encoded.
pub fn jpeg(picture: &Picture) -> Result<Vec<u8>> {
    let longest = picture.width().max(picture.height());
    let side = |length: usize| (length * SIDE.min(longest) / longest).max(1);
    let (width, height) = (side(picture.width()), side(picture.height()));
    let reduced;
    let picture = match longest > SIDE {
        true => {
            reduced = resized(picture, width, height, Filter::Bicubic)?;
            &reduced
        }
        false => picture,
    };
    let mut file = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut file, QUALITY);
    let size = [picture.width(), picture.height()].map(|side| side as u32);
    let encoded = encoder.encode(picture.pixels(), size[0], size[1], Rgb8);
    encoded.map_err(|error| Error::Picture(error.to_string()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::decode::decoded;
    use super::*;

    #[test]
    fn a_picture_is_reduced_to_what_models_see_and_nearly_the_same() {
        let picture =
            |width, height| Picture::new(width, height, [200, 40, 90].repeat(width * height)).unwrap();
        for (given, expected) in [((30, 20), (30, 20)), ((4096, 1024), (2048, 512)), ((1, 5000), (1, 2048))] {
            let read = decoded(&jpeg(&picture(given.0, given.1)).unwrap()).unwrap();
            assert_eq!((read.width(), read.height()), expected);
            let near = read.pixels()[..3].iter().zip([200u8, 40, 90]).all(|(a, b)| a.abs_diff(b) < 4);
            assert!(near, "{:?}", &read.pixels()[..3]);
        }
    }
}
