//! Trees learnt from features, for data of which nobody has drawn a tree.
//!
//! With $m_c$ the mean feature of class $c$ (C classes, $d$ numbers each):
//!
//! 1. centre and normalise, $u_c = (m_c - \bar m) / \lVert m_c - \bar m \rVert$ with
//!    $\bar m = \frac1C \sum_c m_c$: what all classes share says nothing about which are alike;
//! 2. take the cosine distance $1 - u_a \cdot u_b$ between classes;
//! 3. join classes bottom-up by average linkage, which orders all merges by their height;
//! 4. cut at two heights. Classes joined below the lower cut form a group, those joined below the upper
//!    cut a broad group.
//!
//! The tree always has the levels root, broad group, group, class, so a distance means what it means in
//! the built-in trees at the default thresholds (3, 5):
//!
//! | classes share      | $D$ | relation  |
//! |--------------------|-----|-----------|
//! | the group          | 2   | related   |
//! | the broad group    | 4   | neutral   |
//! | only the root      | 6   | unrelated |
//!
//! The heights follow from shares of class pairs ([`LearntSettings`]), because heights themselves are
//! not comparable between networks.

use serde::{Deserialize, Serialize};

use super::Taxonomy;
use super::grow::{Twig, grow};
use super::names::{FreshNames, shortlist};
use crate::{Error, Result};

/// The distance of classes that share only the root, the largest in a learnt tree.
pub const LEARNT_MAX_DISTANCE: u32 = 6;

/// Merges closer in height than this count as equal and happen together or not at all, lest rounding
/// decide between them.
const TIE: f64 = 1e-9;

/// How many class pairs a learnt tree calls related and unrelated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LearntSettings {
    /// At most this share of the class pairs becomes related. With three classes or more at least the
    /// closest pair does, unless the share is 0 or all classes are equally close.
    pub related_share: f64,
    /// At most this many related classes per class, on average: with many classes a share alone would make groups far
    /// larger than anybody would draw (the built-in trees have 1.6 to 4.7).
    pub relatives: f64,
    /// At least this share of the class pairs becomes unrelated, except where the closest pair alone
    /// takes more than the rest.
    pub unrelated_share: f64,
    /// Permute the classes of the finished tree by this seed ([`Taxonomy::permuted`]): a control.
    pub permuted: Option<u64>,
}

impl Default for LearntSettings {
    fn default() -> Self {
        Self { related_share: 0.15, relatives: 4.0, unrelated_share: 0.5, permuted: None }
    }
}

impl LearntSettings {
    /// The same with the classes [`permuted`](Self::permuted).
    #[must_use]
    pub fn with_permuted(self, permuted: Option<u64>) -> Self {
        Self { permuted, ..self }
    }

    /// The same with another [`related_share`](Self::related_share).
    #[must_use]
    pub fn with_related_share(self, related_share: f64) -> Self {
        Self { related_share, ..self }
    }

    /// The same with another number of [`relatives`](Self::relatives).
    #[must_use]
    pub fn with_relatives(self, relatives: f64) -> Self {
        Self { relatives, ..self }
    }

    /// The same with another [`unrelated_share`](Self::unrelated_share).
    #[must_use]
    pub fn with_unrelated_share(self, unrelated_share: f64) -> Self {
        Self { unrelated_share, ..self }
    }

    fn check(&self) -> Result<()> {
        for (name, value) in
            [("related_share", self.related_share), ("unrelated_share", self.unrelated_share)]
        {
            if !(0.0..=1.0).contains(&value) {
                let requirement = "a share of the class pairs lies between 0 and 1";
                return Err(Error::Setting { name, value: value.to_string(), requirement });
            }
        }
        if !(self.relatives.is_finite() && self.relatives >= 0.0) {
            let requirement = "a number of classes, 0 or more";
            return Err(Error::Setting { name: "relatives", value: self.relatives.to_string(), requirement });
        }
        if self.related_share + self.unrelated_share > 1.0 {
            return Err(Error::Setting {
                name: "related_share",
                value: format!("{} (with unrelated_share = {})", self.related_share, self.unrelated_share),
                requirement: "related_share and unrelated_share must not add up to more than 1",
            });
        }
        Ok(())
    }
}

/// Mean feature of each class, C x `dim`, row by row, for [`Taxonomy::learnt`].
///
/// `features` holds `dim` numbers per sample, `labels` one class index per sample. Given labels will do
/// even if some are wrong: labels wrong evenly draw all means towards the centre alike, which hardly
/// changes their directions seen from there. Labels wrong by confusion of two classes draw these two
/// together, so the tree may come to call them related.
pub fn class_means(
    class_names: &[impl AsRef<str>],
    features: &[f32],
    dim: usize,
    labels: &[usize],
) -> Result<Vec<f64>> {
    let classes = class_names.len();
    let need = labels.len().saturating_mul(dim);
    if features.len() != need || dim == 0 {
        let why = format!("{} labels with {dim} features each", labels.len());
        return Err(Error::Size { what: "features", got: features.len(), need: need.max(1), why });
    }
    let mut means = vec![0.0; classes * dim];
    let mut counts = vec![0_usize; classes];
    for (sample, (row, &label)) in features.chunks_exact(dim).zip(labels).enumerate() {
        if label >= classes {
            return Err(Error::Label {
                sample,
                label,
                tree: "learnt".to_owned(),
                classes,
                last: classes.saturating_sub(1),
            });
        }
        if let Some(value) = row.iter().find(|value| !value.is_finite()) {
            return Err(Error::NotFinite { what: "feature", sample, value: f64::from(*value) });
        }
        counts[label] += 1;
        for (sum, value) in means[label * dim..].iter_mut().zip(row) {
            *sum += f64::from(*value);
        }
    }
    for (class, &count) in counts.iter().enumerate() {
        if count == 0 {
            let problem =
                "no sample has this label, so there is no mean feature; add samples or leave the class out";
            let name = class_names[class].as_ref().to_owned();
            return Err(Error::ClassMean { class, name, problem: problem.to_owned() });
        }
        means[class * dim..(class + 1) * dim].iter_mut().for_each(|sum| *sum /= count as f64);
    }
    Ok(means)
}

impl Taxonomy {
    /// A tree learnt from the mean feature of each class (C x d, row by row; see [`class_means`]).
    ///
    /// Classes whose mean features point the same way, seen from the mean of all classes, become related.
    /// A class whose mean lies in that very centre points nowhere and counts as orthogonal to all others.
    /// Two classes always come out unrelated: seen from their centre they lie opposite. The same input
    /// gives the same tree.
    pub fn learnt(
        class_names: &[impl AsRef<str>],
        class_means: &[f64],
        settings: &LearntSettings,
    ) -> Result<Self> {
        settings.check()?;
        let names: Vec<&str> = class_names.iter().map(AsRef::as_ref).collect();
        let classes = names.len();
        if classes == 0 || class_means.is_empty() || !class_means.len().is_multiple_of(classes) {
            let why = format!("{classes} classes with the same number of features each, at least one");
            let need = class_means.len().next_multiple_of(classes.max(1)).max(classes).max(1);
            return Err(Error::Size { what: "class means", got: class_means.len(), need, why });
        }
        let directions = directions(&names, class_means)?;
        let dim = class_means.len() / classes;
        let merges = merges(&directions, classes, dim);
        let few = settings.relatives / classes.saturating_sub(1).max(1) as f64;
        let settings = LearntSettings { related_share: settings.related_share.min(few), ..*settings };
        let (fine, coarse) = cuts(&merges, classes, &settings);
        let tree = grow(
            "learnt",
            levels(&names, &groups(&merges[..fine], classes), &groups(&merges[..coarse], classes)),
        )?;
        match settings.permuted {
            Some(seed) => tree.permuted(seed),
            None => Ok(tree),
        }
    }
}

/// The unit vectors $u_c$; zero for a class in the centre.
fn directions(names: &[&str], means: &[f64]) -> Result<Vec<f64>> {
    let (classes, dim) = (names.len(), means.len() / names.len());
    if let Some(at) = means.iter().position(|value| !value.is_finite()) {
        let problem = format!("its mean feature contains {}; features must be finite numbers", means[at]);
        return Err(Error::ClassMean { class: at / dim, name: names[at / dim].to_owned(), problem });
    }
    // Scaled to at most 1, so that neither sums nor squares overflow.
    let largest = means.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let mut rows: Vec<f64> =
        means.iter().map(|value| if largest > 0.0 { value / largest } else { 0.0 }).collect();
    for k in 0..dim {
        let centre = (0..classes).map(|c| rows[c * dim + k]).sum::<f64>() / classes as f64;
        (0..classes).for_each(|c| rows[c * dim + k] -= centre);
    }
    let mut any = false;
    for row in rows.chunks_exact_mut(dim) {
        let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        // What remains of a class in the centre is rounding, whose direction means nothing.
        let scale = if norm > 1e-12 * (dim as f64).sqrt() { 1.0 / norm } else { 0.0 };
        any |= scale > 0.0;
        row.iter_mut().for_each(|value| *value *= scale);
    }
    if classes > 1 && !any {
        let problem = "all classes have the same mean feature, so no tree can be learnt from it; take \
            features of a trained network, or use the flat tree";
        return Err(Error::ClassMean { class: 0, name: names[0].to_owned(), problem: problem.to_owned() });
    }
    Ok(rows)
}

/// One merge: a member of either side, its height, and how many class pairs it joins.
struct Merge {
    a: usize,
    b: usize,
    height: f64,
    pairs: usize,
}

/// Average linkage of the cosine distances, lowest merge first.
fn merges(directions: &[f64], classes: usize, dim: usize) -> Vec<Merge> {
    if classes < 2 {
        return Vec::new();
    }
    let row = |c: usize| &directions[c * dim..(c + 1) * dim];
    let mut condensed = Vec::with_capacity(classes * (classes - 1) / 2);
    for a in 0..classes {
        for b in a + 1..classes {
            let cosine: f64 = row(a).iter().zip(row(b)).map(|(x, y)| x * y).sum();
            condensed.push(1.0 - cosine.clamp(-1.0, 1.0));
        }
    }
    let tree = kodama::linkage(&mut condensed, classes, kodama::Method::Average);
    // Smallest member and size of every cluster; new clusters are numbered from C up.
    let mut clusters: Vec<(usize, usize)> = (0..classes).map(|c| (c, 1)).collect();
    let steps = tree.steps().iter().map(|step| {
        let ((a, size_a), (b, size_b)) = (clusters[step.cluster1], clusters[step.cluster2]);
        clusters.push((a.min(b), size_a + size_b));
        Merge { a, b, height: step.dissimilarity, pairs: size_a * size_b }
    });
    steps.collect()
}

/// How many merges the fine and the coarse cut carry out.
fn cuts(merges: &[Merge], classes: usize, settings: &LearntSettings) -> (usize, usize) {
    let pairs = (classes * classes.saturating_sub(1) / 2) as f64;
    // Rounding must not lose a pair: 0.15 * 20 is a little more or less than 3.
    let (most_related, most_joined) =
        (settings.related_share * pairs + 1e-9, (1.0 - settings.unrelated_share) * pairs + 1e-9);
    let (mut fine, mut coarse) = (0, 0);
    let mut first = None;
    let mut joined = 0;
    for (i, merge) in merges.iter().enumerate() {
        joined += merge.pairs;
        // Equal heights are cut together.
        if merges.get(i + 1).is_some_and(|next| next.height - merge.height <= TIE) {
            continue;
        }
        first.get_or_insert(i + 1);
        if joined as f64 <= most_related {
            fine = i + 1;
        }
        if joined as f64 <= most_joined {
            coarse = i + 1;
        }
    }
    if let Some(first) = first
        && fine == 0
        && settings.related_share > 0.0
        && first < merges.len()
    {
        fine = first;
    }
    (fine, coarse.max(fine))
}

/// The group of each class after the given merges, groups numbered by their first class.
fn groups(merges: &[Merge], classes: usize) -> Vec<usize> {
    let mut leader: Vec<usize> = (0..classes).collect();
    for merge in merges {
        let (from, to) = (leader[merge.a].max(leader[merge.b]), leader[merge.a].min(leader[merge.b]));
        leader.iter_mut().filter(|leader| **leader == from).for_each(|leader| *leader = to);
    }
    let mut number = vec![usize::MAX; classes];
    let mut next = 0;
    for class in 0..classes {
        if leader[class] == class {
            number[class] = next;
            next += 1;
        }
    }
    leader.iter().map(|&leader| number[leader]).collect()
}

/// Root, broad groups, groups, classes.
fn levels(names: &[&str], fine: &[usize], coarse: &[usize]) -> Vec<Twig> {
    let mut fresh = FreshNames::besides(names.iter().copied());
    let mut twigs = vec![Twig::new(fresh.name("all classes".to_owned()), None, None)];
    let members = |group: &[usize], number: usize| -> Vec<usize> {
        (0..names.len()).filter(|&class| group[class] == number).collect()
    };
    let list = |classes: &[usize]| shortlist(classes.iter().map(|&class| names[class].trim()), 3);
    for broad in 0..coarse.iter().max().map_or(0, |last| last + 1) {
        let all = members(coarse, broad);
        let broad_twig = twigs.len();
        twigs.push(Twig::new(
            fresh.name(format!("broad group {} ({})", broad + 1, list(&all))),
            Some(0),
            None,
        ));
        let mut groups: Vec<usize> = all.iter().map(|&class| fine[class]).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            let own = members(fine, group);
            let group_twig = twigs.len();
            let name = fresh.name(format!("group {} ({})", group + 1, list(&own)));
            twigs.push(Twig::new(name, Some(broad_twig), None));
            twigs.extend(own.iter().map(|&class| Twig::new(names[class], Some(group_twig), Some(class))));
        }
    }
    twigs
}
