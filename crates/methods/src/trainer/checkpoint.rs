//! Everything needed to resume a run, in one block of bytes with a checksum.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | `negscale-check1\n` |
//! | 8 | length of the head, little-endian |
//! | head | JSON: counters, texts, and name and length of every array, in order |
//! | arrays | 32-bit numbers, little-endian |
//! | 32 | sha256 of all before |

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

const MAGIC: &[u8; 16] = b"negscale-check1\n";
const DIGEST: usize = 32;

/// What a checkpoint holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Contents {
    /// Structured values, by name.
    pub values: BTreeMap<String, serde_json::Value>,
    /// Numbers by name.
    pub floats: BTreeMap<String, Vec<f32>>,
    /// Whole numbers by name.
    pub whole: BTreeMap<String, Vec<u32>>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    values: BTreeMap<String, serde_json::Value>,
    floats: Vec<(String, usize)>,
    whole: Vec<(String, usize)>,
}

fn damaged(origin: &str, problem: impl Into<String>) -> Error {
    Error::Checkpoint { origin: origin.into(), problem: problem.into() }
}

impl Contents {
    /// Stores a structured value.
    pub fn put(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        let value = serde_json::to_value(value).map_err(|error| damaged(name, error.to_string()))?;
        self.values.insert(name.into(), value);
        Ok(())
    }

    /// A structured value.
    pub fn get<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T> {
        let value =
            self.values.get(name).ok_or_else(|| damaged("contents", format!("`{name}` is missing")))?;
        T::deserialize(value).map_err(|error| damaged("contents", format!("`{name}`: {error}")))
    }

    /// Takes out an array.
    pub fn take_floats(&mut self, name: &str) -> Result<Vec<f32>> {
        self.floats.remove(name).ok_or_else(|| damaged("contents", format!("`{name}` is missing")))
    }

    /// The bytes of a file.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let sizes = |name: &String, length: usize| (name.clone(), length);
        let head = Head {
            values: self.values.clone(),
            floats: self.floats.iter().map(|(name, array)| sizes(name, array.len())).collect(),
            whole: self.whole.iter().map(|(name, array)| sizes(name, array.len())).collect(),
        };
        let head = serde_json::to_vec(&head).map_err(|error| damaged("head", error.to_string()))?;
        let numbers = self.floats.values().map(Vec::len).sum::<usize>()
            + self.whole.values().map(Vec::len).sum::<usize>();
        let mut bytes = Vec::with_capacity(MAGIC.len() + 8 + head.len() + 4 * numbers + DIGEST);
        bytes.extend(MAGIC);
        bytes.extend((head.len() as u64).to_le_bytes());
        bytes.extend(head);
        self.floats.values().flatten().for_each(|x| bytes.extend(x.to_le_bytes()));
        self.whole.values().flatten().for_each(|x| bytes.extend(x.to_le_bytes()));
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        Ok(bytes)
    }

    /// Reads the bytes of a file; `origin` names it in errors.
    pub fn decode(bytes: &[u8], origin: &str) -> Result<Self> {
        let short =
            || damaged(origin, "it ends too early: it is incomplete; an earlier checkpoint may be intact");
        let whole = bytes.len().checked_sub(DIGEST).ok_or_else(short)?;
        let (body, digest) = bytes.split_at(whole);
        let body_after_magic = body.strip_prefix(MAGIC).ok_or_else(|| {
            damaged(origin, "it is not a checkpoint of this version of the program; start over")
        })?;
        if Sha256::digest(body)[..] != *digest {
            return Err(damaged(
                origin,
                "its checksum is wrong: it is damaged; an earlier checkpoint may be intact",
            ));
        }
        let (length, rest) = body_after_magic.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
        let (head, arrays) = rest.split_at_checked(length).ok_or_else(short)?;
        let head: Head = serde_json::from_slice(head).map_err(|error| damaged(origin, error.to_string()))?;
        let (words, odd) = arrays.as_chunks::<4>();
        let named = head.floats.iter().chain(&head.whole);
        let wanted = named.fold(0usize, |sum, (_, length)| sum.saturating_add(*length));
        if words.len() != wanted || !odd.is_empty() {
            return Err(short());
        }
        let (mut contents, mut from) = (Self { values: head.values, ..Self::default() }, 0);
        for (name, length) in head.floats {
            let array = words[from..from + length].iter().map(|&word| f32::from_le_bytes(word));
            contents.floats.insert(name, array.collect());
            from += length;
        }
        for (name, length) in head.whole {
            let array = words[from..from + length].iter().map(|&word| u32::from_le_bytes(word));
            contents.whole.insert(name, array.collect());
            from += length;
        }
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Contents {
        let mut contents = Contents::default();
        contents.put("epoch", &3u64).unwrap();
        contents.put("tenth", &0.1f64).unwrap();
        contents.floats.insert("w".into(), vec![1.5, f32::MIN_POSITIVE, -0.0, f32::NAN]);
        contents.whole.insert("order".into(), vec![0, u32::MAX, 7]);
        contents
    }

    #[test]
    fn every_bit_comes_back() {
        let back = Contents::decode(&sample().encode().unwrap(), "test").unwrap();
        let bits = |c: &Contents| c.floats["w"].iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&sample()));
        assert_eq!((&back.whole, &back.values), (&sample().whole, &sample().values));
        assert_eq!(back.values["tenth"].as_f64().unwrap().to_bits(), 0.1f64.to_bits());
    }

    #[test]
    fn any_single_changed_or_missing_byte_is_noticed() {
        let bytes = sample().encode().unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Contents::decode(&changed, "test").is_err(), "byte {at}");
            assert!(Contents::decode(&bytes[..at], "test").is_err(), "cut at {at}");
        }
    }
}
