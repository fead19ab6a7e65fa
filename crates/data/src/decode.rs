//! Encoded pictures (JPEG, PNG, WebP) become [`Image`]s in their own size.
//!
//! Grey pictures stay grey (one channel), an alpha channel is dropped without blending, 16 bits are reduced to 8. The size is
//! checked against [`MAX_PIXELS`] before any pixel is allocated, so a small file that claims to be huge costs nothing.

use crate::{Error, Image, Result, Shape};
use ::image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

/// The most pixels a picture may have: 64 megapixels.
pub const MAX_PIXELS: u64 = 64_000_000;

/// The most bytes that an encoded picture may have.
const MAX_FILE: u64 = 512 << 20;

/// A picture's file as it is, if it is of reasonable size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    if bytes.len() as u64 > MAX_FILE {
        let problem = format!("more than {MAX_FILE} bytes: too large for an image");
        return Err(Error::format(path, None, problem));
    }
    Ok(bytes)
}

/// Decodes a picture; what it is, is told by its first bytes, not by the name. `path` is for messages only.
pub fn decode(path: &Path, bytes: &[u8]) -> Result<Image> {
    let broken = |problem: String| Error::format(path, None, problem);
    if bytes.is_empty() {
        return Err(broken("the image is empty (0 bytes): replace or remove it".into()));
    }
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| Error::io(path, e))?;
    let mut limits = Limits::default();
    // Eight bytes a pixel is the widest that the three formats have.
    limits.max_alloc = Some(MAX_PIXELS * 8);
    reader.limits(limits);
    if reader.format().is_none() {
        return Err(broken("not a readable image: JPEG, PNG and WebP are supported".into()));
    }
    if reader.format() == Some(ImageFormat::Jpeg) && !has_end_of_jpeg(bytes) {
        return Err(broken("the image is cut off or damaged: its end is missing".into()));
    }
    let unreadable = |e: ::image::ImageError| broken(format!("the image cannot be decoded: {e}"));
    let decoder = reader.into_decoder().map_err(unreadable)?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(broken(format!("the image is {width} x {height}: nothing in it")));
    }
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        let most = MAX_PIXELS / 1_000_000;
        return Err(broken(format!(
            "the image is {width} x {height}: more than {most} megapixels; make it smaller"
        )));
    }
    let grey =
        matches!(decoder.color_type(), ColorType::L8 | ColorType::La8 | ColorType::L16 | ColorType::La16);
    let picture = DynamicImage::from_decoder(decoder).map_err(unreadable)?;
    let (channels, pixels) =
        if grey { (1, picture.into_luma8().into_raw()) } else { (3, picture.into_rgb8().into_raw()) };
    Ok(Image { shape: Shape { width: width as usize, height: height as usize, channels }, pixels })
}

/// Whether a JPEG goes on to its end marker. The decoder makes up for what is missing by grey, and its strict mode refuses much that
/// is only unusual, such as stray bytes between segments.
fn has_end_of_jpeg(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == 0xFF) {
        rest = &rest[at + 1..];
        match rest {
            [0xD9, ..] => return true,
            // Filling, a byte of pixels that is 0xFF, and marks without content.
            [0xFF | 0x00 | 0x01 | 0xD0..=0xD8, ..] => {}
            // A segment says its length and may hold a small picture with an end of its own.
            [_, high, low, ..] => {
                let length = 1 + usize::from(u16::from_be_bytes([*high, *low]));
                rest = rest.get(length..).unwrap_or_default();
            }
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::image::{GrayImage, Rgb, RgbImage, RgbaImage};
    use proptest::prelude::*;

    fn encoded(picture: DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        picture.write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    fn decoded(bytes: &[u8]) -> Image {
        decode(Path::new("a.png"), bytes).unwrap()
    }

    #[test]
    fn colour_keeps_its_pixels_and_grey_its_one_channel() {
        let colour = RgbImage::from_fn(5, 3, |x, y| Rgb([x as u8, y as u8, 200]));
        let got = decoded(&encoded(colour.clone().into(), ImageFormat::Png));
        assert_eq!(got.shape, Shape { width: 5, height: 3, channels: 3 });
        assert_eq!(got.pixels, colour.into_raw());
        let grey = GrayImage::from_fn(2, 4, |x, y| ::image::Luma([(10 * x + y) as u8]));
        let got = decoded(&encoded(grey.clone().into(), ImageFormat::Png));
        assert_eq!(got.shape, Shape { width: 2, height: 4, channels: 1 });
        assert_eq!(got.pixels, grey.into_raw());
    }

    #[test]
    fn alpha_is_dropped_and_sixteen_bits_become_eight() {
        let clear = RgbaImage::from_pixel(1, 1, ::image::Rgba([9, 8, 7, 0]));
        assert_eq!(decoded(&encoded(clear.into(), ImageFormat::Png)).pixels, [9, 8, 7]);
        let deep: DynamicImage =
            ::image::ImageBuffer::<::image::Luma<u16>, _>::from_pixel(1, 1, ::image::Luma([0xFFFF])).into();
        let got = decoded(&encoded(deep, ImageFormat::Png));
        assert_eq!((got.shape.channels, got.pixels), (1, vec![255]));
    }

    #[test]
    fn jpeg_and_webp_are_read() {
        let flat: DynamicImage = RgbImage::from_pixel(16, 8, Rgb([120, 120, 120])).into();
        for format in [ImageFormat::Jpeg, ImageFormat::WebP] {
            let got = decoded(&encoded(flat.clone(), format));
            assert_eq!(got.shape, Shape { width: 16, height: 8, channels: 3 });
            assert!(got.pixels.iter().all(|&p| p.abs_diff(120) <= 2));
        }
    }

    #[test]
    fn a_picture_that_claims_too_many_pixels_is_refused_before_it_is_allocated() {
        let mut bytes = encoded(GrayImage::new(1, 1).into(), ImageFormat::Png);
        bytes[16..20].copy_from_slice(&60_000u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&60_000u32.to_be_bytes());
        let crc = crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&crc.to_be_bytes());
        let error = decode(Path::new("big.png"), &bytes).unwrap_err().to_string();
        assert!(error.contains("big.png") && error.contains("60000 x 60000"), "{error}");
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0u32, |crc, &byte| {
            (0..8)
                .fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 })
        })
    }

    #[test]
    fn empty_truncated_and_foreign_bytes_are_errors_that_name_the_file() {
        let whole =
            encoded(RgbImage::from_fn(40, 40, |x, y| Rgb([x as u8, y as u8, 3])).into(), ImageFormat::Png);
        for bytes in [&[][..], b"hello, this is text", &whole[..whole.len() / 2]] {
            assert!(decode(Path::new("x/y.png"), bytes).unwrap_err().to_string().contains("x/y.png"));
        }
    }

    #[test]
    fn a_picture_that_is_cut_off_anywhere_is_unreadable_in_all_three_formats() {
        let busy = RgbImage::from_fn(64, 48, |x, y| Rgb([(x * y) as u8, (7 * x) as u8, (x ^ y) as u8]));
        for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP] {
            let whole = encoded(busy.clone().into(), format);
            decoded(&whole);
            for percent in [20, 50, 80, 95] {
                let cut = decode(Path::new("cut"), &whole[..whole.len() * percent / 100]);
                assert!(cut.is_err(), "{format:?} cut at {percent} %");
            }
        }
    }

    #[test]
    fn a_jpeg_with_a_small_picture_inside_stray_bytes_and_a_tail_is_whole_and_its_half_is_not() {
        let busy = RgbImage::from_fn(64, 48, |x, y| Rgb([(x * y) as u8, (7 * x) as u8, (x ^ y) as u8]));
        let plain = encoded(busy.into(), ImageFormat::Jpeg);
        // An application segment that holds a whole JPEG, as cameras write it.
        let inner = encoded(RgbImage::new(8, 8).into(), ImageFormat::Jpeg);
        let length = (inner.len() as u16 + 2).to_be_bytes();
        let mut bytes = [&plain[..2], &[0xFF, 0xE1], &length, &inner, &plain[2..]].concat();
        let whole = bytes.len();
        bytes.extend(b"a tail of bytes that are not the image's");
        assert_eq!(decoded(&bytes).pixels, decoded(&plain).pixels);
        let error = decode(Path::new("half.jpg"), &bytes[..whole / 2]).unwrap_err().to_string();
        assert!(error.contains("half.jpg") && error.contains("cut off"), "{error}");
        // After the first segment, whose length stands in its third and fourth byte.
        let end = 4 + usize::from(u16::from_be_bytes([plain[4], plain[5]]));
        let stray = [&plain[..end], &[1, 2, 3, 4, 5, 6], &plain[end..]].concat();
        assert_eq!(decode(Path::new("stray.jpg"), &stray).map(|image| image.shape.width).ok(), Some(64));
    }

    proptest! {
        #[test]
        fn damaged_pictures_never_panic(at in 0usize..400, value: u8, cut in 0usize..400, which in 0usize..3) {
            let picture: DynamicImage = RgbImage::from_fn(9, 9, |x, y| Rgb([x as u8, y as u8, 3])).into();
            let format = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP][which];
            let mut bytes = encoded(picture, format);
            let length = bytes.len();
            bytes[at % length] = value;
            bytes.truncate(cut.max(1));
            let _ = decode(Path::new("p"), &bytes);
        }
    }
}
