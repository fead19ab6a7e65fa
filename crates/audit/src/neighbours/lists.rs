//! Search for very many points: lists of points around centres, of which only the nearest few are looked into.
//!
//! Centres are means of clusters (Lloyd's algorithm on a sample). How many lists a point looks into is not guessed: for a sample of
//! points all pairs are looked at, and the number is the least that reaches the wanted part of their true neighbours. In the worst case that is
//! all lists, which is slow but right. Distances of what is found are exact.

use super::best::{Best, measure};
use super::points::Points;
use super::tiles::{self, ASKING, LOOKED_AT, Tile};
use super::{GoOn, NeighbourSettings};
use crate::crossfit::draw;
use negscale_product::rows_with_rows;
use rayon::prelude::*;

/// Points of the sample for each centre, rounds of Lloyd's algorithm, and points by which recall is measured.
const SAMPLE_PER_CENTRE: usize = 48;
const ROUNDS: usize = 8;
const JUDGES: usize = 400;

/// The nearest points of every query with their distances, and the part of true neighbours that a sample of queries finds.
pub(super) fn nearest(
    queries: &Points,
    others: &Points,
    is_own: bool,
    count: usize,
    settings: &NeighbourSettings,
    go_on: GoOn,
) -> (Vec<Vec<(f32, u32)>>, f64) {
    let centres = Centres::learn(others, settings.seed, go_on);
    let list_of = centres.nearest_of(others.values(), go_on);
    let lists = members(&list_of, centres.count);
    let (looks, recall) = looks((queries, others), is_own, count, (&centres, &list_of), settings, go_on);
    let home = if is_own { list_of } else { centres.nearest_of(queries.values(), go_on) };
    let groups = members(&home, centres.count);
    // Points of one list look into nearly the same lists.
    let blocks: Vec<&[u32]> = groups.iter().flat_map(|group| group.chunks(ASKING)).collect();
    let found: Vec<Vec<Vec<(f32, u32)>>> = blocks
        .par_iter()
        .map(|asking| match go_on() {
            true => search_block((queries, asking), others, is_own, count, (&centres, &lists, looks)),
            false => Vec::new(),
        })
        .collect();
    let mut all = vec![Vec::new(); queries.len()];
    for (asking, found) in blocks.iter().zip(found) {
        asking.iter().zip(found).for_each(|(&query, found)| all[query as usize] = found);
    }
    (all, recall)
}

fn search_block(
    (queries, asking): (&Points, &[u32]),
    others: &Points,
    is_own: bool,
    count: usize,
    (centres, lists, looks): (&Centres, &[Vec<u32>], usize),
) -> Vec<Vec<(f32, u32)>> {
    let (dim, mut values, mut scores) = (queries.dim(), Vec::new(), Vec::new());
    queries.gather(asking, &mut values);
    centres.score(&values, &mut scores);
    // Who looks into each list, by place among those asking.
    let mut visitors: Vec<Vec<usize>> = vec![Vec::new(); centres.count];
    for (place, scores) in scores.chunks_exact(centres.count).enumerate() {
        let mut seen = 0;
        for (rank, list) in order(scores, looks).into_iter().enumerate() {
            if rank >= looks && seen > count {
                break;
            }
            seen += lists[list as usize].len();
            visitors[list as usize].push(place);
        }
    }
    let mut best: Vec<Best> = asking.iter().map(|_| Best::new(count)).collect();
    let mut some = Vec::new();
    for (list, places) in visitors.iter().enumerate().filter(|(_, places)| !places.is_empty()) {
        let visiting: Vec<u32> = places.iter().map(|&place| asking[place]).collect();
        some.clear();
        places.iter().for_each(|&place| some.extend_from_slice(&values[place * dim..(place + 1) * dim]));
        let mut next = places.iter().peekable();
        let mut each: Vec<&mut Best> = best
            .iter_mut()
            .enumerate()
            .filter(|(place, _)| next.next_if(|&&at| at == *place).is_some())
            .map(|(_, best)| best)
            .collect();
        for points in lists[list].chunks(LOOKED_AT) {
            let tile = Tile::gather(others, points);
            tiles::offer((queries, &visiting, &some), (others, &tile), is_own, &mut each, &mut scores);
        }
    }
    let measured = |(&query, best): (&u32, Best)| best.measured(&measure(queries, query as usize, others));
    asking.iter().zip(best).map(measured).collect()
}

/// How many lists hold the wanted part of the true neighbours of a sample of queries, and that part.
fn looks(
    (queries, others): (&Points, &Points),
    is_own: bool,
    count: usize,
    (centres, list_of): (&Centres, &[u32]),
    settings: &NeighbourSettings,
    go_on: GoOn,
) -> (usize, f64) {
    let judges = sample(queries.len(), JUDGES, draw::mix(settings.seed, 2));
    let truth = tiles::nearest(queries, &judges, others, is_own, count, go_on);
    let (mut values, mut scores) = (Vec::new(), Vec::new());
    queries.gather(&judges, &mut values);
    centres.score(&values, &mut scores);
    let mut at_rank = vec![0usize; centres.count];
    for (scores, near) in scores.chunks_exact(centres.count).zip(&truth) {
        let mut rank = vec![0; centres.count];
        let ordered = order(scores, centres.count);
        ordered.iter().enumerate().for_each(|(at, &list)| rank[list as usize] = at);
        near.iter().for_each(|&(_, point)| at_rank[rank[list_of[point as usize] as usize]] += 1);
    }
    let total: usize = at_rank.iter().sum();
    let mut found = 0;
    for (rank, more) in at_rank.iter().enumerate() {
        found += more;
        if found as f64 >= settings.recall * total as f64 {
            return (rank + 1, found as f64 / total.max(1) as f64);
        }
    }
    (centres.count, 1.0)
}

/// Lists, best score first, equal scores by number; only the first `sure` and what may follow them are in order.
fn order(scores: &[f32], sure: usize) -> Vec<u32> {
    let mut lists: Vec<u32> = (0..scores.len() as u32).collect();
    let by = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
    if 4 * sure < lists.len() {
        // Beyond those, only points in very short lists look.
        let (first, _, _) = lists.select_nth_unstable_by(4 * sure, by);
        first.sort_unstable_by(by);
    } else {
        lists.sort_unstable_by(by);
    }
    lists
}

/// `wanted` different numbers below `count`, ascending, or all.
fn sample(count: usize, wanted: usize, key: u64) -> Vec<u32> {
    let mut drawn: Vec<(u64, u32)> = (0..count as u32).map(|at| (draw::mix(key, at.into()), at)).collect();
    if wanted < count {
        drawn.select_nth_unstable(wanted);
        drawn.truncate(wanted);
    }
    let mut numbers: Vec<u32> = drawn.into_iter().map(|(_, at)| at).collect();
    numbers.sort_unstable();
    numbers
}

fn members(list_of: &[u32], lists: usize) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); lists];
    list_of.iter().enumerate().for_each(|(point, &list)| members[list as usize].push(point as u32));
    members
}

/// Centres of lists.
struct Centres {
    values: Vec<f32>,
    halves: Vec<f32>,
    dim: usize,
    count: usize,
}

impl Centres {
    fn new(values: Vec<f32>, dim: usize) -> Self {
        let half = |row: &[f32]| (0.5 * row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>()) as f32;
        let halves: Vec<f32> = values.chunks_exact(dim).map(half).collect();
        Self { count: halves.len(), halves, values, dim }
    }

    fn learn(points: &Points, seed: u64, go_on: GoOn) -> Self {
        let (dim, count) = (points.dim(), (points.len() as f64).sqrt().ceil() as usize);
        let chosen = sample(points.len(), count * SAMPLE_PER_CENTRE, draw::mix(seed, 0));
        let mut rows = Vec::new();
        points.gather(&chosen, &mut rows);
        let first = sample(chosen.len(), count, draw::mix(seed, 1));
        let start = first.iter().flat_map(|&at| &rows[at as usize * dim..][..dim]).copied().collect();
        let mut centres = Self::new(start, dim);
        for _ in 0..ROUNDS {
            let near = centres.nearest_of(&rows, go_on);
            let (mut sums, mut counts) = (vec![0.0f64; count * dim], vec![0usize; count]);
            for (row, &centre) in rows.chunks_exact(dim).zip(&near) {
                counts[centre as usize] += 1;
                let sum = &mut sums[centre as usize * dim..][..dim];
                sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            // A centre that nobody is nearest to stays where it is.
            for (centre, &members) in counts.iter().enumerate().filter(|(_, members)| **members > 0) {
                let places = centre * dim..(centre + 1) * dim;
                let pairs = centres.values[places.clone()].iter_mut().zip(&sums[places]);
                pairs.for_each(|(to, sum)| *to = (sum / members as f64) as f32);
            }
            centres = Self::new(centres.values, dim);
        }
        centres
    }

    /// For each row, $xc - |c|^2 / 2$ for every centre: the nearest has the greatest.
    fn score(&self, rows: &[f32], scores: &mut Vec<f32>) {
        scores.resize(rows.len() / self.dim * self.count, 0.0);
        rows_with_rows(rows, &self.values, self.dim, scores);
        for row in scores.chunks_exact_mut(self.count) {
            row.iter_mut().zip(&self.halves).for_each(|(score, half)| *score -= half);
        }
    }

    fn nearest_of(&self, rows: &[f32], go_on: GoOn) -> Vec<u32> {
        let nearest = |scores: &[f32]| {
            let better = |best: (usize, f32), (at, &score): (usize, &f32)| {
                if score > best.1 { (at, score) } else { best }
            };
            scores.iter().enumerate().fold((0, f32::NEG_INFINITY), better).0 as u32
        };
        let blocks: Vec<Vec<u32>> = rows
            .par_chunks(ASKING * self.dim)
            .map(|rows| {
                let mut scores = Vec::new();
                if !go_on() {
                    return vec![0; rows.len() / self.dim];
                }
                self.score(rows, &mut scores);
                scores.chunks_exact(self.count).map(nearest).collect()
            })
            .collect();
        blocks.into_iter().flatten().collect()
    }
}
