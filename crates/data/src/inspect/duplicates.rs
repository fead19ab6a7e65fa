//! Items that are the same byte by byte.

use crate::{Dataset, Items, Result};
use rayon::prelude::*;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The first 128 bits of the sha256 of an item's bytes, and the item's number.
pub(super) type Print = (u128, usize);

/// Of bytes.
pub(super) fn print_of(bytes: &[u8]) -> u128 {
    let digest = Sha256::digest(bytes);
    digest.iter().take(16).fold(0, |print, &byte| print << 8 | u128::from(byte))
}

/// Items that are the same byte by byte.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Groups of equal items.
    pub groups: usize,
    /// Items in such groups.
    pub items: usize,
    /// Groups whose given labels differ: at least one of them is wrong.
    pub contradicting: usize,
    /// The first few groups, contradicting ones before others, else in order of their first item.
    pub first: Vec<Group>,
}

/// A group of equal items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// How many.
    pub size: usize,
    /// The first few of them.
    pub indices: Vec<usize>,
    /// The given labels of those.
    pub labels: Vec<u32>,
    /// Whether given labels differ within the whole group.
    pub contradicting: bool,
}

/// Groups of equal prints.
pub(super) fn find(mut prints: Vec<Print>, given: &[u32], examples: usize) -> Duplicates {
    prints.par_sort_unstable();
    let mut found = Duplicates::default();
    let mut groups: Vec<(bool, &[Print])> = Vec::new();
    for group in prints.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        let label = |print: &Print| given.get(print.1);
        let contradicting = group.iter().any(|print| label(print) != label(&group[0]));
        found.groups += 1;
        found.items += group.len();
        found.contradicting += usize::from(contradicting);
        groups.push((contradicting, group));
    }
    groups.sort_unstable_by_key(|(contradicting, group)| (!contradicting, group[0].1));
    found.first = groups
        .into_iter()
        .take(examples)
        .map(|(contradicting, group)| {
            let indices: Vec<usize> = group.iter().map(|print| print.1).take(examples).collect();
            let labels = indices.iter().filter_map(|&i| given.get(i).copied()).collect();
            Group { size: group.len(), indices, labels, contradicting }
        })
        .collect();
    found
}

/// Items of one part that are, byte by byte, in the part that is learnt from as well: a test with them judges memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Shared {
    /// How many items of the other part.
    pub items: usize,
    /// Those whose given label is another there.
    pub contradicting: usize,
    /// The first few, contradicting ones before others: number in the training split, number in the other.
    pub first: Vec<(usize, usize)>,
}

/// Items of `other` that are in `train` as well.
pub fn shared(train: &Dataset, other: &Dataset, examples: usize) -> Shared {
    let places: HashMap<u128, usize> = prints(train.items()).into_iter().rev().collect();
    let mut pairs: Vec<(bool, usize, usize)> = Vec::new();
    for (print, at) in prints(other.items()) {
        if let Some(&place) = places.get(&print) {
            pairs.push((train.given()[place] == other.given()[at], place, at));
        }
    }
    let contradicting = pairs.iter().filter(|(same, _, _)| !same).count();
    pairs.sort_by_key(|&(same, _, at)| (same, at));
    let first = pairs.iter().take(examples).map(|&(_, place, at)| (place, at)).collect();
    Shared { items: pairs.len(), contradicting, first }
}

/// Prints of all items that can be read, in their order. One that cannot is a finding of [`super::inspect`], and equals nothing.
fn prints(items: &Items) -> Vec<Print> {
    let start = || match items {
        Items::Images(_) => (Vec::new(), Vec::new()),
        Items::Features(store) => (vec![0.0; store.dim()], Vec::new()),
    };
    let print = |(row, bytes): &mut (Vec<f32>, Vec<u8>), index| -> Result<Print> {
        match items {
            Items::Images(store) => Ok((print_of(&store.bytes(index)?), index)),
            Items::Features(store) => {
                store.read(index, row)?;
                bytes.clear();
                bytes.extend(row.iter().flat_map(|x| x.to_le_bytes()));
                Ok((print_of(bytes), index))
            }
        }
    };
    (0..items.len()).into_par_iter().map_init(start, print).filter_map(|print| print.ok()).collect()
}
