//! Rows that are copies of each other, or nearly.
//!
//! Equal rows are copies. Others are near-copies if they are nearer than chance would put them. Where rows lie at random in D dimensions, a
//! row whose k-th neighbour is at distance $r_k$ expects $k (r / r_k)^D$ others within r. So the radius with $\epsilon$ expected others is
//!
//! $r = \bar r_k (\epsilon / k)^{1/D}$, with $D = \ln(1/m) \,/\, \mathrm{median} \ln(r_k / r_h)$, $m = (h - 1/3) / (k - 2/3)$, $h = k/2$,
//!
//! $\bar r_k$ the median distance; $(r_h / r_k)^D$ has a Beta distribution with median m. Data of few dimensions, where near rows are the
//! rule, thus get a small radius. Data of many get one that would be too large to mean a copy: it is bounded by
//! [`CopySettings::similarity`]. A distance of cosines is $r^2 / 2$.
//!
//! Sets are the connected parts of all such pairs. They are numbered by their first row.

use super::points::{Frame, Points};
use super::{Metric, NeighbourSettings, Neighbours, nearest, tiles};
use crate::crossfit::Rows;
use crate::{Error, Result};

/// What counts as a near-copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopySettings {
    /// The least cosine of near-copies. For Euclidean distances: that of two rows of length 1, with the median distance of the last neighbour
    /// for unit. 1 finds exact copies alone.
    pub similarity: f64,
    /// How many other rows may lie as near by chance, per row ($\epsilon$).
    pub chance: f64,
}

impl Default for CopySettings {
    /// Cosines of 0.995 are angles of 6 degrees; by chance one row in ten thousand.
    fn default() -> Self {
        Self { similarity: 0.995, chance: 1e-4 }
    }
}

/// Rows that are copies of each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySet {
    /// Rows, ascending; at least two.
    pub rows: Vec<u32>,
    /// Whether all are equal.
    pub is_exact: bool,
}

/// All copies among rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Copies {
    sets: Vec<CopySet>,
    set_of: Vec<Option<u32>>,
    radius: f32,
}

impl Copies {
    /// Sets of copies, by their first row.
    #[must_use]
    pub fn sets(&self) -> &[CopySet] {
        &self.sets
    }

    /// The number of a row's set.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn set_of(&self, row: usize) -> Option<u32> {
        self.set_of[row]
    }

    /// The distance up to which rows count as near-copies.
    #[must_use]
    pub fn radius(&self) -> f32 {
        self.radius
    }

    /// Numbers of the sets with rows both below `second` and from there on, such as training and test rows.
    #[must_use]
    pub fn across(&self, second: usize) -> Vec<u32> {
        let both = |set: &CopySet| {
            let side = |row: &u32| (*row as usize) < second;
            set.rows.iter().any(side) && !set.rows.iter().all(side)
        };
        (0..self.sets.len() as u32).filter(|&set| both(&self.sets[set as usize])).collect()
    }
}

/// Copies among rows, given the nearest others of each ([`nearest`] with the same rows).
///
/// # Errors
/// If the neighbours are not those of these rows, or a setting is out of range.
pub fn copies(rows: &Rows, near: &Neighbours, settings: &CopySettings) -> Result<Copies> {
    let range = |setting, value: f64, wanted| Err(Error::Range { setting, value: value.to_string(), wanted });
    if !(0.0..=1.0).contains(&settings.similarity) {
        return range("similarity", settings.similarity, "give a cosine from 0 to 1, such as 0.995");
    }
    if !(settings.chance > 0.0 && settings.chance.is_finite()) {
        return range("chance", settings.chance, "give a small number above 0, such as 0.0001");
    }
    let strange =
        (0..near.len()).any(|row| near.indices(row).iter().any(|&other| other as usize >= rows.len()));
    if near.len() != rows.len() || strange {
        let problem =
            format!("those of {} rows are not of these {}: call `nearest` with them", near.len(), rows.len());
        return Err(Error::Samples { what: "neighbours", problem });
    }
    let radius = radius(near, settings);
    let points = Points::new(rows, &Frame::new(rows, rows, near.metric()));
    let mut parts = Parts::new(rows.len());
    for point in 0..points.len() {
        points.members(point).windows(2).for_each(|pair| parts.join(pair[0], pair[1]));
    }
    // Rows all of whose neighbours are copies may have more than these: they are compared with each other.
    let mut crowded = Vec::new();
    for row in 0..rows.len() {
        let inside = near.of(row).filter(|&(_, distance)| distance <= radius);
        let count = inside.map(|(other, _)| parts.join(row as u32, other)).count();
        if count == near.width() && near.width() + 1 < rows.len() {
            crowded.push(points.point_of(row) as u32);
        }
    }
    crowded.sort_unstable();
    crowded.dedup();
    let found = tiles::within(&points, &crowded, radius, points.squared(radius));
    for (&point, others) in crowded.iter().zip(&found) {
        let first = |point: u32| points.members(point as usize)[0];
        others.iter().for_each(|&other| parts.join(first(point), first(other)));
    }
    let (sets, set_of) = parts.sets();
    let is_exact = |set: &[u32]| set.iter().all(|&row| rows.row(row as usize) == rows.row(set[0] as usize));
    let sets = sets.into_iter().map(|rows| CopySet { is_exact: is_exact(&rows), rows }).collect();
    Ok(Copies { sets, set_of, radius })
}

/// Copies among the rows of two datasets, such as training and test rows: those of the second are numbered after the first's.
///
/// # Errors
/// If rows have different lengths or a setting is out of range.
pub fn copies_across(
    first: &Rows,
    second: &Rows,
    search: &NeighbourSettings,
    settings: &CopySettings,
) -> Result<Copies> {
    if first.dim() != second.dim() {
        let problem =
            format!("rows of {} numbers, then of {}: give both the same columns", first.dim(), second.dim());
        return Err(Error::Samples { what: "neighbours", problem });
    }
    let values = [first.values(), second.values()].concat();
    let rows = Rows::whole(&values, first.dim());
    copies(&rows, &nearest(&rows, search)?, settings)
}

/// The distance up to which rows are near-copies; 0 if there are too few neighbours to tell.
fn radius(near: &Neighbours, settings: &CopySettings) -> f32 {
    let chord = (2.0 * (1.0 - settings.similarity)).sqrt();
    let (last, half) = (near.width(), near.width() / 2);
    if half == 0 {
        return 0.0;
    }
    let is_cosine = matches!(near.metric(), Metric::Cosine { .. });
    let length = |distance: f32| {
        let distance = f64::from(distance);
        if is_cosine { (2.0 * distance).sqrt() } else { distance }
    };
    // Copies say nothing about how dense rows are.
    let pairs = (0..near.len()).map(|row| near.distances(row)).filter(|distances| distances[half - 1] > 0.0);
    let (mut lengths, mut ratios): (Vec<f64>, Vec<f64>) = pairs
        .map(|distances| {
            let (h, k) = (length(distances[half - 1]), length(distances[last - 1]));
            (k, (k / h).ln())
        })
        .unzip();
    let (Some(spacing), Some(ratio)) = (median(&mut lengths), median(&mut ratios)) else { return 0.0 };
    let middle = (half as f64 - 1.0 / 3.0) / (last as f64 - 2.0 / 3.0);
    // Of one over the dimension.
    let inverse = ratio / (1.0 / middle).ln();
    let by_chance = spacing * (settings.chance / last as f64).min(1.0).powf(inverse);
    if is_cosine {
        let least = by_chance.min(chord);
        (0.5 * least * least) as f32
    } else {
        by_chance.min(chord * spacing) as f32
    }
}

/// The lower median.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Connected parts: each row points to an earlier one of its part, or is the first.
struct Parts(Vec<u32>);

impl Parts {
    fn new(count: usize) -> Self {
        Self((0..count as u32).collect())
    }

    fn first(&mut self, mut row: u32) -> u32 {
        while self.0[row as usize] != row {
            let next = self.0[row as usize];
            self.0[row as usize] = self.0[next as usize];
            row = next;
        }
        row
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b) as usize] = a.min(b);
    }

    /// Parts of at least two, by their first row, and the number of each row's part.
    fn sets(mut self) -> (Vec<Vec<u32>>, Vec<Option<u32>>) {
        let first: Vec<u32> = (0..self.0.len() as u32).map(|row| self.first(row)).collect();
        let (mut sets, mut set_of): (Vec<Vec<u32>>, Vec<Option<u32>>) = (Vec::new(), vec![None; first.len()]);
        for (row, &first) in first.iter().enumerate().filter(|&(row, &first)| first as usize != row) {
            let set = *set_of[first as usize].get_or_insert_with(|| {
                sets.push(vec![first]);
                sets.len() as u32 - 1
            });
            sets[set as usize].push(row as u32);
            set_of[row] = Some(set);
        }
        // Numbered as second members came; now by the first.
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.sort_unstable_by_key(|&set| sets[set][0]);
        let mut number = vec![0; sets.len()];
        order.iter().enumerate().for_each(|(to, &from)| number[from] = to as u32);
        set_of.iter_mut().flatten().for_each(|set| *set = number[*set as usize]);
        (order.iter().map(|&set| std::mem::take(&mut sets[set])).collect(), set_of)
    }
}
