//! The nearest of many candidates, of which products give bounds and only few are measured.

use super::points::Points;

/// Squared distances are known up to this part of them before they are rounded to what is compared.
const SLACK: f64 = 1.0 / (1 << 20) as f64;

/// Who wants candidates, and up to which distance.
pub(super) trait Wanted {
    /// The squared distance above which nobody is wanted.
    fn limit(&self) -> f64;
    /// Takes a candidate whose squared distance lies between two bounds.
    fn offer(&mut self, candidate: Candidate, measure: &dyn Fn(u32) -> (f32, f64));
}

/// A point and bounds of its squared distance.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) point: u32,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The `count` nearest so far, and others that may be among them.
pub(super) struct Best {
    count: usize,
    limit: f64,
    candidates: Vec<Candidate>,
}

impl Best {
    pub(super) fn new(count: usize) -> Self {
        Self { count, limit: f64::INFINITY, candidates: Vec::with_capacity(2 * count + 32) }
    }

    /// The nearest with their distances, nearest first, equal distances by number.
    pub(super) fn measured(mut self, measure: &dyn Fn(u32) -> (f32, f64)) -> Vec<(f32, u32)> {
        self.tighten();
        self.measure(measure).into_iter().map(|(distance, candidate)| (distance, candidate.point)).collect()
    }

    /// As many are surely as near as the limit, so nobody beyond it is wanted.
    fn tighten(&mut self) {
        if self.candidates.len() > self.count {
            let (_, last, _) =
                self.candidates.select_nth_unstable_by(self.count - 1, |a, b| a.high.total_cmp(&b.high));
            self.limit = self.limit.min(last.high);
            self.candidates.retain(|candidate| candidate.low <= self.limit);
        }
    }

    fn measure(&self, measure: &dyn Fn(u32) -> (f32, f64)) -> Vec<(f32, Candidate)> {
        let mut all: Vec<(f32, Candidate)> = self
            .candidates
            .iter()
            .map(|&Candidate { point, .. }| {
                let (distance, square) = measure(point);
                (distance, Candidate { point, low: square * (1.0 - SLACK), high: square * (1.0 + SLACK) })
            })
            .collect();
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.point.cmp(&b.1.point)));
        all.truncate(self.count);
        all
    }
}

impl Wanted for Best {
    fn limit(&self) -> f64 {
        self.limit
    }

    fn offer(&mut self, candidate: Candidate, measure: &dyn Fn(u32) -> (f32, f64)) {
        if self.count == 0 || candidate.low > self.limit {
            return;
        }
        self.candidates.push(candidate);
        if self.candidates.len() < 2 * self.count + 32 {
            return;
        }
        self.tighten();
        // Too many within the error of products: only measuring tells them apart.
        if self.candidates.len() > self.count + self.count / 2 + 16 {
            let measured = self.measure(measure);
            self.candidates.clear();
            self.candidates.extend(measured.into_iter().map(|(_, candidate)| candidate));
            self.limit = self.candidates.iter().map(|candidate| candidate.high).fold(0.0, f64::max);
        }
    }
}

/// All within a distance.
pub(super) struct Within {
    distance: f32,
    square: f64,
    pub(super) found: Vec<u32>,
}

impl Within {
    /// Those no farther than `distance`, whose square is given in the units of prepared rows.
    pub(super) fn new(distance: f32, square: f64) -> Self {
        Self { distance, square: square * (1.0 + SLACK), found: Vec::new() }
    }
}

impl Wanted for Within {
    fn limit(&self) -> f64 {
        self.square
    }

    fn offer(&mut self, candidate: Candidate, measure: &dyn Fn(u32) -> (f32, f64)) {
        if measure(candidate.point).0 <= self.distance {
            self.found.push(candidate.point);
        }
    }
}

/// How points of one set are measured against a point of another.
pub(super) fn measure<'a>(
    queries: &'a Points<'a>,
    query: usize,
    others: &'a Points<'a>,
) -> impl Fn(u32) -> (f32, f64) + 'a {
    move |other| queries.distance(query, others, other as usize)
}
