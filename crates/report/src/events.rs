//! TensorBoard events: the scalars of all records in one file that `tensorboard --logdir` shows.
//!
//! The file is a sequence of TFRecords. With $c(x)$ the CRC-32C of $x$ (Castagnoli polynomial), rotated and shifted as
//! $m(x) = ((c \gg 15) \mathbin{|} (c \ll 17)) + \text{a282ead8}_{16}$ modulo $2^{32}$, a record is
//!
//! `length: u64 | m(length): u32 | data | m(data): u32`, all little-endian.
//!
//! The data is a protocol buffer; of its many fields five are needed, so they are written by hand:
//!
//! ```text
//! Event   { 1 wall_time: double, 2 step: int64, 3 file_version: string, 5 summary: Summary }
//! Summary { 1 value: repeated Value }
//! Value   { 1 tag: string, 2 simple_value: float }
//! ```

use std::path::{Path, PathBuf};

use negscale_atomic_file::{create_folders, write_bytes};

use crate::error::{Error, Result};
use negscale_records::EpochRecord;

/// Writes `events.out.tfevents.<seconds>.<host>` into `folder` as a whole and returns its path.
///
/// `started` is when the run started, in seconds since 1970. A resumed run passes the same moment and host, and so
/// replaces its file; with another moment TensorBoard would show every curve twice.
///
/// # Errors
/// The folder cannot be created or the file cannot be written.
pub fn write_events(folder: &Path, started: u64, host: &str, records: &[EpochRecord]) -> Result<PathBuf> {
    create_folders(folder).map_err(|e| Error::io(folder, e))?;
    let path = folder.join(events_file(started, host));
    write_bytes(&path, &encode_events(started, records)).map_err(|e| Error::io(&path, e))?;
    Ok(path)
}

/// Name of the file that [`write_events`] writes.
#[must_use]
pub fn events_file(started: u64, host: &str) -> String {
    format!("events.out.tfevents.{started:010}.{}", file_safe(host))
}

/// The bytes of an events file: a version record, then one record per epoch.
#[must_use]
pub fn encode_events(started: u64, records: &[EpochRecord]) -> Vec<u8> {
    let mut clock = started as f64;
    let mut file = Vec::new();
    let mut version = Vec::new();
    put_double(&mut version, 1, clock);
    put_bytes(&mut version, 3, b"brain.Event:2");
    put_record(&mut file, &version);
    for record in records {
        // Time goes forward only, whatever a broken record says.
        clock += if record.seconds.is_finite() { record.seconds.max(0.0) } else { 0.0 };
        let mut summary = Vec::new();
        for (tag, number) in record.scalars() {
            let mut value = Vec::new();
            put_bytes(&mut value, 1, tag.as_bytes());
            put_float(&mut value, 2, number as f32);
            put_bytes(&mut summary, 1, &value);
        }
        let mut event = Vec::new();
        put_double(&mut event, 1, clock);
        // Zero is what an absent field means, so the format leaves it out.
        if record.epoch != 0 {
            put_varint(&mut event, 2 << 3);
            put_varint(&mut event, record.epoch);
        }
        put_bytes(&mut event, 5, &summary);
        put_record(&mut file, &event);
    }
    file
}

/// A host name reduced to what every file system takes.
fn file_safe(host: &str) -> String {
    let safe: String = host
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    if safe.is_empty() { "localhost".to_owned() } else { safe }
}

fn put_record(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend(length);
    out.extend(masked(crc32c(&length)).to_le_bytes());
    out.extend(data);
    out.extend(masked(crc32c(data)).to_le_bytes());
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A field's key is its number and the kind of what follows: 1 for eight bytes, 2 for a length, 5 for four bytes.
fn put_double(out: &mut Vec<u8>, field: u64, number: f64) {
    put_varint(out, field << 3 | 1);
    out.extend(number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn put_float(out: &mut Vec<u8>, field: u64, number: f32) {
    put_varint(out, field << 3 | 5);
    out.extend(number.to_le_bytes());
}

/// The rotation that keeps checksums of data holding checksums from being trivial.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C by a table of the 256 bytes; the polynomial is 1EDC6F41, bits reversed.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut rest = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                rest = if rest & 1 == 1 { rest >> 1 ^ 0x82f6_3b78 } else { rest >> 1 };
                bit += 1;
            }
            table[byte] = rest;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_agrees_with_the_published_examples() {
        // RFC 3720, appendix B.4, and the customary check value.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn a_host_name_cannot_leave_the_folder() {
        assert_eq!(file_safe("../a b/é"), "..-a-b--");
        assert_eq!(file_safe(""), "localhost");
    }
}
