//! Which pairs of a batch are related and which are not.
//!
//! With the class distance $D$ of the [tree](crate::taxonomy) and labels $\tilde y$, over unordered pairs
//! $i < j$ of a batch of $B$ samples:
//!
//! $$P_{neg} = \\{D(\tilde y_i, \tilde y_j) > \eta_{\max}\\}, \qquad P_{sim} = \\{0 < D(\tilde y_i, \tilde y_j) \le \eta_{\min}\\}.$$
//!
//! Both depend on labels alone, so no list of pairs is ever made: samples fall into *groups* (one per
//! class present), and a table over groups says which of them are unrelated.

use crate::taxonomy::{Distances, Relation, Thresholds};
use crate::threads::Threads;
use crate::{PairSource, Real, Settings};

/// Relation of every two classes under fixed thresholds.
#[derive(Debug, Clone)]
pub(crate) struct ClassRelations {
    pub(crate) classes: usize,
    table: Vec<Relation>,
}

impl ClassRelations {
    pub(crate) fn new(distances: &Distances, thresholds: Thresholds) -> Self {
        let table = distances.as_slice().iter().map(|&d| thresholds.relation(d)).collect();
        Self { classes: distances.classes(), table }
    }

    /// Relations of all pairs of classes, row by row.
    pub(crate) fn table(&self) -> &[Relation] {
        &self.table
    }

    /// Relation of two classes.
    #[inline(always)]
    pub(crate) fn of(&self, a: usize, b: usize) -> Relation {
        self.table[a * self.classes + b]
    }
}

/// A batch as the terms see it.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a, T> {
    pub(crate) threads: Threads,
    pub(crate) gram: &'a [T],
    pub(crate) b: usize,
    pub(crate) pairs: &'a PairSets<T>,
}

/// Group of each sample, how many groups, members, starts and barriers, as in [`PairSets`].
type Groups<T> = (Vec<usize>, usize, Vec<usize>, Vec<usize>, Vec<T>);

/// The pair sets of one batch. Buffers are kept from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct PairSets<T> {
    /// What delta sees. Group of each sample: its class, or with random pairs the sample itself.
    pub(crate) group_of: Vec<usize>,
    /// How many groups there are.
    pub(crate) groups: usize,
    /// Samples ordered by group; group g holds `members[starts[g]..starts[g + 1]]`.
    pub(crate) members: Vec<usize>,
    pub(crate) starts: Vec<usize>,
    /// groups x groups: 0 where two groups are unrelated, minus infinity elsewhere.
    pub(crate) barrier: Vec<T>,
    /// What SNOP sees: rows over the batch, 1 where a sample is unrelated, 0 elsewhere; and which row a sample has, that of its
    /// class or with random pairs its own.
    unrelated: Vec<T>,
    row_of: Vec<usize>,
    /// Samples ordered by class, and per class present the classes related to it, as places in `class_starts`.
    class_members: Vec<usize>,
    class_starts: Vec<usize>,
    class_of: Vec<usize>,
    kin: Vec<usize>,
    kin_starts: Vec<usize>,
    /// P, the number of unrelated pairs.
    pub(crate) p: usize,
    /// Q, the number of related pairs.
    pub(crate) q: usize,
    class_group: Vec<usize>,
    class_of_group: Vec<usize>,
}

impl<T: Real> PairSets<T> {
    /// Finds the pair sets of a batch. Every label must be a class; `step` numbers the draw of random pairs.
    pub(crate) fn find(
        &mut self,
        labels: &[usize],
        relations: &ClassRelations,
        settings: &Settings,
        step: u64,
    ) {
        self.group_by_class(labels, relations);
        self.sort_members();
        self.class_of.clone_from(&self.group_of);
        self.class_members.clone_from(&self.members);
        self.class_starts.clone_from(&self.starts);
        if settings.pairs == PairSource::Tree {
            self.spread();
        }
        if [settings.pairs, settings.delta_pairs].contains(&PairSource::Random) {
            let by_class = (settings.delta_pairs == PairSource::Tree).then(|| self.take_groups());
            self.draw(labels.len(), settings.seed, step);
            self.sort_members();
            if settings.pairs == PairSource::Random {
                self.spread();
            }
            if let Some(by_class) = by_class {
                self.set_groups(by_class);
            }
        }
    }

    fn take_groups(&mut self) -> Groups<T> {
        let take = std::mem::take::<Vec<usize>>;
        let Self { group_of, groups, members, starts, barrier, .. } = self;
        (take(group_of), *groups, take(members), take(starts), std::mem::take(barrier))
    }

    fn set_groups(&mut self, groups: Groups<T>) {
        (self.group_of, self.groups, self.members, self.starts, self.barrier) = groups;
    }

    /// Groups by class, with P and Q counted from the group sizes.
    fn group_by_class(&mut self, labels: &[usize], relations: &ClassRelations) {
        const ABSENT: usize = usize::MAX;
        self.class_group.clear();
        self.class_group.resize(relations.classes, ABSENT);
        self.class_of_group.clear();
        self.group_of.clear();
        for &label in labels {
            if self.class_group[label] == ABSENT {
                self.class_group[label] = self.class_of_group.len();
                self.class_of_group.push(label);
            }
            self.group_of.push(self.class_group[label]);
        }
        self.groups = self.class_of_group.len();
        self.count_members();
        self.barrier.clear();
        (self.p, self.q) = (0, 0);
        self.kin.clear();
        self.kin_starts.clear();
        for (g, &a) in self.class_of_group.iter().enumerate() {
            self.kin_starts.push(self.kin.len());
            for (h, &b) in self.class_of_group.iter().enumerate() {
                let relation = relations.of(a, b);
                self.barrier.push(if relation == Relation::Unrelated { T::ZERO } else { T::LOWEST });
                if relation == Relation::Related {
                    self.kin.push(h);
                }
                if g < h {
                    let pairs = (self.starts[g + 1] - self.starts[g]) * (self.starts[h + 1] - self.starts[h]);
                    match relation {
                        Relation::Unrelated => self.p += pairs,
                        Relation::Related => self.q += pairs,
                        Relation::Same | Relation::Neutral => {}
                    }
                }
            }
        }
        self.kin_starts.push(self.kin.len());
    }

    /// Replaces the unrelated pairs by as many random ones: every sample becomes a group of its own.
    fn draw(&mut self, b: usize, seed: u64, step: u64) {
        self.groups = b;
        self.group_of.clear();
        self.group_of.extend(0..b);
        self.count_members();
        self.barrier.clear();
        self.barrier.resize(b * b, T::LOWEST);
        let all = b * b.saturating_sub(1) / 2;
        // Floyd's sampling without replacement: after step t the set is a uniform subset of 0..=t.
        for t in all - self.p..all {
            let candidate = ((uniform(seed, step, t as u64) as u128 * (t as u128 + 1)) >> 64) as usize;
            let (i, j) = pair_number(candidate);
            let (i, j) = if self.barrier[i * b + j] == T::ZERO { pair_number(t) } else { (i, j) };
            self.barrier[i * b + j] = T::ZERO;
            self.barrier[j * b + i] = T::ZERO;
        }
    }

    /// `starts` from `group_of`.
    fn count_members(&mut self) {
        self.starts.clear();
        self.starts.resize(self.groups + 1, 0);
        for &g in &self.group_of {
            self.starts[g + 1] += 1;
        }
        for g in 0..self.groups {
            self.starts[g + 1] += self.starts[g];
        }
    }

    /// `members` by counting sort; within a group in batch order.
    fn sort_members(&mut self) {
        self.members.clear();
        self.members.resize(self.group_of.len(), 0);
        for (i, &g) in self.group_of.iter().enumerate() {
            self.members[self.starts[g]] = i;
            self.starts[g] += 1;
        }
        // Each start has moved to its group's end, which is the next group's start: shift back.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    /// `unrelated` and `row_of` from the groups at hand.
    fn spread(&mut self) {
        self.row_of.clone_from(&self.group_of);
        self.unrelated.clear();
        for g in 0..self.groups {
            let barrier = &self.barrier[g * self.groups..][..self.groups];
            self.unrelated
                .extend(self.group_of.iter().map(|&h| if barrier[h] == T::ZERO { T::ONE } else { T::ZERO }));
        }
    }

    /// Samples of a group.
    pub(crate) fn samples(&self, group: usize) -> &[usize] {
        &self.members[self.starts[group]..self.starts[group + 1]]
    }

    /// The samples that are related to sample `i`, class by class.
    pub(crate) fn related_to(&self, i: usize) -> impl Iterator<Item = &[usize]> {
        let class = self.class_of[i];
        let kin = &self.kin[self.kin_starts[class]..self.kin_starts[class + 1]];
        kin.iter().map(|&k| &self.class_members[self.class_starts[k]..self.class_starts[k + 1]])
    }

    /// Row over the batch: 1 where a sample is unrelated to sample `i`.
    pub(crate) fn unrelated_to(&self, i: usize, b: usize) -> &[T] {
        &self.unrelated[self.row_of[i] * b..][..b]
    }
}

/// The `n`-th unordered pair in the order (0,1), (0,2), (1,2), (0,3), ...
fn pair_number(n: usize) -> (usize, usize) {
    // Largest j with j (j - 1) / 2 <= n; the square root may be off by one for large n.
    let mut j = ((1.0 + (8.0 * n as f64 + 1.0).sqrt()) / 2.0) as usize;
    while j * (j - 1) / 2 > n {
        j -= 1;
    }
    while j * (j + 1) / 2 <= n {
        j += 1;
    }
    (n - j * (j - 1) / 2, j)
}

/// A number that depends on the three counters alone (SplitMix64's finaliser over their mix).
pub(crate) fn uniform(seed: u64, step: u64, draw: u64) -> u64 {
    let mut x = 0u64;
    for word in [seed, step, draw] {
        x = x.wrapping_add(word).wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Taxonomy;

    fn found(labels: &[usize], settings: &Settings, step: u64) -> PairSets<f64> {
        let tree = Taxonomy::builtin("cifar10").unwrap();
        let mut sets = PairSets::default();
        sets.find(labels, &ClassRelations::new(&tree.distances(), Thresholds::default()), settings, step);
        sets
    }

    fn listed(sets: &PairSets<f64>, b: usize) -> Vec<(usize, usize)> {
        let all = (0..b).flat_map(|j| (0..j).map(move |i| (i, j)));
        all.filter(|&(i, j)| sets.unrelated_to(i, b)[j] == 1.0).collect()
    }

    #[test]
    fn pairs_are_numbered_without_gap_or_repeat() {
        let mut n = 0;
        for j in 0..200 {
            for i in 0..j {
                assert_eq!(pair_number(n), (i, j));
                n += 1;
            }
        }
        assert_eq!(pair_number(usize::MAX >> 12).1, 94_906_266);
    }

    #[test]
    fn counts_and_masks_agree_with_the_definition() {
        let tree = Taxonomy::builtin("cifar10").unwrap();
        let labels: Vec<usize> = (0..37).map(|i| (i * i + 3 * i) % 10).collect();
        let s = Settings::default();
        let sets = found(&labels, &s, 0);
        let (mut p, mut q) = (0, 0);
        for j in 0..37 {
            for i in 0..j {
                let d = tree.distance(labels[i], labels[j]);
                p += (d > s.eta_max) as usize;
                q += (d > 0 && d <= s.eta_min) as usize;
                assert_eq!(sets.unrelated_to(i, 37)[j] == 1.0, d > s.eta_max);
                assert_eq!(sets.unrelated_to(j, 37)[i] == 1.0, d > s.eta_max);
            }
        }
        assert_eq!((sets.p, sets.q), (p, q));
        let mut seen: Vec<usize> = (0..sets.groups).flat_map(|g| sets.samples(g).to_vec()).collect();
        assert!((0..sets.groups).all(|g| sets.samples(g).iter().all(|&i| sets.group_of[i] == g)));
        seen.sort_unstable();
        assert_eq!(seen, (0..37).collect::<Vec<_>>());
    }

    #[test]
    fn random_pairs_are_as_many_as_the_tree_gives_and_change_with_seed_and_step() {
        let labels: Vec<usize> = (0..30).map(|i| i % 10).collect();
        let tree = found(&labels, &Settings::default(), 0);
        let random = |seed, step| {
            let settings = Settings::default().with_pairs(PairSource::Random).with_seed(seed);
            listed(&found(&labels, &settings, step), 30)
        };
        assert_eq!(random(1, 1).len(), tree.p);
        assert_eq!(random(1, 1), random(1, 1));
        assert_ne!(random(1, 1), random(1, 2));
        assert_ne!(random(1, 1), random(2, 1));
        assert_ne!(random(1, 2), random(2, 1));
        assert_ne!(random(1, 1), listed(&tree, 30));
    }

    #[test]
    fn random_pairs_are_drawn_evenly() {
        // 12 samples, 66 pairs; over 4,000 steps each pair is drawn a binomial number of times.
        let labels: Vec<usize> = (0..12).map(|i| i % 10).collect();
        let settings = Settings::default().with_pairs(PairSource::Random);
        let mut hits = [[0usize; 12]; 12];
        let (steps, mut p) = (4_000, 0);
        for step in 0..steps {
            let sets = found(&labels, &settings, step);
            p = sets.p;
            for (i, j) in listed(&sets, 12) {
                hits[i][j] += 1;
            }
        }
        let share = p as f64 / 66.0;
        let (mean, spread) = (steps as f64 * share, (steps as f64 * share * (1.0 - share)).sqrt());
        for j in 0..12 {
            for i in 0..j {
                assert!((hits[i][j] as f64 - mean).abs() < 5.0 * spread, "pair {i}, {j}: {}", hits[i][j]);
            }
        }
    }
}
