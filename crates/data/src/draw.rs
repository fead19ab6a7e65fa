//! Randomness by counters: every draw is a function of (seed, purpose, epoch, sample).
//!
//! The four numbers are the key of a ChaCha8 stream, so no two of them share a stream, and neither the order of samples, nor
//! the number of threads, nor a resumed run can change what is drawn. The conversions below are our own, because those of
//! general crates may change between versions, and a noise file must not.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What a draw is for. The numbers are part of every stored result: never reuse or change one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Which labels become wrong, and what they become.
    Noise = 1,
    /// Matrices of instance-dependent noise.
    NoiseMatrix = 2,
    /// Order of samples in an epoch.
    Order = 3,
    /// Which samples are held out for validation.
    HeldOut = 4,
    /// What a training method draws for a batch, such as the weight of a mixture.
    Method = 5,
    /// Which samples a smaller dataset has.
    Sample = 6,
    /// Which samples a training method is told the true labels of.
    Truth = 7,
    /// First view of a sample; further views count on from here.
    View = 16,
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Draw(ChaCha8Rng);

impl Draw {
    /// The stream of (seed, purpose, epoch, sample).
    pub fn new(seed: u64, purpose: Purpose, epoch: u64, sample: u64) -> Self {
        Self::numbered(seed, purpose, 0, epoch, sample)
    }

    /// One of several streams with the same purpose, such as the n-th view of a sample.
    pub fn numbered(seed: u64, purpose: Purpose, n: u64, epoch: u64, sample: u64) -> Self {
        let mut key = [0u8; 32];
        for (bytes, word) in key.chunks_exact_mut(8).zip([seed, purpose as u64 + n, epoch, sample]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in [low, high).
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform in 0..n, without bias (by rejection).
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing to draw from");
        let fair = u64::MAX - u64::MAX % n;
        loop {
            let bits = self.bits();
            if bits < fair {
                return bits % n;
            }
        }
    }

    /// True with probability p.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Standard normal (Box-Muller, the cosine half).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A permutation of 0..n (Fisher-Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_key_matters_and_the_same_key_repeats() {
        let first = |a, p, n, e, s| Draw::numbered(a, p, n, e, s).bits();
        let base = first(1, Purpose::View, 0, 2, 3);
        assert_eq!(base, first(1, Purpose::View, 0, 2, 3));
        for other in [
            first(2, Purpose::View, 0, 2, 3),
            first(1, Purpose::Noise, 0, 2, 3),
            first(1, Purpose::View, 1, 2, 3),
            first(1, Purpose::View, 0, 3, 3),
            first(1, Purpose::View, 0, 2, 4),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn stored_streams_never_change() {
        let mut draw = Draw::new(7, Purpose::Noise, 0, 0);
        assert_eq!([draw.bits(), draw.bits()], [16_046_041_343_225_761_205, 995_032_270_771_533_213]);
    }

    #[test]
    fn uniform_numbers_and_normals_have_their_moments() {
        let mut draw = Draw::new(1, Purpose::Noise, 0, 0);
        let n = 200_000;
        let (mut mean, mut square, mut unit) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = draw.normal();
            (mean, square, unit) = (mean + x, square + x * x, unit + draw.unit());
        }
        let n = n as f64;
        assert!((mean / n).abs() < 4.0 / n.sqrt());
        assert!((square / n - 1.0).abs() < 4.0 * (2.0 / n).sqrt());
        assert!((unit / n - 0.5).abs() < 4.0 * (1.0 / 12.0 / n).sqrt());
    }

    #[test]
    fn a_permutation_holds_every_index_once() {
        let mut p = Draw::new(3, Purpose::Order, 1, 0).permutation(1000);
        assert_ne!(p, (0..1000).collect::<Vec<_>>());
        p.sort_unstable();
        assert_eq!(p, (0..1000).collect::<Vec<_>>());
    }
}
