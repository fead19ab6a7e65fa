//! Rows of numbers that are near each other: nearest neighbours, near-copies, rows that are far from all others.
//!
//! Distance is 1 - cosine or Euclidean. Both are squared differences $|a - b|^2$ of prepared rows: rows of length 1, for which
//! $1 - \cos = |a - b|^2 / 2$, or rows as they are. A search is a matrix product, tile by tile, since $|a - b|^2 = |a|^2 - 2\,(ab -
//! |b|^2 / 2)$: a row keeps the few others whose bracket is greatest. Products are rounded in an order of their own, so they only
//! say who may be near, with a bound of the error. Who is nearest is decided by the sum of squared differences in f64. So results are those
//! of the literal loop over all pairs, ties go to the lower index, and neither threads nor tiles change a bit.
//!
//! Copies of a row are searched once and put back afterwards: a dataset in which one row stands a thousand times costs no more than one without.
//!
//! Above [`NeighbourSettings::exact_up_to`] rows, only some **lists** are searched: rows are dealt to the nearest of $\sqrt N$ centres, and a
//! row looks into the lists of the centres nearest to it. How many is measured: those that hold
//! [`NeighbourSettings::recall`] of the true neighbours of a sample of rows (decision 014).

mod best;
mod copies;
mod lists;
mod outliers;
mod points;
mod tiles;

pub use copies::{Copies, CopySet, CopySettings, copies, copies_across};
pub use outliers::{OutlierSettings, Outliers, outliers};

use crate::crossfit::Rows;
use crate::{Error, Result};
use points::{Frame, Points};
use rayon::prelude::*;

/// How far two rows are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// 1 - cosine, from 0 to 2. A row of zeros has no direction: it is at right angles to all rows that have one.
    Cosine {
        /// Whether the mean row (of those searched) is taken away first. Features of networks often have a large mean in
        /// common, beside which all of them look alike.
        centred: bool,
    },
    /// The length of the difference.
    Euclidean,
}

/// How neighbours are searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeighbourSettings {
    /// Neighbours of each row.
    pub count: usize,
    /// How far rows are apart.
    pub metric: Metric,
    /// Up to so many rows, all pairs are looked at; above, lists are searched.
    pub exact_up_to: usize,
    /// With lists: which part of the true neighbours a search must find, as measured on a sample of rows.
    pub recall: f64,
    /// Seed of the lists.
    pub seed: u64,
}

impl Default for NeighbourSettings {
    fn default() -> Self {
        let metric = Metric::Cosine { centred: true };
        Self { count: 10, metric, exact_up_to: 250_000, recall: 0.95, seed: 0 }
    }
}

/// The nearest neighbours of rows, nearest first; equal distances by index.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    indices: Vec<u32>,
    distances: Vec<f32>,
    rows: usize,
    width: usize,
    metric: Metric,
    recall: f64,
}

impl Neighbours {
    /// How many rows have neighbours here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Neighbours of each row: as many as were asked for, or as there are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// How far is measured.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Which part of the true neighbours was found: 1 if all pairs were looked at, otherwise measured on a sample of rows.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.recall
    }

    /// Indices of a row's neighbours.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn indices(&self, row: usize) -> &[u32] {
        &self.indices[row * self.width..(row + 1) * self.width]
    }

    /// Distances of a row's neighbours.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn distances(&self, row: usize) -> &[f32] {
        &self.distances[row * self.width..(row + 1) * self.width]
    }

    /// Indices and distances of a row's neighbours.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn of(&self, row: usize) -> impl ExactSizeIterator<Item = (u32, f32)> + '_ {
        self.indices(row).iter().copied().zip(self.distances(row).iter().copied())
    }
}

/// Asked from several threads, again and again, whether a search should go on.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// The nearest others of every row.
///
/// ```
/// use negscale_audit::crossfit::Rows;
/// use negscale_audit::neighbours::{Metric, NeighbourSettings, nearest};
/// let rows = Rows::new(&[0.0, 0.0, 3.0, 4.0, 0.0, 1.0], 2)?;
/// let settings = NeighbourSettings { count: 1, metric: Metric::Euclidean, ..Default::default() };
/// let near = nearest(&rows, &settings)?;
/// assert_eq!(near.of(0).next(), Some((2, 1.0)));
/// # Ok::<(), negscale_audit::Error>(())
/// ```
///
/// # Errors
/// If there are more rows than numbers of 32 bits, or a setting is out of range.
pub fn nearest(rows: &Rows, settings: &NeighbourSettings) -> Result<Neighbours> {
    nearest_while(rows, settings, &|| true)
}

/// The same, as long as it should go on.
///
/// # Errors
/// As there; [`Error::Stopped`] if it should not.
pub fn nearest_while(rows: &Rows, settings: &NeighbourSettings, go_on: GoOn) -> Result<Neighbours> {
    let frame = check(rows, rows, settings)?;
    let points = Points::new(rows, &frame);
    search(&points, None, settings, go_on)
}

/// The nearest of `others` for every row.
///
/// # Errors
/// If rows have different lengths, there are more than numbers of 32 bits, or a setting is out of range.
pub fn nearest_in(rows: &Rows, others: &Rows, settings: &NeighbourSettings) -> Result<Neighbours> {
    nearest_in_while(rows, others, settings, &|| true)
}

/// The same, as long as it should go on.
///
/// # Errors
/// As there; [`Error::Stopped`] if it should not.
pub fn nearest_in_while(
    rows: &Rows,
    others: &Rows,
    settings: &NeighbourSettings,
    go_on: GoOn,
) -> Result<Neighbours> {
    let frame = check(rows, others, settings)?;
    search(&Points::new(others, &frame), Some(&Points::new(rows, &frame)), settings, go_on)
}

fn check(rows: &Rows, others: &Rows, settings: &NeighbourSettings) -> Result<Frame> {
    let wrong = |problem| Err(Error::Samples { what: "neighbours", problem });
    if rows.dim() != others.dim() {
        return wrong(format!(
            "rows of {} numbers cannot be compared with rows of {}: give both the same columns",
            rows.dim(),
            others.dim()
        ));
    }
    if rows.len().max(others.len()) >= u32::MAX as usize {
        return wrong(format!("{} rows are too many: take a sample", rows.len().max(others.len())));
    }
    if !(settings.recall > 0.0 && settings.recall <= 1.0) {
        let value = settings.recall.to_string();
        return Err(Error::Range { setting: "recall", value, wanted: "give a part of 1, such as 0.95" });
    }
    Ok(Frame::new(rows, others, settings.metric))
}

/// Points for which neighbours are wanted: those searched (`None`, and then a row is not its own neighbour) or others.
fn search(
    others: &Points,
    asking: Option<&Points>,
    settings: &NeighbourSettings,
    go_on: GoOn,
) -> Result<Neighbours> {
    let queries = asking.unwrap_or(others);
    let is_own = asking.is_none();
    let width = settings.count.min(others.rows().saturating_sub(usize::from(is_own)));
    let (found, recall) = if others.rows() <= settings.exact_up_to || width == 0 {
        let all: Vec<u32> = (0..queries.len() as u32).collect();
        (tiles::nearest(queries, &all, others, is_own, width, go_on), 1.0)
    } else {
        lists::nearest(queries, others, is_own, width, settings, go_on)
    };
    // Whoever was told to stop has left the rest out.
    if !go_on() {
        return Err(Error::Stopped);
    }
    let (mut indices, mut distances) = (vec![0; queries.rows() * width], vec![0.0; queries.rows() * width]);
    if width > 0 {
        let spread = |(row, (indices, distances)): (usize, (&mut [u32], &mut [f32]))| {
            let point = queries.point_of(row);
            let mut all: Vec<(f32, u32)> = Vec::with_capacity(4 * width);
            if is_own {
                let copies = others.members(point).iter().filter(|&&copy| copy as usize != row);
                all.extend(copies.take(width).map(|&copy| (0.0, copy)));
            }
            for &(distance, other) in &found[point] {
                // Ascending, so the rest is farther than what is there.
                if all.len() >= width && all[all.len() - 1].0 < distance {
                    break;
                }
                all.extend(others.members(other as usize).iter().take(width).map(|&copy| (distance, copy)));
            }
            all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for (at, &(distance, index)) in all.iter().take(width).enumerate() {
                (indices[at], distances[at]) = (index, distance);
            }
        };
        let places = indices.par_chunks_mut(width).zip(distances.par_chunks_mut(width));
        places.enumerate().with_min_len(256).for_each(spread);
    }
    Ok(Neighbours { indices, distances, rows: queries.rows(), width, metric: settings.metric, recall })
}
