//! `.safetensors`: named tensors behind a JSON header, mapped.
//!
//! Sizes are checked where a tensor becomes an array, offsets (no holes, no overlap) when the file is opened.

use crate::array::{Array, Element, Kind};
use crate::block::Block;
use crate::{Error, Result};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use std::path::{Path, PathBuf};

/// As the format's crate has it.
const MAX_HEADER: usize = 100_000_000;

/// An open file of tensors.
pub struct Tensors {
    path: PathBuf,
    block: Block,
    start: usize,
    metadata: Metadata,
    names: Vec<String>,
}

impl Tensors {
    /// Maps a file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::new(path, Block::map(path)?)
    }

    /// Tensors from the bytes of a file. `path` is for messages.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        Self::new(path, bytes.into())
    }

    fn new(path: &Path, block: Block) -> Result<Self> {
        let (header, metadata) = read_header(&block).map_err(|problem| {
            let problem = format!("not a .safetensors file, or a damaged one: {problem}");
            Error::format(path, "header".to_string(), problem)
        })?;
        let mut names = metadata.offset_keys();
        names.sort_unstable();
        Ok(Self { path: path.to_owned(), block, start: 8 + header, metadata, names })
    }

    /// Names of the tensors, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The tensor of a name.
    pub fn array(&self, name: &str) -> Result<Array> {
        let place = Some(format!("tensor `{name}`"));
        let wrong = |problem: String| Error::format(&self.path, place.clone(), problem);
        let info = self
            .metadata
            .info(name)
            .ok_or_else(|| wrong(format!("is missing: the file has {}", self.names.join(", "))))?;
        let (kind, size) = match info.dtype {
            Dtype::F64 => (Kind::Float, 8),
            Dtype::F32 => (Kind::Float, 4),
            Dtype::F16 => (Kind::Float, 2),
            Dtype::BF16 => (Kind::Brain, 2),
            Dtype::I64 => (Kind::Signed, 8),
            Dtype::I32 => (Kind::Signed, 4),
            Dtype::I16 => (Kind::Signed, 2),
            Dtype::I8 => (Kind::Signed, 1),
            Dtype::U64 => (Kind::Unsigned, 8),
            Dtype::U32 => (Kind::Unsigned, 4),
            Dtype::U16 => (Kind::Unsigned, 2),
            Dtype::U8 => (Kind::Unsigned, 1),
            Dtype::BOOL => (Kind::Bool, 1),
            other => return Err(wrong(format!("type {other:?} is not supported: save it as float32"))),
        };
        let (from, to) = info.data_offsets;
        let range = (self.start.checked_add(from)).zip(self.start.checked_add(to));
        let block = range.and_then(|(from, to)| self.block.part(from..to));
        let block = block.ok_or_else(|| wrong("lies outside the file".into()))?;
        let element = Element { kind, size, big_endian: false };
        Array::new(&self.path, place, block, element, info.shape.clone(), false)
    }
}

/// Length and content of the header, read from a copy of it: the file is mapped, and may be rewritten by others at any time. The
/// format's crate reads whole files only, so what it checks of them is checked here: tensors without holes or overlap up to the end.
fn read_header(block: &Block) -> Result<(usize, Metadata), String> {
    let Some(length) = block.head(8).first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) else {
        return Err("too short for a header".into());
    };
    let length = usize::try_from(length).ok().filter(|&length| length <= MAX_HEADER);
    let length = length.ok_or_else(|| format!("its header claims more than {MAX_HEADER} bytes"))?;
    let head = block.head(8 + length);
    let text = head.get(8..8 + length).ok_or("it ends before its header does")?;
    let metadata: Metadata = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
    tensors.sort_unstable_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in tensors {
        let (from, to) = info.data_offsets;
        if from != end || to < from {
            return Err(format!("tensor `{}` begins at byte {from}, not at {end}", name.escape_debug()));
        }
        end = to;
    }
    if end.checked_add(8 + length) != Some(block.len()) {
        return Err(format!("its tensors end at byte {end} after the header, and the file does not"));
    }
    Ok((length, metadata))
}

#[cfg(test)]
pub(in crate::own) mod tests {
    use super::*;
    use crate::FeatureStore;
    use proptest::prelude::*;
    use safetensors::tensor::TensorView;

    /// A file of tensors.
    pub fn file(tensors: &[(&str, Dtype, &[usize], &[u8])]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, shape.to_vec(), bytes).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn error(bytes: Vec<u8>) -> String {
        Tensors::from_bytes(Path::new("t.safetensors"), bytes)
            .and_then(|tensors| tensors.array("x"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn tensors_are_found_by_name_and_read() {
        let numbers = [1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
        let halves =
            [half::bf16::from_f32(1.5).to_le_bytes(), half::bf16::from_f32(-2.0).to_le_bytes()].concat();
        let bytes = file(&[("x", Dtype::F32, &[2, 2], &numbers), ("h", Dtype::BF16, &[1, 2], &halves)]);
        let tensors = Tensors::from_bytes(Path::new("t"), bytes).unwrap();
        assert_eq!(tensors.names(), ["h", "x"]);
        let mut row = [0.0; 2];
        tensors.array("x").unwrap().read(1, &mut row).unwrap();
        assert_eq!(row, [3.0, 4.0]);
        tensors.array("h").unwrap().read(0, &mut row).unwrap();
        assert_eq!(row, [1.5, -2.0]);
        assert!(tensors.array("y").unwrap_err().to_string().contains("h, x"));
    }

    #[test]
    fn a_header_of_two_to_the_sixty_bytes_is_refused() {
        let error = error([&(1u64 << 60).to_le_bytes()[..], b"{}"].concat());
        assert!(error.contains("t.safetensors, header"), "{error}");
    }

    #[test]
    fn truncated_overlapping_and_untrue_headers_are_refused() {
        let whole = file(&[("x", Dtype::U8, &[2, 2], &[1; 4])]);
        for end in 0..whole.len() {
            assert!(error(whole[..end].to_vec()).contains("t.safetensors"));
        }
        for header in [
            r#"{"x":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}}"#,
            r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#,
            r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
            r#"{"x":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}}"#,
        ] {
            let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 4]].concat();
            assert!(error(bytes).contains("header"));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_and_damaged_bytes_never_panic(noise: Vec<u8>, at in 0usize..200, value: u8) {
            let _ = Tensors::from_bytes(Path::new("p"), noise);
            let mut bytes = file(&[("x", Dtype::F32, &[2, 2], &[1; 16])]);
            let length = bytes.len();
            bytes[at % length] = value;
            if let Ok(tensors) = Tensors::from_bytes(Path::new("p"), bytes) {
                tensors.names().iter().for_each(|name| drop(tensors.array(name)));
            }
        }
    }
}
