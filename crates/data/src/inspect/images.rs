//! Pictures: which sizes, and which cannot be decoded.

use super::duplicates::{Print, print_of};
use super::{Failure, Unreadable};
use crate::{Error, ImageStore, Shape};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// Pictures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Images {
    /// Readable ones.
    pub readable: usize,
    /// Number of different shapes.
    pub kinds: usize,
    /// How many have which shape, the most frequent first. At most 1,000 shapes are told.
    pub shapes: Vec<ShapeCount>,
}

/// How many pictures have a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ShapeCount {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 (grey) or 3 (colour).
    pub channels: usize,
    /// How many.
    pub count: usize,
}

const SHAPES_TOLD: usize = 1000;

#[derive(Default)]
struct Tally {
    shapes: BTreeMap<(usize, usize, usize), usize>,
    unreadable: Unreadable,
    prints: Vec<Print>,
}

impl Tally {
    fn add(&mut self, store: &dyn ImageStore, index: usize, examples: usize) {
        let failed = |error: Error| Failure::new(store, index, &error);
        match store.bytes(index) {
            Ok(bytes) => self.prints.push((print_of(&bytes), index)),
            Err(error) => return self.unreadable.add(examples, || failed(error)),
        }
        match store.load(index) {
            Ok(image) => {
                let Shape { width, height, channels } = image.shape;
                *self.shapes.entry((width, height, channels)).or_default() += 1;
            }
            Err(error) => self.unreadable.add(examples, || failed(error)),
        }
    }

    /// Of two in order of items.
    fn join(mut self, later: Self, examples: usize) -> Self {
        later.shapes.into_iter().for_each(|(shape, count)| *self.shapes.entry(shape).or_default() += count);
        self.unreadable.join(later.unreadable, examples);
        self.prints.extend(later.prints);
        self
    }
}

/// Reads every picture once.
pub(super) fn look(store: &dyn ImageStore, examples: usize) -> (Images, Unreadable, Vec<Print>) {
    let tally = (0..store.len())
        .into_par_iter()
        .fold(Tally::default, |mut tally, index| {
            tally.add(store, index, examples);
            tally
        })
        .reduce(Tally::default, |a, b| a.join(b, examples));
    let mut shapes: Vec<ShapeCount> = tally
        .shapes
        .into_iter()
        .map(|((width, height, channels), count)| ShapeCount { width, height, channels, count })
        .collect();
    shapes.sort_by_key(|shape| std::cmp::Reverse(shape.count));
    let (readable, kinds) = (shapes.iter().map(|shape| shape.count).sum(), shapes.len());
    shapes.truncate(SHAPES_TOLD);
    (Images { readable, kinds, shapes }, tally.unreadable, tally.prints)
}
