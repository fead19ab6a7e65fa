//! Samples in groups, such that every question about pairs is one about pairs of groups.
//!
//! Two groupings answer all questions. By true label: class x (label right, label wrong). By given label: class x (right; wrong
//! and truly of a related, neutral or unrelated class), where the last three tell cross-noise pairs apart. A pair of groups
//! belongs to one bucket: category x relation.

use crate::labels::Labels;
use crate::pairs::{ByRelation, Categories, Known, Pairs, Sums};
use std::collections::HashMap;

/// Three categories of four relations, then three relations of cross-noise pairs.
pub(crate) const BUCKETS: usize = 15;
/// Where cross-noise pairs begin: related, neutral, unrelated.
const CROSS: usize = 12;

/// Samples in groups, empty ones left out.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// Numbers of the samples, group after group.
    members: Vec<u32>,
    /// Where each group begins, and where the last one ends.
    starts: Vec<usize>,
    /// G x G buckets.
    buckets: Vec<u8>,
    /// For each group, that of the grouping before with the same samples.
    twins: Vec<Option<usize>>,
}

/// Class and state of a group.
type Name = (u32, usize);

impl Groups {
    fn new(
        samples: usize,
        keep: &impl Fn(usize) -> bool,
        name: impl Fn(usize) -> Name,
        bucket: impl Fn(Name, Name) -> usize,
    ) -> Self {
        let mut members: Vec<u32> = (0..samples).filter(|&sample| keep(sample)).map(|s| s as u32).collect();
        // Stable, so that the order inside a group is that of the samples.
        members.sort_by_key(|&sample| name(sample as usize));
        let (mut starts, mut names) = (Vec::new(), Vec::new());
        for (at, &sample) in members.iter().enumerate() {
            let name = name(sample as usize);
            if names.last() != Some(&name) {
                names.push(name);
                starts.push(at);
            }
        }
        starts.push(members.len());
        let pairs = names.iter().flat_map(|&a| names.iter().map(move |&b| (a, b)));
        let buckets = pairs.map(|(a, b)| bucket(a, b) as u8).collect();
        let twins = vec![None; names.len()];
        Self { members, starts, buckets, twins }
    }

    /// All of the samples to be kept, in one group.
    pub fn whole(samples: usize, keep: impl Fn(usize) -> bool) -> Self {
        Self::new(samples, &keep, |_| (0, 0), |_, _| 0)
    }

    /// Number of groups G.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Samples of a group.
    pub fn members(&self, group: usize) -> &[u32] {
        &self.members[self.starts[group]..self.starts[group + 1]]
    }

    /// The group of the first grouping that has the same samples.
    pub fn twin(&self, group: usize) -> Option<usize> {
        self.twins[group]
    }

    fn find_twins(&mut self, first: &Groups) {
        let places: HashMap<&[u32], usize> = (0..first.len()).map(|at| (first.members(at), at)).collect();
        self.twins = (0..self.len()).map(|at| places.get(self.members(at)).copied()).collect();
    }

    /// Bucket of the pairs between two groups.
    pub fn bucket(&self, a: usize, b: usize) -> usize {
        usize::from(self.buckets[a * self.len() + b])
    }

    /// Number of unordered pairs of every bucket.
    pub fn counts(&self) -> [u64; BUCKETS] {
        let mut counts = [0; BUCKETS];
        for a in 0..self.len() {
            let n = self.members(a).len() as u64;
            counts[self.bucket(a, a)] += n * n.saturating_sub(1) / 2;
            for b in a + 1..self.len() {
                counts[self.bucket(a, b)] += n * self.members(b).len() as u64;
            }
        }
        counts
    }
}

/// Both groupings of some samples.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    given: Groups,
    truth: Option<Groups>,
}

impl Division {
    /// Of the samples to be kept.
    pub fn new(labels: &Labels, keep: impl Fn(usize) -> bool) -> Self {
        let (given, truth) = (labels.given(), labels.truth());
        let state = |sample: usize| match truth {
            Some(truth) if truth[sample] != given[sample] => labels.relation(given[sample], truth[sample]),
            _ => 0,
        };
        let category = |a: usize, b: usize| usize::from(a > 0) + usize::from(b > 0);
        let by_given = Groups::new(
            labels.len(),
            &keep,
            |sample| (given[sample], state(sample)),
            |(a, a_state), (b, b_state)| match (category(a_state, b_state), labels.relation(a, b)) {
                (1, 0) => CROSS + a_state.max(b_state) - 1,
                (category, relation) => 4 * category + relation,
            },
        );
        let by_truth = truth.map(|truth| {
            let mut groups = Groups::new(
                labels.len(),
                &keep,
                |sample| (truth[sample], usize::from(state(sample) > 0)),
                |(a, a_state), (b, b_state)| 4 * category(a_state, b_state) + labels.relation(a, b),
            );
            groups.find_twins(&by_given);
            groups
        });
        Self { given: by_given, truth: by_truth }
    }

    /// By given labels, and by true ones where they are known.
    pub fn groupings(&self) -> Vec<&Groups> {
        [Some(&self.given), self.truth.as_ref()].into_iter().flatten().collect()
    }

    /// `K` measures, each with a sum for every bucket of every grouping, put in their places; `finish` sees only sums over pairs
    /// that there are.
    pub fn pairs<const K: usize, T>(
        &self,
        measures: [Vec<[f64; BUCKETS]>; K],
        finish: impl Fn(&Sums<K>) -> T,
    ) -> Pairs<T> {
        let of = |which: usize, groups: &Groups| {
            let counts = groups.counts();
            let sums = |at: usize| std::array::from_fn(|k| measures[k][which][at]);
            std::array::from_fn::<Sums<K>, BUCKETS, _>(|at| Sums { pairs: counts[at], sums: sums(at) })
        };
        let given = of(0, &self.given);
        let gather = |buckets: &[Sums<K>; BUCKETS], places: &[usize]| {
            let mut total = Sums::default();
            places.iter().for_each(|&at| total += buckets[at]);
            (total.pairs > 0).then(|| finish(&total))
        };
        let relations = |buckets: &[Sums<K>; BUCKETS], categories: &[usize]| {
            ByRelation::of(|relation| {
                let mut places: Vec<usize> =
                    categories.iter().map(|category| 4 * category + relation).collect();
                if relation == 0 && categories.contains(&1) {
                    places.extend(CROSS..BUCKETS);
                }
                gather(buckets, &places)
            })
        };
        let categories = |buckets: &[Sums<K>; BUCKETS]| Categories {
            clean_clean: relations(buckets, &[0]),
            clean_noisy: relations(buckets, &[1]),
            noisy_noisy: relations(buckets, &[2]),
        };
        let known = self.truth.as_ref().map(|groups| {
            let truth = of(1, groups);
            Known {
                truth: relations(&truth, &[0, 1, 2]),
                by_truth: categories(&truth),
                by_given: categories(&given),
                cross_noise: ByRelation::of(|relation| {
                    let place = (CROSS + relation).checked_sub(1).filter(|_| relation > 0)?;
                    gather(&given, &[place])
                }),
            }
        });
        Pairs { given: relations(&given, &[0, 1, 2]), known }
    }
}
