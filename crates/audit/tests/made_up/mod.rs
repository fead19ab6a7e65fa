//! Made-up predictions whose truth is known: classes are Gaussians about corners, so that the exact probabilities can be computed.
#![allow(dead_code)]

use negscale_audit::{NoiseModel, Predictions};

/// Uniform numbers, the same in every run.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((x ^ (x >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = ((-2.0 * self.next().ln()).sqrt(), std::f64::consts::TAU * self.next());
        radius * angle.cos()
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() * count as f64) as usize
    }

    pub fn pick(&mut self, shares: &[f64]) -> usize {
        let mut left = self.next() * shares.iter().sum::<f64>();
        for (at, share) in shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return at;
            }
        }
        shares.len() - 1
    }
}

/// A row of a transition matrix for each true class.
pub type Flip<'a> = &'a dyn Fn(usize) -> Vec<f64>;

/// Every wrong class alike.
pub fn symmetric(classes: usize, rate: f64) -> impl Fn(usize) -> Vec<f64> {
    move |truth| {
        let other = rate / (classes - 1) as f64;
        (0..classes).map(|c| if c == truth { 1.0 - rate } else { other }).collect()
    }
}

/// Samples with exact predictions.
pub struct World {
    pub classes: usize,
    /// Probabilities of true labels.
    pub of_true: Vec<f32>,
    /// Probabilities of given labels.
    pub of_given: Vec<f32>,
    pub given: Vec<u32>,
    pub truth: Vec<u32>,
}

/// Every class is a corner at `distance` from the origin, all deviations are 1; given labels are drawn from true ones.
pub fn world(count: usize, classes: usize, distance: f64, flip: Flip, seed: u64) -> World {
    let mut chance = Chance(seed);
    let matrix: Vec<Vec<f64>> = (0..classes).map(flip).collect();
    let mut world =
        World { classes, of_true: Vec::new(), of_given: Vec::new(), given: Vec::new(), truth: Vec::new() };
    for _ in 0..count {
        let truth = chance.below(classes);
        let at = |c: usize, chance: &mut Chance| chance.normal() + if c == truth { distance } else { 0.0 };
        let logits: Vec<f64> = (0..classes).map(|c| distance * at(c, &mut chance)).collect();
        let most = logits.iter().copied().fold(f64::MIN, f64::max);
        let raw: Vec<f64> = logits.iter().map(|z| (z - most).exp()).collect();
        let sum: f64 = raw.iter().sum();
        let row: Vec<f64> = raw.iter().map(|x| x / sum).collect();
        let given = |g: usize| (0..classes).map(|y| row[y] * matrix[y][g]).sum::<f64>();
        world.of_given.extend((0..classes).map(|g| given(g).min(1.0) as f32));
        world.of_true.extend(row.iter().map(|&q| q as f32));
        world.given.push(chance.pick(&matrix[truth]) as u32);
        world.truth.push(truth as u32);
    }
    world
}

impl World {
    pub fn is_wrong(&self) -> Vec<bool> {
        self.given.iter().zip(&self.truth).map(|(given, truth)| given != truth).collect()
    }

    /// The share of wrong labels.
    pub fn rate(&self) -> f64 {
        self.is_wrong().iter().filter(|wrong| **wrong).count() as f64 / self.given.len() as f64
    }

    /// The share of samples whose likeliest class is not the true one.
    pub fn overlap(&self) -> f64 {
        let is_off = |(row, &truth): (&[f32], &u32)| row.iter().any(|p| *p > row[truth as usize]);
        let rows = self.of_true.chunks(self.classes).zip(&self.truth);
        rows.filter(|row| is_off(*row)).count() as f64 / self.truth.len() as f64
    }

    /// What a model that was trained on the given labels would say.
    pub fn plain(&self) -> Predictions {
        kept(&self.of_given, &self.given, self.classes)
    }

    /// What a model that resisted noise would say.
    pub fn resistant(&self) -> Predictions {
        kept(&self.of_true, &self.given, self.classes)
    }
}

#[allow(clippy::unwrap_used)]
pub fn kept(rows: &[f32], given: &[u32], classes: usize) -> Predictions {
    Predictions::new(rows, given, classes).unwrap()
}

pub fn scores(model: &NoiseModel) -> Vec<f64> {
    model.alternatives().iter().map(|found| found.score).collect()
}

/// The same by a pool of so many threads.
#[allow(clippy::unwrap_used)]
pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}
