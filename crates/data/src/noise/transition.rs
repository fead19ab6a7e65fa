//! What became of the true labels: counts of (true class, given class).

use std::collections::BTreeMap;

/// Counts of (true class, given class). Kept sparse, since thousands of classes have millions of empty cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    classes: usize,
    cells: BTreeMap<(u32, u32), u64>,
}

impl Transition {
    /// Counts over samples.
    pub fn new(classes: usize, truth: &[u32], given: &[u32]) -> Self {
        let mut cells = BTreeMap::new();
        for (&from, &to) in truth.iter().zip(given) {
            *cells.entry((from, to)).or_default() += 1;
        }
        Self { classes, cells }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Samples of true class `from` whose given class is `to`.
    pub fn count(&self, from: u32, to: u32) -> u64 {
        self.cells.get(&(from, to)).copied().unwrap_or(0)
    }

    /// The cells that are not zero: (true class, given class, count), in order.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.cells.iter().map(|(&(from, to), &count)| (from, to, count))
    }

    /// All counts, a row per true class. Takes room for C x C numbers.
    pub fn counts(&self) -> Vec<Vec<u64>> {
        let mut rows = vec![vec![0; self.classes]; self.classes];
        self.cells().for_each(|(from, to, count)| rows[from as usize][to as usize] = count);
        rows
    }

    /// Every row divided by its sum; a class without samples has a row of zeros. Takes room for C x C numbers.
    pub fn shares(&self) -> Vec<Vec<f64>> {
        let mut rows: Vec<Vec<f64>> =
            self.counts().into_iter().map(|row| row.into_iter().map(|n| n as f64).collect()).collect();
        for row in &mut rows {
            let sum: f64 = row.iter().sum();
            row.iter_mut().filter(|_| sum > 0.0).for_each(|share| *share /= sum);
        }
        rows
    }

    /// Share of samples whose given class is not the true one; 0 where there are no samples.
    pub fn wrong(&self) -> f64 {
        let (mut wrong, mut all) = (0, 0);
        for (from, to, count) in self.cells() {
            all += count;
            wrong += if from == to { 0 } else { count };
        }
        if all == 0 { 0.0 } else { wrong as f64 / all as f64 }
    }

    /// For every true class, the share of its wrong labels that its most frequent wrong class takes: 1 if all its wrong
    /// labels agree, 1/(C-1) if they are spread evenly, 0 if none is wrong.
    pub fn dominant(&self) -> Vec<f64> {
        let mut most = vec![0u64; self.classes];
        let mut sum = vec![0u64; self.classes];
        for (from, _, count) in self.cells().filter(|(from, to, _)| from != to) {
            let row = from as usize;
            most[row] = most[row].max(count);
            sum[row] += count;
        }
        most.iter()
            .zip(sum)
            .map(|(&most, sum)| if sum == 0 { 0.0 } else { most as f64 / sum as f64 })
            .collect()
    }
}
