//! Encoded pictures (JPEG, PNG, WebP) into [`Image`].
//!
//! Grey stays one channel, everything else becomes red, green and blue; transparency is dropped, 16-bit values are reduced to
//! 8 bits, and a camera's rotation mark is not obeyed (as the usual Python loaders do it). The size in the header is checked
//! before anything is allocated: a hostile file can claim any size.

use crate::{Error, Image, Result, Shape};
use image::{ColorType, DynamicImage, ImageDecoder, ImageReader, Limits};
use std::io::Cursor;
use std::path::Path;

/// The largest picture that is decoded, in pixels.
pub const MAX_PIXELS: u64 = 64 << 20;

/// Bytes that a decoder may use: four 16-bit channels of the largest picture.
const MAX_ALLOCATION: u64 = MAX_PIXELS * 8;

/// The picture that `bytes` encode. The kind is told by the content; `name` is for messages.
pub fn decode(name: &Path, bytes: &[u8]) -> Result<Image> {
    let wrong = |problem: String| Error::format(name, None, problem);
    if bytes.is_empty() {
        return Err(wrong(
            "the file is empty where a picture should be; copy it again or leave it out".into(),
        ));
    }
    let unreadable = |source: image::ImageError| {
        wrong(format!("not a readable JPEG, PNG or WebP picture ({source}); convert it or leave it out"))
    };
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| Error::io(name, e))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_ALLOCATION);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 || u64::from(width) * u64::from(height) > MAX_PIXELS {
        let problem =
            format!("{width} x {height} pixels: between 1 and {MAX_PIXELS} can be decoded; scale it down");
        return Err(wrong(problem));
    }
    let grey =
        matches!(decoder.color_type(), ColorType::L8 | ColorType::L16 | ColorType::La8 | ColorType::La16);
    let picture = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    let (channels, pixels) =
        if grey { (1, picture.into_luma8().into_raw()) } else { (3, picture.into_rgb8().into_raw()) };
    Ok(Image { shape: Shape { width: width as usize, height: height as usize, channels }, pixels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageEncoder};

    fn png(width: u32, height: u32, colour: ExtendedColorType, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        image::codecs::png::PngEncoder::new(&mut out).write_image(bytes, width, height, colour).unwrap();
        out
    }

    fn pixels(bytes: &[u8]) -> (usize, Vec<u8>) {
        let image = decode(Path::new("a.png"), bytes).unwrap();
        (image.shape.channels, image.pixels)
    }

    #[test]
    fn grey_stays_grey_and_alpha_is_dropped() {
        assert_eq!(pixels(&png(2, 1, ExtendedColorType::L8, &[3, 250])), (1, vec![3, 250]));
        assert_eq!(pixels(&png(2, 1, ExtendedColorType::La8, &[3, 0, 250, 9])), (1, vec![3, 250]));
        assert_eq!(pixels(&png(1, 1, ExtendedColorType::Rgb8, &[1, 2, 3])), (3, vec![1, 2, 3]));
        assert_eq!(pixels(&png(1, 1, ExtendedColorType::Rgba8, &[1, 2, 3, 0])), (3, vec![1, 2, 3]));
    }

    #[test]
    fn sixteen_bits_become_eight() {
        let values: Vec<u8> = [0u16, 0x8080, 0xffff].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert_eq!(pixels(&png(3, 1, ExtendedColorType::L16, &values)), (1, vec![0, 128, 255]));
        assert_eq!(pixels(&png(1, 1, ExtendedColorType::Rgb16, &values)), (3, vec![0, 128, 255]));
    }

    #[test]
    fn jpeg_and_webp_decode() {
        let grey = [77u8; 64];
        let mut jpeg = Vec::new();
        image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 100)
            .write_image(&grey, 8, 8, ExtendedColorType::L8)
            .unwrap();
        assert_eq!(pixels(&jpeg), (1, grey.to_vec()));
        let colours: Vec<u8> = (0..48).collect();
        let mut webp = Vec::new();
        image::codecs::webp::WebPEncoder::new_lossless(&mut webp)
            .write_image(&colours, 4, 4, ExtendedColorType::Rgb8)
            .unwrap();
        assert_eq!(pixels(&webp), (3, colours));
    }

    #[test]
    fn a_header_that_claims_too_many_pixels_is_refused() {
        let mut hostile = png(1, 1, ExtendedColorType::L8, &[0]);
        hostile[16..20].copy_from_slice(&60_000u32.to_be_bytes());
        hostile[20..24].copy_from_slice(&60_000u32.to_be_bytes());
        // The checksum of the header must fit, or the size is never looked at.
        let mut crc = flate2::Crc::new();
        crc.update(&hostile[12..29]);
        hostile[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        let message = decode(Path::new("big.png"), &hostile).unwrap_err().to_string();
        assert!(message.contains("big.png") && message.contains("60000 x 60000"), "{message}");
    }

    #[test]
    fn broken_pictures_are_errors_that_name_the_file() {
        let whole = png(8, 8, ExtendedColorType::L8, &[9; 64]);
        for bytes in [&whole[..0], &whole[..5], &whole[..40], b"<html>not a picture</html>"] {
            let message = decode(Path::new("cat/7.png"), bytes).unwrap_err().to_string();
            assert!(message.contains("cat/7.png"), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn damaged_pictures_never_panic(at in 0usize..600, byte: u8, kind in 0usize..3) {
            let colours: Vec<u8> = (0..=191).collect();
            let mut bytes = match kind {
                0 => png(8, 8, ExtendedColorType::Rgb8, &colours),
                1 => {
                    let mut jpeg = Vec::new();
                    let encoder = image::codecs::jpeg::JpegEncoder::new(&mut jpeg);
                    encoder.write_image(&colours, 8, 8, ExtendedColorType::Rgb8).unwrap();
                    jpeg
                }
                _ => {
                    let mut webp = Vec::new();
                    let encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut webp);
                    encoder.write_image(&colours, 8, 8, ExtendedColorType::Rgb8).unwrap();
                    webp
                }
            };
            let length = bytes.len();
            bytes[at % length] = byte;
            if let Ok(image) = decode(Path::new("a"), &bytes) {
                assert_eq!(image.pixels.len(), image.shape.len());
            }
        }
    }
}
