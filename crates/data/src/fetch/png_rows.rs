//! CIFAR-10 from pictures whose rows are images.
//!
//! The npm package holds `data_batch_1.png` ... `data_batch_5.png` and `test_batch.png`, each 1,024 pixels wide: row `i` is
//! image `i`, its 32 x 32 pixels in row-major order, and `train_lables.json` and `test_lables.json` (so spelt) with the
//! labels. The official layout has per image one byte of label, then 1,024 values of red, of green and of blue.

use super::archive::Member;
use super::place::written;
use super::recipe::Wanted;
use crate::{Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

const PIXELS: usize = 32 * 32;
/// Label and three planes.
const RECORD: u64 = 1 + 3 * PIXELS as u64;

/// What to take out of the package.
pub(super) fn members(under: &str) -> Vec<Member> {
    let pictures = (1..=5).map(|n| format!("data_batch_{n}.png")).chain(["test_batch.png".to_owned()]);
    let labels = ["train_lables.json", "test_lables.json"].map(|name| (format!("{under}/{name}"), 1_000_000));
    pictures.map(|name| (format!("{under}/{name}"), 40_000_000)).chain(labels).collect()
}

/// Makes the official files of what was taken out.
pub(super) fn make(from: &Path, files: &[Wanted], to: &Path) -> Result<()> {
    let train = labels(&from.join("train_lables.json"))?;
    let test = labels(&from.join("test_lables.json"))?;
    let mut next = train.as_slice();
    for file in files {
        let stem = file.name.trim_end_matches(".bin");
        let count = (file.bytes / RECORD) as usize;
        let labels = if stem.starts_with("data_batch") {
            let (now, later) = next.split_at_checked(count).ok_or_else(|| {
                Error::format(
                    from.join("train_lables.json"),
                    None,
                    format!("{} labels: too few", train.len()),
                )
            })?;
            next = later;
            now
        } else {
            &test
        };
        convert(&from.join(format!("{stem}.png")), labels, &to.join(file.name))?;
    }
    Ok(())
}

fn labels(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    file.take(1_000_000).read_to_end(&mut text).map_err(|e| Error::io(path, e))?;
    serde_json::from_slice(&text).map_err(|e| Error::format(path, None, format!("not a list of labels: {e}")))
}

/// One picture of rows and its labels become one file of records, row by row.
fn convert(picture: &Path, labels: &[u8], to: &Path) -> Result<()> {
    let broken = |problem: String| Error::format(picture, None, problem);
    let file = File::open(picture).map_err(|e| Error::io(picture, e))?;
    let limits = png::Limits { bytes: 64 << 20 };
    let decoder = png::Decoder::new_with_limits(BufReader::new(file), limits);
    let mut reader = decoder.read_info().map_err(|e| broken(format!("not a PNG: {e}")))?;
    let info = reader.info();
    let (kind, size) = ((info.color_type, info.bit_depth), (info.width as usize, info.height as usize));
    if kind != (png::ColorType::Rgb, png::BitDepth::Eight)
        || info.interlaced
        || size != (PIXELS, labels.len())
    {
        return Err(broken(format!(
            "{} x {} pixels, {:?}, {:?} bits, interlaced: {}; expected are {PIXELS} x {}, RGB, 8 bits, not interlaced",
            size.0,
            size.1,
            kind.0,
            kind.1,
            info.interlaced,
            labels.len()
        )));
    }
    let mut out = BufWriter::new(File::create(to).map_err(|e| written(to, e))?);
    let mut planes = vec![0; 3 * PIXELS];
    for (at, &label) in labels.iter().enumerate() {
        let row = reader.next_row().map_err(|e| broken(format!("row {at}: {e}")))?;
        let row = row.ok_or_else(|| broken(format!("ends before row {at}")))?;
        for (i, pixel) in row.data().chunks_exact(3).enumerate() {
            for (channel, &value) in pixel.iter().enumerate() {
                planes[channel * PIXELS + i] = value;
            }
        }
        out.write_all(&[label]).and_then(|()| out.write_all(&planes)).map_err(|e| written(to, e))?;
    }
    let file = out.into_inner().map_err(|e| written(to, e.into_error()))?;
    file.sync_all().map_err(|e| written(to, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(image: usize, pixel: usize, channel: usize) -> u8 {
        (image * 71 + pixel * 3 + channel * 101) as u8
    }

    fn picture(path: &Path, width: usize, height: usize) {
        let mut encoder = png::Encoder::new(File::create(path).unwrap(), width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let pixels: Vec<u8> = (0..height)
            .flat_map(|i| (0..width).flat_map(move |p| (0..3).map(move |c| value(i, p, c))))
            .collect();
        encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    }

    #[test]
    fn rows_become_records_of_a_label_and_three_planes() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("x.png"), folder.path().join("x.bin"));
        picture(&from, PIXELS, 3);
        convert(&from, &[7, 0, 9], &to).unwrap();
        let bytes = std::fs::read(&to).unwrap();
        assert_eq!(bytes.len(), 3 * 3073);
        for (image, record) in bytes.chunks(3073).enumerate() {
            assert_eq!(record[0], [7, 0, 9][image]);
            for channel in 0..3 {
                for pixel in 0..PIXELS {
                    assert_eq!(record[1 + channel * PIXELS + pixel], value(image, pixel, channel));
                }
            }
        }
    }

    #[test]
    fn batches_share_the_training_labels_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for (name, height) in [("data_batch_1", 2), ("data_batch_2", 1), ("test_batch", 1)] {
            picture(&folder.path().join(format!("{name}.png")), PIXELS, height);
        }
        std::fs::write(folder.path().join("train_lables.json"), "[1,2,3]").unwrap();
        std::fs::write(folder.path().join("test_lables.json"), "[4]").unwrap();
        let file = |name, records| Wanted { name, bytes: records * RECORD, sha256: "" };
        let files = [file("data_batch_1.bin", 2), file("data_batch_2.bin", 1), file("test_batch.bin", 1)];
        let to = tempfile::tempdir().unwrap();
        make(folder.path(), &files, to.path()).unwrap();
        let labels = |name: &str| {
            let bytes = std::fs::read(to.path().join(name)).unwrap();
            bytes.chunks(3073).map(|record| record[0]).collect::<Vec<_>>()
        };
        assert_eq!(labels("data_batch_1.bin"), [1, 2]);
        assert_eq!(labels("data_batch_2.bin"), [3]);
        assert_eq!(labels("test_batch.bin"), [4]);
        std::fs::write(folder.path().join("train_lables.json"), "[1,2]").unwrap();
        assert!(make(folder.path(), &files, to.path()).unwrap_err().to_string().contains("too few"));
        std::fs::write(folder.path().join("train_lables.json"), "[1,2,300]").unwrap();
        assert!(
            make(folder.path(), &files, to.path()).unwrap_err().to_string().contains("not a list of labels")
        );
    }

    #[test]
    fn other_sizes_and_truncated_pictures_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("x.png"), folder.path().join("x.bin"));
        picture(&from, 1000, 2);
        assert!(convert(&from, &[0, 0], &to).unwrap_err().to_string().contains("1000 x 2"));
        picture(&from, PIXELS, 2);
        assert!(convert(&from, &[0], &to).unwrap_err().to_string().contains("expected are 1024 x 1"));
        let bytes = std::fs::read(&from).unwrap();
        std::fs::write(&from, &bytes[..bytes.len() / 2]).unwrap();
        assert!(convert(&from, &[0, 0], &to).is_err());
    }
}
