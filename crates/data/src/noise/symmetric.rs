//! Symmetric noise: the new label does not depend on the true one. With rate r, N samples, C classes:
//!
//! | convention | touched | new label | share wrong |
//! |---|---|---|---|
//! | inclusive (DivideMix and its family) | floor(rN) of all | uniform over all C | r(C-1)/C |
//! | exclusive, binomial (Co-teaching) | each with probability r | uniform over the C-1 others | r |
//! | exclusive, exact (Nested Co-teaching) | ceil(r n_c) of class c | uniform over the C-1 others | r |

use super::choice;
use super::spec::Rate;
use crate::draw::Draw;

pub(super) fn inclusive(clean: &[u32], classes: usize, rate: Rate, seed: u64) -> Vec<u32> {
    let mut labels = clean.to_vec();
    for i in choice::from_all(seed, clean.len(), rate) {
        let i = i as usize;
        labels[i] = choice::of_sample(seed, i).below(classes as u64) as u32;
    }
    labels
}

pub(super) fn binomial(clean: &[u32], classes: usize, rate: Rate, seed: u64) -> Vec<u32> {
    let flip = |(i, &label): (usize, &u32)| {
        let mut draw = choice::of_sample(seed, i);
        if draw.chance(rate.get()) { other(&mut draw, label, classes) } else { label }
    };
    clean.iter().enumerate().map(flip).collect()
}

pub(super) fn exact(clean: &[u32], classes: usize, rate: Rate, seed: u64) -> Vec<u32> {
    let mut labels = clean.to_vec();
    for (class, members) in choice::members(clean, classes).iter().enumerate() {
        for i in choice::from_class(seed, class as u32, members, rate) {
            labels[i as usize] = other(&mut choice::of_sample(seed, i as usize), class as u32, classes);
        }
    }
    labels
}

/// Uniform over the classes that are not `label`; there must be one.
fn other(draw: &mut Draw, label: u32, classes: usize) -> u32 {
    let at = draw.below(classes as u64 - 1) as u32;
    at + u32::from(at >= label)
}
