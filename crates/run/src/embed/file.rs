//! Files that the rows go to.

use super::Loaded;
use crate::Result;
use crate::error::bail;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

/// A format by the ending of the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// NumPy's file of one array.
    Npy,
    /// An array `embeddings`, and what it was made by.
    Safetensors,
}

impl Format {
    /// The format of a file.
    ///
    /// # Errors
    /// Another ending.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().unwrap_or_default().to_string_lossy().to_lowercase().as_str() {
            "npy" => Ok(Self::Npy),
            "safetensors" => Ok(Self::Safetensors),
            _ => bail!("{}: embeddings go to a file that ends in .npy or .safetensors", path.display()),
        }
    }

    /// Writes what comes before the rows, which are little-endian f32.
    pub(super) fn begin(
        self,
        to: &mut dyn Write,
        rows: usize,
        width: usize,
        encoder: &Loaded,
    ) -> io::Result<()> {
        match self {
            Self::Npy => {
                let mut header =
                    format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
                // Ten bytes come before it; the numbers begin at a multiple of 64.
                while !(10 + header.len() + 1).is_multiple_of(64) {
                    header.push(' ');
                }
                header.push('\n');
                to.write_all(b"\x93NUMPY\x01\x00")?;
                to.write_all(&(header.len() as u16).to_le_bytes())?;
                to.write_all(header.as_bytes())
            }
            Self::Safetensors => {
                let array =
                    json!({ "dtype": "F32", "shape": [rows, width], "data_offsets": [0, rows * width * 4] });
                let header = json!({ "__metadata__": { "encoder": encoder.stamp }, "embeddings": array });
                let mut header = header.to_string();
                while !header.len().is_multiple_of(8) {
                    header.push(' ');
                }
                to.write_all(&(header.len() as u64).to_le_bytes())?;
                to.write_all(header.as_bytes())
            }
        }
    }
}
