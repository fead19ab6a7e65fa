//! Pictures of one size packed as strips of lossless WebP: repeated [u32 little-endian length][WebP of up to 500 pictures
//! stacked vertically]. Lossless colour prediction makes them about half as large as raw records, and strips unpack in
//! parallel.

use crate::{Error, Result};
use image_webp::WebPDecoder;
use rayon::prelude::*;
use std::io::Cursor;
use std::path::Path;

/// Pictures per strip; the last may hold fewer.
const PER_STRIP: usize = 500;

/// Size of a picture in a strip (always three channels) and of the record that it becomes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tile {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes of the record that it becomes.
    pub record: usize,
}

/// Unpacks `count` pictures: `write(index, pixels, record)` makes a record from interleaved colour pixels.
pub(crate) fn unpack(
    path: &Path,
    bytes: &[u8],
    tile: Tile,
    count: usize,
    write: impl Fn(usize, &[u8], &mut [u8]) + Sync,
) -> Result<Vec<u8>> {
    let strips = split(path, bytes)?;
    if count == 0 || strips.len() != count.div_ceil(PER_STRIP) {
        let problem = format!(
            "{} strips for {count} images, of which {PER_STRIP} belong in each; do the labels belong to this file?",
            strips.len()
        );
        return Err(Error::format(path, None, problem));
    }
    let mut records = vec![0; count * tile.record];
    records.par_chunks_mut(PER_STRIP * tile.record).zip(&strips).enumerate().try_for_each(
        |(number, (records, strip))| {
            let pixels = decode(strip, tile, records.len() / tile.record)
                .map_err(|problem| Error::format(path, format!("strip {number}"), problem))?;
            let pictures = pixels.chunks_exact(tile.width * tile.height * 3);
            for (i, (picture, record)) in pictures.zip(records.chunks_exact_mut(tile.record)).enumerate() {
                write(number * PER_STRIP + i, picture, record);
            }
            Ok(())
        },
    )?;
    Ok(records)
}

fn split<'a>(path: &Path, mut rest: &'a [u8]) -> Result<Vec<&'a [u8]>> {
    let mut strips = Vec::new();
    while !rest.is_empty() {
        let Some((strip, after)) = rest.split_first_chunk().and_then(|(length, after)| {
            usize::try_from(u32::from_le_bytes(*length))
                .ok()
                .and_then(|length| after.split_at_checked(length))
        }) else {
            let problem = format!("cut short: {} bytes are left; copy the file again", rest.len());
            return Err(Error::format(path, format!("strip {}", strips.len()), problem));
        };
        strips.push(strip);
        rest = after;
    }
    Ok(strips)
}

fn decode(strip: &[u8], tile: Tile, pictures: usize) -> Result<Vec<u8>, String> {
    let broken =
        |e: image_webp::DecodingError| format!("not a readable WebP image ({e}); copy the file again");
    let mut decoder = WebPDecoder::new(Cursor::new(strip)).map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let (w, h) = (tile.width, tile.height * pictures);
    // Checked before allocating: the header can claim any size.
    if (width as usize, height as usize) != (w, h) || decoder.has_alpha() || decoder.is_animated() {
        return Err(format!(
            "an image of {width} x {height} where {pictures} make an opaque one of {w} x {h}"
        ));
    }
    let mut pixels = vec![0; w * h * 3];
    decoder.read_image(&mut pixels).map_err(broken)?;
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use image_webp::{ColorType, WebPEncoder};

    const TILE: Tile = Tile { width: 2, height: 2, record: 12 };

    fn strip(pictures: usize, first: u8) -> Vec<u8> {
        let pixels: Vec<u8> = (0..pictures * 12).map(|i| (i / 12) as u8 ^ first).collect();
        let mut webp = Vec::new();
        WebPEncoder::new(&mut webp).encode(&pixels, 2, 2 * pictures as u32, ColorType::Rgb8).unwrap();
        [(webp.len() as u32).to_le_bytes().to_vec(), webp].concat()
    }

    fn unpack_bytes(bytes: &[u8], count: usize) -> Result<Vec<u8>> {
        unpack(Path::new("x.webpstrips"), bytes, TILE, count, |_, pixels, record| {
            record.copy_from_slice(pixels)
        })
    }

    #[test]
    fn strips_unpack_in_order_with_a_shorter_last_one() {
        let records = unpack_bytes(&[strip(500, 0), strip(3, 200)].concat(), 503).unwrap();
        assert_eq!(records.len(), 503 * 12);
        assert_eq!((records[12 * 255], records[12 * 256], records[12 * 502]), (255, 0, 202));
    }

    #[test]
    fn broken_strips_are_errors_that_name_the_strip() {
        let whole = strip(3, 0);
        let huge = [u32::MAX.to_le_bytes().as_slice(), &whole[4..]].concat();
        let mut garbled = whole.clone();
        garbled[8..16].fill(0xff);
        for (bytes, count) in [
            (&whole[..whole.len() - 1], 3),
            (&whole[..3], 3),
            (&huge, 3),
            (&garbled, 3),
            (&whole[..], 4),
            (&whole[..], 2),
            (&whole[..], 501),
            (&[], 3),
            (&[], 0),
        ] {
            let message = unpack_bytes(bytes, count).unwrap_err().to_string();
            assert!(message.contains("x.webpstrips"), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn damaged_strips_never_panic(damage in proptest::collection::vec((0usize..200, 0u8..), 1..6)) {
            let mut bytes = strip(3, 7);
            for (at, byte) in damage {
                let length = bytes.len();
                bytes[at % length] = byte;
            }
            let _ = unpack_bytes(&bytes, 3);
        }
    }
}
