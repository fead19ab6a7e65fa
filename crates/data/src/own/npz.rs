//! `.npz`: a zip archive of `.npy` files, as `np.savez` (stored) and `np.savez_compressed` (deflated) write it.
//!
//! Stored members are mapped where they lie. Deflated ones are unpacked into a spool, which goes to disk when it grows, and
//! only as far as their own `.npy` header accounts for. Against archives made to fill a disk, four things must agree before
//! anything is unpacked: the size that the directory declares, the size that follows from the header's shape, the ratio that
//! deflate can reach at all (1032 : 1), and the limit on the total. Nothing is ever written under a member's name, but names
//! that leave the archive (`../x`, `/x`) are refused all the same: nobody writes them in good faith.

use crate::array::{Array, bytes_needed};
use crate::block::{Block, Spool};
use crate::npy;
use crate::{Error, Result};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use zip::{CompressionMethod, ZipArchive};

/// Unpacked size that is accepted by default: 64 GiB.
pub const MAX_UNPACKED: u64 = 64 << 30;
/// Above this size, members that shrink more than [`SUSPECT_RATIO`] times are refused.
const SUSPECT_SIZE: u64 = 1 << 30;
const SUSPECT_RATIO: u64 = 200;
/// Deflate cannot do better.
const DEFLATE_RATIO: u64 = 1032;

/// An open archive.
pub struct Npz {
    path: PathBuf,
    block: Block,
    archive: ZipArchive<Cursor<Block>>,
    names: Vec<String>,
    unpacked: u64,
    limit: u64,
    scratch: Option<PathBuf>,
}

impl Npz {
    /// Maps an archive. Unpacked arrays go to `scratch`, by default the system's folder for temporary files.
    pub fn open(path: &Path, limit: Option<u64>, scratch: Option<&Path>) -> Result<Self> {
        Self::new(path, Block::map(path)?, limit, scratch)
    }

    /// An archive from its bytes. `path` is for messages.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, limit: Option<u64>) -> Result<Self> {
        Self::new(path, bytes.into(), limit, None)
    }

    fn new(path: &Path, block: Block, limit: Option<u64>, scratch: Option<&Path>) -> Result<Self> {
        let wrong = |problem: String| Error::format(path, None, problem);
        let archive = ZipArchive::new(Cursor::new(block.clone()))
            .map_err(|e| wrong(format!("not an .npz file, or a damaged one: {e}")))?;
        let mut names = Vec::new();
        for name in archive.file_names() {
            let name = name.map_err(|e| wrong(format!("a member's name cannot be read: {e}")))?;
            let leaves = name.starts_with('/')
                || name.contains(':')
                || name.split(['/', '\\']).any(|part| part == "..");
            if leaves {
                return Err(wrong(format!(
                    "member `{}` has a name that leaves the archive",
                    name.escape_debug()
                )));
            }
            if let Some(array) = name.strip_suffix(".npy") {
                names.push(array.to_owned());
            }
        }
        names.sort_unstable();
        let (limit, scratch) = (limit.unwrap_or(MAX_UNPACKED), scratch.map(Path::to_owned));
        Ok(Self { path: path.to_owned(), block, archive, names, unpacked: 0, limit, scratch })
    }

    /// Names of the arrays, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The array of a name.
    pub fn array(&mut self, name: &str) -> Result<Array> {
        let place = Some(format!("array `{name}`"));
        let wrong = |problem: String| Error::format(&self.path, place.clone(), problem);
        let mut member = self
            .archive
            .by_name(&format!("{name}.npy"))
            .map_err(|e| wrong(format!("cannot be opened: {e}")))?;
        let (packed, declared) = (member.compressed_size(), member.size());
        match member.compression() {
            CompressionMethod::Stored => {
                let block = (member.data_start())
                    .and_then(|start| usize::try_from(start).ok())
                    .and_then(|start| Some(start..start.checked_add(usize::try_from(declared).ok()?)?))
                    .filter(|_| packed == declared)
                    .and_then(|range| self.block.part(range))
                    .ok_or_else(|| {
                        wrong(format!("claims {declared} bytes that the archive does not have"))
                    })?;
                npy::read(&self.path, place, block)
            }
            CompressionMethod::Deflated => {
                if declared / DEFLATE_RATIO > packed {
                    return Err(wrong(format!(
                        "claims that {packed} bytes unpack to {declared}, which deflate cannot do"
                    )));
                }
                if declared > SUSPECT_SIZE && declared / SUSPECT_RATIO > packed {
                    return Err(wrong(format!(
                        "{packed} bytes would unpack to {declared}: refused as a likely zip bomb; if it is fine, save it with np.savez"
                    )));
                }
                let left = self.limit.saturating_sub(self.unpacked);
                if declared > left {
                    return Err(wrong(format!(
                        "would unpack to {declared} bytes, but only {left} are left of the limit"
                    )));
                }
                let broken = |e: std::io::Error| wrong(format!("cannot be unpacked: {e}"));
                let mut head = Vec::new();
                (&mut member).take(npy::PREFIX as u64).read_to_end(&mut head).map_err(broken)?;
                let start = npy::start(&head).map_err(wrong)?;
                let header = start.saturating_sub(head.len()) as u64;
                (&mut member).take(header).read_to_end(&mut head).map_err(broken)?;
                let parsed = npy::Header::parse(&head).map_err(wrong)?;
                let size =
                    bytes_needed(&parsed.shape, parsed.element.size).and_then(|n| n.checked_add(start));
                if size.map(|n| n as u64) != Some(declared) {
                    return Err(wrong(format!(
                        "its header gives shape {:?}, which does not match the {declared} bytes declared",
                        parsed.shape
                    )));
                }
                let mut spool = Spool::new(self.scratch.as_deref());
                spool.write(&head)?;
                let mut written = head.len() as u64;
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let count = member.read(&mut buffer).map_err(broken)?;
                    written += count as u64;
                    if written > declared {
                        return Err(wrong(format!("unpacks to more than the {declared} bytes declared")));
                    }
                    if count == 0 {
                        break;
                    }
                    spool.write(&buffer[..count])?;
                }
                self.unpacked += written;
                npy::read(&self.path, place, spool.finish()?)
            }
            other => {
                Err(wrong(format!("is compressed by {other}, which is not supported: save it with np.savez")))
            }
        }
    }
}

#[cfg(test)]
pub(in crate::own) mod tests {
    use super::*;
    use crate::FeatureStore;
    use crate::npy::tests::npy;
    use proptest::prelude::*;
    use std::io::Write;
    use zip::write::{SimpleFileOptions, ZipWriter};

    /// An archive of members, each stored or deflated.
    pub fn npz(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in members {
            writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn error(bytes: Vec<u8>, limit: Option<u64>) -> String {
        let opened = Npz::from_bytes(Path::new("x.npz"), bytes, limit).and_then(|mut npz| npz.array("x"));
        opened.unwrap_err().to_string()
    }

    /// Position of the size fields of the only member, in the local header and in the directory.
    fn directory(bytes: &[u8]) -> usize {
        bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap()
    }

    #[test]
    fn stored_and_deflated_members_give_the_same_numbers() {
        let numbers = [0.5f64, -1.0, 2.0, 8.0].map(f64::to_le_bytes).concat();
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let bytes = npz(&[("x.npy", npy("'<f8'", "False", "(2, 2)", &numbers))], method);
            let mut archive = Npz::from_bytes(Path::new("x.npz"), bytes, None).unwrap();
            assert_eq!(archive.names(), ["x"]);
            let mut row = [0.0; 2];
            archive.array("x").unwrap().read(1, &mut row).unwrap();
            assert_eq!(row, [2.0, 8.0]);
            assert!(archive.array("y").unwrap_err().to_string().contains("`y`"));
        }
    }

    #[test]
    fn a_bomb_is_refused_by_its_own_header_by_its_ratio_and_by_the_limit() {
        let deflated = |bytes| npz(&[("x.npy", bytes)], CompressionMethod::Deflated);
        let megabytes = npy("'<f4'", "False", "(2, 2)", &vec![0; 8 << 20]);
        assert!(error(deflated(megabytes), None).contains("shape [2, 2]"));
        let honest = npy("'|u1'", "False", "(1048576, 8)", &vec![0; 8 << 20]);
        assert!(error(deflated(honest.clone()), Some(1 << 20)).contains("of the limit"));
        for (declared, part) in [(u32::MAX - 1, "deflate cannot"), (1_500_000_000, "deflate cannot")] {
            let mut lying = deflated(honest.clone());
            let at = directory(&lying);
            lying[at + 24..at + 28].copy_from_slice(&declared.to_le_bytes());
            let error = error(lying, None);
            assert!(error.contains("array `x`") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_member_that_unpacks_to_more_than_declared_is_stopped() {
        let inner = npy("'|u1'", "False", "(4, 4)", &[7; 16]);
        let size = inner.len() as u32;
        let longer = [&inner[..], &[7; 100_000]].concat();
        let mut bytes = npz(&[("x.npy", longer)], CompressionMethod::Deflated);
        let at = directory(&bytes);
        bytes[at + 24..at + 28].copy_from_slice(&size.to_le_bytes());
        let error = error(bytes, None);
        assert!(error.contains("array `x`"), "{error}");
    }

    #[test]
    fn names_that_leave_the_archive_are_refused() {
        for name in ["../x.npy", "a/../../x.npy", "/x.npy", "..\\x.npy", "C:x.npy"] {
            // The writer may clean names, so the bad one is put in afterwards.
            let plain = "n".repeat(name.len());
            let mut bytes =
                npz(&[(&plain, npy("'|u1'", "False", "(1, 1)", &[1]))], CompressionMethod::Stored);
            for at in 0..bytes.len() - name.len() {
                if bytes[at..].starts_with(plain.as_bytes()) {
                    bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
                }
            }
            let error = error(bytes, None);
            assert!(error.contains("leaves the archive"), "{name}: {error}");
        }
    }

    #[test]
    fn truncated_archives_and_other_files_are_refused() {
        let whole = npz(&[("x.npy", npy("'|u1'", "False", "(1, 4)", &[1; 4]))], CompressionMethod::Deflated);
        for end in 0..whole.len() {
            assert!(error(whole[..end].to_vec(), None).contains("x.npz"));
        }
        assert!(
            error(npz(&[("x.npy", b"text".to_vec())], CompressionMethod::Stored), None).contains("array `x`")
        );
    }

    proptest! {
        #[test]
        fn arbitrary_and_damaged_bytes_never_panic(noise: Vec<u8>, at in 0usize..400, value: u8, stored: bool) {
            let _ = Npz::from_bytes(Path::new("p"), noise, None);
            let method = if stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
            let mut bytes = npz(&[("x.npy", npy("'|u1'", "False", "(2, 4)", &[1; 8]))], method);
            let length = bytes.len();
            bytes[at % length] = value;
            if let Ok(mut archive) = Npz::from_bytes(Path::new("p"), bytes, Some(1 << 20)) {
                for name in archive.names().to_vec() {
                    let _ = archive.array(&name);
                }
            }
        }
    }
}
