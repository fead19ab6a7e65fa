//! Checksums of files.

use crate::{Error, Result};
use md5::{Digest, Md5};
use sha2::Sha256;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A checksum in hexadecimal, lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// MD5: finds damage, not malice. Only where nothing better is published.
    Md5(&'static str),
    /// SHA-256.
    Sha256(&'static str),
}

impl Sum {
    /// An error unless the file has this sum; the error names both sums.
    pub fn check(&self, path: &Path) -> Result<()> {
        let (kind, expected, found) = match self {
            Sum::Md5(expected) => ("MD5", expected, of_file::<Md5>(path)?),
            Sum::Sha256(expected) => ("sha256", expected, of_file::<Sha256>(path)?),
        };
        if found == **expected {
            return Ok(());
        }
        Err(Error::Checksum { path: path.to_owned(), kind, expected: (*expected).to_owned(), found })
    }
}

fn of_file<D: Digest>(path: &Path) -> Result<String> {
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut digest = D::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(n) => digest.update(&block[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(path, e)),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_examples_of_both_sums_hold_and_an_error_names_both_sums() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let md5 = "900150983cd24fb0d6963f7d28e17f72";
        Sum::Sha256(sha256).check(&path).unwrap();
        Sum::Md5(md5).check(&path).unwrap();
        let error = Sum::Md5("00").check(&path).unwrap_err().to_string();
        assert!(error.contains("00") && error.contains(md5), "{error}");
    }
}
