//! Small pictures inside the page: PNG in a `data:` address.

use crate::error::{Error, Result};

/// A larger picture is averaged down to this many pixels per side, or a hundred photographs would weigh megabytes.
const LARGEST_SIDE: u32 = 128;

/// A picture of bytes, row by row, channels together.
#[derive(Debug, Clone, PartialEq)]
pub struct Thumbnail {
    width: u32,
    height: u32,
    channels: u8,
    pixels: Vec<u8>,
}

impl Thumbnail {
    /// Takes `height` x `width` x `channels` bytes; channels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    ///
    /// # Errors
    /// The bytes do not fit the shape.
    pub fn checked(width: u32, height: u32, channels: u8, pixels: Vec<u8>) -> Result<Self> {
        let size = (width as usize)
            .checked_mul(height as usize)
            .and_then(|size| size.checked_mul(usize::from(channels)));
        if size != Some(pixels.len()) || pixels.is_empty() || channels > 4 {
            return Err(Error::Thumbnail { width, height, channels, given: pixels.len() });
        }
        Ok(Self { width, height, channels, pixels })
    }

    /// Averages blocks of pixels until no side is longer than [`LARGEST_SIDE`].
    fn reduced(&self) -> Self {
        let block = self.width.max(self.height).div_ceil(LARGEST_SIDE) as usize;
        let (wide, high, channels) = (self.width as usize, self.height as usize, usize::from(self.channels));
        let (width, height) = (wide.div_ceil(block), high.div_ceil(block));
        let mut pixels = Vec::with_capacity(width * height * channels);
        for at in 0..width * height * channels {
            let (row, column, channel) = (at / channels / width, at / channels % width, at % channels);
            let rows = row * block..((row + 1) * block).min(high);
            let columns = column * block..((column + 1) * block).min(wide);
            let area = (rows.len() * columns.len()) as u64;
            let cells = rows.flat_map(|r| columns.clone().map(move |c| (r * wide + c) * channels + channel));
            let sum: u64 = cells.map(|cell| u64::from(self.pixels[cell])).sum();
            pixels.push(((sum + area / 2) / area) as u8);
        }
        Self { width: width as u32, height: height as u32, channels: self.channels, pixels }
    }

    /// The picture as `data:image/png;base64,...`.
    pub(crate) fn address(&self) -> Result<String, png::EncodingError> {
        let small = self.reduced();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, small.width, small.height);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_color(match small.channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&small.pixels)?;
        writer.finish()?;
        Ok(format!("data:image/png;base64,{}", base64(&bytes)))
    }
}

/// Three bytes become four letters of six bits each (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for letter in 0..4 {
            let six = bits >> (18 - 6 * letter) & 63;
            text.push(if letter <= chunk.len() { char::from(LETTERS[six as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_examples_of_rfc_4648() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in pairs {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn bytes_that_do_not_fit_the_shape_are_an_error() {
        for (width, height, channels, given) in [(2, 2, 3, 11), (0, 5, 1, 0), (1, 1, 5, 5), (1, 1, 0, 0)] {
            assert!(Thumbnail::checked(width, height, channels, vec![0; given]).is_err());
        }
        assert!(Thumbnail::checked(u32::MAX, u32::MAX, 4, vec![0; 4]).is_err());
    }

    #[test]
    fn a_large_picture_is_averaged_down_and_a_small_one_stays() {
        let small = Thumbnail::checked(3, 2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(small.reduced(), small);
        let stripes: Vec<u8> = (0..300 * 150).map(|at| if at % 300 % 3 == 0 { 90 } else { 0 }).collect();
        let reduced = Thumbnail::checked(300, 150, 1, stripes).unwrap().reduced();
        assert_eq!((reduced.width, reduced.height), (100, 50));
        assert!(reduced.pixels.iter().all(|p| *p == 30));
    }

    #[test]
    fn all_kinds_of_channels_become_png() {
        for channels in 1..=4 {
            let picture = Thumbnail::checked(2, 2, channels, vec![7; 4 * usize::from(channels)]).unwrap();
            assert!(picture.address().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
        }
    }
}
