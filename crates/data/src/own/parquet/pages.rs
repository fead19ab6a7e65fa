//! How large pages become when they are unpacked, before they are.
//!
//! The crate that unpacks sets room aside for as many bytes as a page's header declares, at most 2 GiB, and stops there for Snappy and Zstandard, but not for
//! gzip: it ignores the declared size until all is unpacked, and every packed byte can become 1032. So gzip pages that might exceed their declared size are
//! unpacked twice, the first time into nothing. Snappy cannot make more than 64 bytes of 3; a page that declares more would fill memory with zeros before it
//! is refused.
//!
//! Headers are read here on their own: Thrift's compact protocol, of which all but five numbers is passed over.

use crate::positioned::Chunks;
use ::parquet::basic::Compression;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::ChunkReader;
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

/// The most bytes that gzip makes of one.
const OF_GZIP: u64 = 1032;
/// The most bytes that Snappy makes of one, and a few for its head.
const OF_SNAPPY: u64 = 22;
/// Bytes of a header, which may hold the least and the greatest value of its page.
const HEAD: u64 = 16 << 20;
/// Structures within structures.
const DEPTH: usize = 16;

/// What a page's header says.
#[derive(Debug, Default, PartialEq)]
struct Header {
    unpacked: u64,
    packed: u64,
    /// Bytes before the packed ones, in pages of version 2.
    levels: u64,
    is_plain: bool,
}

/// Whether every page of a column in a row group unpacks to no more than it declares, in words if not.
pub(super) fn check(chunks: &Chunks, column: &ColumnChunkMetaData) -> Result<(), String> {
    let is_gzip = match column.compression() {
        Compression::GZIP(_) => true,
        Compression::SNAPPY => false,
        _ => return Ok(()),
    };
    let (mut at, length) = column.byte_range();
    let end = at.saturating_add(length);
    while at < end {
        let told = |problem: &dyn std::fmt::Display| format!("the page at byte {at}: {problem}");
        let mut input = Input { inner: chunks.get_read(at).map_err(|e| told(&e))?.take(HEAD), count: 0 };
        let header = input.header().map_err(|e| told(&format!("its header cannot be read: {e}")))?;
        let body = at + input.count;
        if !header.is_plain {
            let packed = header.packed.saturating_sub(header.levels);
            let declared = header.unpacked.saturating_sub(header.levels);
            let most = if is_gzip { OF_GZIP } else { OF_SNAPPY }.saturating_mul(packed) + 64;
            if !is_gzip && declared > most {
                return Err(told(&format!("{packed} bytes cannot hold the {declared} that it declares")));
            }
            if is_gzip && most > declared {
                let source = chunks.get_read(body + header.levels).map_err(|e| told(&e))?;
                let mut unpacked = MultiGzDecoder::new(source.take(packed)).take(declared + 1);
                // What is damaged is told by whoever unpacks it.
                if io::copy(&mut unpacked, &mut io::sink()).is_ok_and(|count| count > declared) {
                    return Err(told(&format!(
                        "it unpacks to more than the {declared} bytes that it declares"
                    )));
                }
            }
        }
        at = body.saturating_add(header.packed);
    }
    Ok(())
}

/// Bytes of a header, counted.
struct Input<R> {
    inner: R,
    count: u64,
}

fn wrong(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

impl<R: Read> Input<R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.inner.read_exact(&mut byte)?;
        self.count += 1;
        Ok(byte[0])
    }

    fn pass(&mut self, count: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.inner.by_ref().take(count), &mut io::sink())?;
        self.count += passed;
        if passed == count { Ok(()) } else { Err(wrong("it ends too early")) }
    }

    /// Seven bits a byte, the lowest first.
    fn varint(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(wrong("a number of too many bytes"))
    }

    /// A number that must not be negative: even ones stand for those from 0 on.
    fn size(&mut self) -> io::Result<u64> {
        match self.varint()? {
            number if number % 2 == 0 => Ok(number / 2),
            _ => Err(wrong("a negative size")),
        }
    }

    /// Calls `field` with the number and the kind of every field until the structure ends.
    fn fields(&mut self, mut field: impl FnMut(&mut Self, u64, u8) -> io::Result<()>) -> io::Result<()> {
        let mut number = 0;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            number = match byte >> 4 {
                0 => self.size()?,
                step => number + u64::from(step),
            };
            field(self, number, byte & 0xF)?;
        }
    }

    /// Passes over a value of a kind.
    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(|| wrong("too many structures within each other"))?;
        match kind {
            1 | 2 => Ok(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.element(head & 0xF, depth))
            }
            11 => {
                let count = self.varint()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth)?;
                    self.element(kinds & 0xF, depth)
                })
            }
            12 => self.fields(|input, _, kind| input.skip(kind, depth)),
            _ => Err(wrong("a value of an unknown kind")),
        }
    }

    /// A value in a list, where a truth value takes a byte, which as a field it does not.
    fn element(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if matches!(kind, 1 | 2) { self.pass(1) } else { self.skip(kind, depth) }
    }

    fn header(&mut self) -> io::Result<Header> {
        let mut header = Header::default();
        self.fields(|input, field, kind| {
            match (field, kind) {
                (2, 5) => header.unpacked = input.size()?,
                (3, 5) => header.packed = input.size()?,
                // Data page of version 2.
                (8, 12) => input.fields(|input, field, kind| {
                    match (field, kind) {
                        (5 | 6, 5) => header.levels = header.levels.saturating_add(input.size()?),
                        (7, 2) => header.is_plain = true,
                        _ => input.skip(kind, DEPTH)?,
                    }
                    Ok(())
                })?,
                _ => input.skip(kind, DEPTH)?,
            }
            Ok(())
        })?;
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::basic::GzipLevel;
    use ::parquet::data_type::Int32Type;
    use ::parquet::file::properties::{WriterProperties, WriterVersion};
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;
    use bytes::Bytes;
    use std::sync::Arc;

    fn file(compression: Compression, version: WriterVersion) -> Vec<u8> {
        let schema = parse_message_type("message m { optional int32 x; }").unwrap();
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_writer_version(version)
            .set_dictionary_enabled(false)
            .set_data_page_row_count_limit(1000)
            .set_write_batch_size(500);
        let mut writer =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build())).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let levels: Vec<i16> = (0..5000).map(|row| i16::from(row % 7 != 0)).collect();
        let count = levels.iter().filter(|&&level| level == 1).count() as i32;
        let values: Vec<i32> = (0..count).map(|at| at / 400).collect();
        column.typed::<Int32Type>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.into_inner().unwrap()
    }

    fn checked(bytes: &[u8]) -> Result<(), String> {
        let bytes = Bytes::copy_from_slice(bytes);
        let reader = SerializedFileReader::new(bytes.clone()).unwrap();
        check(&Chunks::Bytes(bytes), reader.metadata().row_group(0).column(0))
    }

    #[test]
    fn pages_of_all_kinds_are_sound() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for compression in
                [Compression::GZIP(GzipLevel::default()), Compression::SNAPPY, Compression::UNCOMPRESSED]
            {
                assert_eq!(checked(&file(compression, version)), Ok(()), "{compression:?} {version:?}");
            }
        }
    }

    #[test]
    fn a_gzip_page_that_unpacks_to_more_than_it_declares_is_refused() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let mut bytes = file(Compression::GZIP(GzipLevel::default()), version);
            // Behind `PAR1` the first header: its kind (field 1), then field 2, the size unpacked, as twice that in bytes of seven bits.
            assert_eq!((bytes[4], bytes[6]), (0x15, 0x15));
            assert!(bytes[7] & 0x80 != 0 && bytes[8] & 0x7F != 0);
            // 64 bytes less, or 128 and some.
            bytes[8] -= 1;
            let error = checked(&bytes).unwrap_err();
            assert!(error.contains("unpacks to more than the"), "{error}");
        }
    }

    #[test]
    fn a_snappy_page_that_declares_more_than_it_can_hold_is_refused() {
        let mut bytes = file(Compression::SNAPPY, WriterVersion::PARQUET_1_0);
        assert!(bytes[7] & 0x80 != 0 && bytes[8] & 0x80 == 0);
        // One more byte of seven bits would move the rest: the second becomes as large as it can be, twice what the page has, which packs well.
        bytes[8] = 0x7F;
        let error = checked(&bytes).unwrap_err();
        assert!(error.contains("cannot hold"), "{error}");
    }

    #[test]
    fn damaged_headers_are_errors_and_end() {
        let bytes = file(Compression::GZIP(GzipLevel::default()), WriterVersion::PARQUET_2_0);
        let reader = SerializedFileReader::new(Bytes::copy_from_slice(&bytes)).unwrap();
        let column = reader.metadata().row_group(0).column(0);
        for at in 4..60 {
            for change in [1, 0x80, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let _ = check(&Chunks::Bytes(bytes.into()), column);
            }
        }
    }
}
