//! Which samples: exact shares, and the streams the laws draw from.
//!
//! The streams of purpose `Noise` are told apart by their epoch number. With one seed, a lower rate touches a subset of what
//! a higher rate touches, because both take the front of the same permutation or compare the same throw.

use super::spec::Rate;
use crate::draw::{Draw, Purpose};

/// What a stream serves: its number is part of every stored result.
const SAMPLE: u64 = 0;
const WHOLE_SET: u64 = 1;
const ONE_CLASS: u64 = 2;

/// The stream of one sample.
pub(super) fn of_sample(seed: u64, sample: usize) -> Draw {
    Draw::new(seed, Purpose::Noise, SAMPLE, sample as u64)
}

/// floor(rn) samples of 0..n, chosen without replacement.
pub(super) fn from_all(seed: u64, n: usize, rate: Rate) -> Vec<u32> {
    let mut order = Draw::new(seed, Purpose::Noise, WHOLE_SET, 0).permutation(n);
    order.truncate(whole(rate, n).floor() as usize);
    order
}

/// ceil(rn) of a class's samples, chosen without replacement.
pub(super) fn from_class(seed: u64, class: u32, members: &[u32], rate: Rate) -> Vec<u32> {
    let n = members.len();
    let order = Draw::new(seed, Purpose::Noise, ONE_CLASS, class.into()).permutation(n);
    order.iter().take(whole(rate, n).ceil() as usize).map(|&at| members[at as usize]).collect()
}

/// rn, freed of the rounding of decimal rates: 0.29 of 100 is 29, though its product in binary lies just below.
fn whole(rate: Rate, n: usize) -> f64 {
    let product = rate.get() * n as f64;
    let near = product.round();
    if (product - near).abs() <= 1e-12 * product { near } else { product }
}

/// The samples of every class.
pub(super) fn members(labels: &[u32], classes: usize) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); classes];
    labels.iter().enumerate().for_each(|(i, &label)| members[label as usize].push(i as u32));
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_rates_count_as_written() {
        let count = |rate, n| {
            let rate = Rate::new(rate).unwrap();
            (whole(rate, n).floor(), whole(rate, n).ceil())
        };
        assert_eq!(count(0.29, 100), (29.0, 29.0));
        assert_eq!(count(0.07, 100), (7.0, 7.0));
        assert_eq!(count(0.5, 7), (3.0, 4.0));
        assert_eq!(count(0.3, 50_000), (15_000.0, 15_000.0));
        assert_eq!(count(1e-9, 10), (0.0, 1.0));
        for n in 0..2000usize {
            for percent in 0..=100 {
                let exact = (percent * n / 100, (percent * n).div_ceil(100));
                assert_eq!(count(percent as f64 / 100.0, n), (exact.0 as f64, exact.1 as f64));
            }
        }
    }

    #[test]
    fn a_lower_rate_touches_a_subset() {
        let few = from_all(3, 100, Rate::new(0.2).unwrap());
        assert_eq!(few, from_all(3, 100, Rate::new(0.7).unwrap())[..20]);
    }
}
