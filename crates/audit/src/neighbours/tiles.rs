//! All pairs of two sets of points, tile by tile: products on every thread, and a test per pair that most pairs fail.
//!
//! With $s = ab - |b|^2 / 2$, a squared distance is $|a|^2 - 2s$. A product of d numbers in f32, in whatever order, is wrong by at most about
//! $d u |a| |b|$ with $u = 2^{-24}$; what is added for the halved square, for the rounding of prepared rows and of limits is no more
//! than a few $u (|a| + |b|)^2$. So $s$ is known up to $(d + 16) u (|a| + |b|)^2$, with the longest $b$ of the tile for the first test and the candidate's own after it.

use super::GoOn;
use super::best::{Best, Candidate, Wanted, Within, measure};
use super::points::Points;
use negscale_product::rows_with_rows;
use rayon::prelude::*;
use std::borrow::Cow;

/// Points that ask and points that are looked at in one product: tiles fit the cache of a core.
pub(super) const ASKING: usize = 192;
pub(super) const LOOKED_AT: usize = 512;
/// Scores that are tested at once.
const TESTED: usize = 32;

/// Points beside each other for products.
pub(super) struct Tile<'a> {
    points: Cow<'a, [u32]>,
    values: Cow<'a, [f32]>,
    halves: Vec<f32>,
    longest: f64,
}

impl<'a> Tile<'a> {
    fn new(all: &Points, points: Cow<'a, [u32]>, values: Cow<'a, [f32]>) -> Self {
        let square = |&point: &u32| all.square(point as usize);
        let halves = points.iter().map(|point| (0.5 * square(point)) as f32).collect();
        let longest = points.iter().map(square).fold(0.0, f64::max).sqrt();
        Self { points, values, halves, longest }
    }

    pub(super) fn gather(all: &Points, points: &'a [u32]) -> Self {
        let mut values = Vec::with_capacity(points.len() * all.dim());
        all.gather(points, &mut values);
        Self::new(all, points.into(), values.into())
    }

    /// All points, in tiles.
    fn all(all: &'a Points) -> Vec<Self> {
        let numbered = all.values().chunks(LOOKED_AT * all.dim()).enumerate();
        let tile = |(at, values): (usize, &'a [f32])| {
            let first = at * LOOKED_AT;
            let points: Vec<u32> = (first as u32..(first + values.len() / all.dim()) as u32).collect();
            Self::new(all, points.into(), values.into())
        };
        numbered.map(tile).collect()
    }
}

/// Scores of all pairs of rows of `asking` with a tile; everyone who is asking is offered those of the tile that may be wanted.
pub(super) fn offer<W: Wanted>(
    (queries, asking, values): (&Points, &[u32], &[f32]),
    (others, tile): (&Points, &Tile),
    is_own: bool,
    wanted: &mut [&mut W],
    scores: &mut Vec<f32>,
) {
    let (dim, width) = (queries.dim(), tile.points.len());
    scores.resize(asking.len() * width, 0.0);
    rows_with_rows(values, &tile.values, dim, scores);
    for ((&query, wanted), scores) in asking.iter().zip(wanted).zip(scores.chunks_exact_mut(width)) {
        scores.iter_mut().zip(&tile.halves).for_each(|(score, half)| *score -= half);
        let square = queries.square(query as usize);
        let error = |length: f64| {
            let reach = square.sqrt() + length;
            (dim + 16) as f64 * (f64::from(f32::EPSILON) / 2.0 * reach * reach + f64::from(f32::MIN_POSITIVE))
        };
        let most = error(tile.longest);
        // Rounded down, so that nobody is missed.
        let least = |limit: f64| ((0.5 * (square - limit) - most) as f32).next_down();
        let measure = measure(queries, query as usize, others);
        let mut bar = least(wanted.limit());
        for (at, scores) in scores.chunks(TESTED).enumerate() {
            if !scores.iter().fold(false, |any, &score| any | (score >= bar)) {
                continue;
            }
            for (place, &score) in scores.iter().enumerate() {
                let place = at * TESTED + place;
                let point = tile.points[place];
                if score < bar || (is_own && point == query) {
                    continue;
                }
                // Beside a long row, the others' own errors are smaller.
                let length = (2.0 * f64::from(tile.halves[place])).sqrt();
                let (middle, error) = (square - 2.0 * f64::from(score), 2.0 * error(length));
                let candidate = Candidate { point, low: middle - error, high: (middle + error).max(0.0) };
                wanted.offer(candidate, &measure);
                bar = least(wanted.limit());
            }
        }
    }
}

/// Offers the points of all tiles to everyone of `asking`, and finishes what each has got; what has not begun when it should not go on is left out.
fn offer_all<W: Wanted, R: Send>(
    (queries, asking): (&Points, &[u32]),
    (others, tiles): (&Points, &[Tile]),
    is_own: bool,
    go_on: GoOn,
    wanted: impl Fn() -> W + Sync,
    finish: impl Fn(u32, W) -> R + Sync,
) -> Vec<R> {
    // Small sets are shared by all threads too; what is found does not depend on the cut.
    let block = asking.len().div_ceil(8).clamp(1, ASKING);
    let blocks: Vec<Vec<R>> = asking
        .par_chunks(block)
        .map(|asking| {
            let mut all: Vec<W> = asking.iter().map(|_| wanted()).collect();
            let mut each: Vec<&mut W> = all.iter_mut().collect();
            let (mut values, mut scores) = (Vec::new(), Vec::new());
            queries.gather(asking, &mut values);
            for tile in tiles.iter().take_while(|_| go_on()) {
                offer((queries, asking, &values), (others, tile), is_own, &mut each, &mut scores);
            }
            asking.iter().zip(all).map(|(&query, wanted)| finish(query, wanted)).collect()
        })
        .collect();
    blocks.into_iter().flatten().collect()
}

/// For each of `asking`, the `count` nearest points with their distances, without itself if the sets are one.
pub(super) fn nearest(
    queries: &Points,
    asking: &[u32],
    others: &Points,
    is_own: bool,
    count: usize,
    go_on: GoOn,
) -> Vec<Vec<(f32, u32)>> {
    let finish = |query, best: Best| best.measured(&measure(queries, query as usize, others));
    offer_all((queries, asking), (others, &Tile::all(others)), is_own, go_on, || Best::new(count), finish)
}

/// For each of some points, those of them that are no farther than `distance`, without itself; `square` is its square in the
/// units of prepared rows.
pub(super) fn within(points: &Points, asking: &[u32], distance: f32, square: f64) -> Vec<Vec<u32>> {
    let tiles: Vec<Tile> = asking.chunks(LOOKED_AT).map(|some| Tile::gather(points, some)).collect();
    let finish = |_, within: Within| within.found;
    offer_all((points, asking), (points, &tiles), true, &|| true, || Within::new(distance, square), finish)
}
