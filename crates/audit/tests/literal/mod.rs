//! The model of noise as its formulas say, in plain `f64` loops.

pub type Matrix = Vec<Vec<f64>>;

/// Rows of probabilities.
pub fn rows(predictions: &[f32], classes: usize) -> Matrix {
    predictions.chunks(classes).map(|row| row.iter().map(|&p| f64::from(p).max(1e-12)).collect()).collect()
}

/// $p(g) = \sum_y q(y) T_{yg}$.
pub fn predicted(q: &[f64], t: &Matrix) -> Vec<f64> {
    (0..q.len()).map(|g| q.iter().zip(t).map(|(q, t)| q * t[g]).sum()).collect()
}

/// $\sum_g p(g) \log \sum_y q(y) T_{yg}$.
pub fn objective(p: &[f64], q: &[f64], t: &Matrix) -> f64 {
    p.iter().zip(predicted(q, t)).map(|(p, m)| p * m.ln()).sum()
}

/// One round of expectation and maximisation on the objective.
pub fn explain_once(p: &[f64], q: &[f64], t: &Matrix) -> Vec<f64> {
    let m = predicted(q, t);
    let next = q.iter().zip(t).map(|(q, t)| q * (0..p.len()).map(|g| p[g] * t[g] / m[g]).sum::<f64>());
    shares(&next.collect::<Vec<_>>())
}

pub fn explain(p: &[f64], t: &Matrix) -> Vec<f64> {
    (0..30).fold(shares(p), |q, _| explain_once(p, &q, t))
}

pub fn shares(row: &[f64]) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    row.iter().map(|x| x / sum).collect()
}

/// The samples that look most like a class.
pub fn anchors(predictions: &Matrix, class: usize, size: f64) -> Vec<usize> {
    let wanted = ((0.2 * size).floor() as usize).max((size.round() as usize).min(5));
    let mut order: Vec<usize> = (0..predictions.len()).collect();
    order.sort_by(|&i, &j| predictions[j][class].total_cmp(&predictions[i][class]).then(i.cmp(&j)));
    order.truncate(wanted);
    order
}

/// The logarithm of what a Dirichlet prior of this strength gives the wrong labels, up to a constant.
fn marginal(counts: &Matrix, strength: f64) -> f64 {
    let (classes, mut sum) = (counts.len(), 0.0);
    for class in 0..classes {
        let mut seen = 0.0;
        for g in (0..classes).filter(|&g| g != class) {
            for j in 0..counts[class][g] as usize {
                sum += (strength / (classes - 1) as f64 + j as f64).ln() - (strength + seen).ln();
                seen += 1.0;
            }
        }
    }
    sum
}

/// $T$ by anchors: their labels, ten more that are right as often as is usual, and wrong ones smoothed as much as suits them.
pub fn by_anchors(predictions: &Matrix, given: &[u32], sizes: &[f64]) -> Matrix {
    let classes = sizes.len();
    let mut counts = vec![vec![0.0; classes]; classes];
    for class in 0..classes {
        for i in anchors(predictions, class, sizes[class]) {
            counts[class][given[i] as usize] += 1.0;
        }
    }
    let all: f64 = counts.iter().flatten().sum();
    let right: f64 = (0..classes).map(|class| counts[class][class]).sum();
    let wrong = (all - right + 1.0) / (all + 2.0);
    let mut strength = 1.0;
    for other in [3.0, 10.0, 50.0, 250.0, 1000.0] {
        if marginal(&counts, other) > marginal(&counts, strength) + 1e-9 {
            strength = other;
        }
    }
    for (class, row) in counts.iter_mut().enumerate() {
        let all: f64 = row.iter().sum();
        let kept = (row[class] + 10.0 * (1.0 - wrong)) / (all + 10.0);
        let outside = all - row[class];
        for (g, cell) in row.iter_mut().enumerate() {
            *cell = if g == class {
                kept
            } else {
                (1.0 - kept) * (*cell + strength / (classes - 1) as f64) / (outside + strength)
            };
        }
    }
    counts
}

/// $T$ and $q$: anchors by predictions, then by what explains them.
pub fn fit(predictions: &Matrix, given: &[u32], resistant: bool) -> (Matrix, Matrix) {
    let classes = predictions[0].len();
    let believe = |t: &Matrix| -> Matrix {
        predictions.iter().map(|p| if resistant { p.clone() } else { explain(p, t) }).collect()
    };
    let count = |class: usize| given.iter().filter(|&&g| g as usize == class).count() as f64;
    let sizes: Vec<f64> = (0..classes).map(count).collect();
    let beliefs = believe(&by_anchors(predictions, given, &sizes));
    let found = |class: usize| beliefs.iter().map(|q| q[class]).sum::<f64>();
    let sizes: Vec<f64> = (0..classes).map(|class| found(class).min(sizes[class])).collect();
    let t = by_anchors(&beliefs, given, &sizes);
    let beliefs = believe(&t);
    (t, beliefs)
}

/// $r(y) = q(y) T_{yg} / \sum_c q(c) T_{cg}$.
pub fn posterior(q: &[f64], t: &Matrix, given: u32) -> Vec<f64> {
    shares(&q.iter().zip(t).map(|(q, t)| q * t[given as usize]).collect::<Vec<_>>())
}

/// The matrix of the score: ten rounds on all samples, then a floor.
pub fn ranking(beliefs: &Matrix, t: &Matrix, given: &[u32]) -> Matrix {
    let classes = t.len();
    let mut t = t.clone();
    for _ in 0..10 {
        let mut joint = vec![vec![0.0; classes]; classes];
        for (q, &g) in beliefs.iter().zip(given) {
            for (y, r) in posterior(q, &t, g).into_iter().enumerate() {
                joint[y][g as usize] += r;
            }
        }
        for (y, row) in joint.iter_mut().enumerate() {
            for (g, cell) in row.iter_mut().enumerate() {
                *cell += if g == y { 1.0 } else { 1.0 / (classes - 1) as f64 };
            }
            *row = shares(row);
        }
        t = joint;
    }
    t.into_iter().map(|row| row.into_iter().map(|x| 0.95 * x + 0.05 / classes as f64).collect()).collect()
}

/// The mean probability of own labels, by class; counts of confident predictions, rows of given classes scaled to their sizes.
pub fn confident(beliefs: &Matrix, given: &[u32]) -> Matrix {
    let classes = beliefs[0].len();
    let of = |class: usize| (0..given.len()).filter(move |&i| given[i] as usize == class);
    let mean = |class: usize| of(class).map(|i| beliefs[i][class]).sum::<f64>() / of(class).count() as f64;
    let means: Vec<f64> = (0..classes).map(mean).collect();
    let mut joint = vec![vec![0.0; classes]; classes];
    for (q, &g) in beliefs.iter().zip(given) {
        let above = (0..classes).filter(|&c| q[c] >= means[c]);
        if let Some(class) = above.max_by(|&a, &b| q[a].total_cmp(&q[b])) {
            joint[g as usize][class] += 1.0;
        }
    }
    for (class, row) in joint.iter_mut().enumerate() {
        let (size, sum) = (of(class).count() as f64, row.iter().sum::<f64>());
        row.iter_mut().for_each(|x| *x *= if sum > 0.0 { size / sum } else { 0.0 });
        if sum == 0.0 {
            row[class] = size;
        }
    }
    joint
}
