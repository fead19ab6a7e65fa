//! What label noise does to class means of fixed features (the book's page `invariance.md`): exactly in expectation, and within statistical error
//! where labels are drawn. On generated clouds and on real embeddings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale::Taxonomy;
use negscale::taxonomy::{Relation, Thresholds};
use negscale_data::real_data::real;

const CLASSES: usize = 10;

/// Features with their true labels.
struct Data {
    dim: usize,
    features: Vec<f64>,
    truth: Vec<usize>,
}

/// A number that looks random, in (0, 1).
fn chance(seed: u64, at: usize) -> f64 {
    let mut z = (seed << 40 | at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Clouds of very different sizes.
fn clouds() -> Data {
    let truth: Vec<usize> = (0..CLASSES).flat_map(|class| vec![class; 300 + 150 * class]).collect();
    let dim = 12;
    let value = |i: usize, j: usize| {
        let centre = 2.0 * chance(1, truth[i] * dim + j) - 1.0;
        centre + (0..4).map(|k| chance(2 + k, i * dim + j) - 0.5).sum::<f64>()
    };
    let features = (0..truth.len()).flat_map(|i| (0..dim).map(move |j| (i, j))).map(|(i, j)| value(i, j));
    Data { dim, features: features.collect(), truth }
}

/// The number that 16 bits stand for.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size =
        if exponent == 0 { fraction * 2f64.powi(-14) } else { (1.0 + fraction) * 2f64.powi(exponent - 15) };
    if bits >> 15 == 1 { -size } else { size }
}

/// The training samples of the CIFAR-10 embeddings: balanced, one after the other.
fn embeddings() -> Option<Data> {
    let (samples, all, dim) = (50_000, 60_000, 128);
    let features = std::fs::read(real("embeddings/cifar10_efflite0_pca128.npy")?).unwrap();
    let truth = std::fs::read(real("cifar-n/cifar10n_labels.npy")?).unwrap();
    let features = &features[features.len() - 2 * all * dim..][..2 * samples * dim];
    let truth = truth[truth.len() - 6 * samples..].iter().step_by(6);
    Some(Data {
        dim,
        features: features.as_chunks::<2>().0.iter().map(|two| half(u16::from_le_bytes(*two))).collect(),
        truth: truth.map(|&class| class.into()).collect(),
    })
}

/// Class means less the mean of all samples: sample i counts for class g with `weight(i, g)`.
fn means(data: &Data, weight: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    let Data { dim, features, truth } = data;
    let (mut sums, mut counts, mut all) = (vec![vec![0.0; *dim]; CLASSES], [0.0; CLASSES], vec![0.0; *dim]);
    for (i, row) in features.chunks_exact(*dim).enumerate() {
        for (class, sum) in sums.iter_mut().enumerate() {
            let weight = weight(i, class);
            if weight > 0.0 {
                counts[class] += weight;
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
            }
        }
        all.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / truth.len() as f64);
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        sum.iter_mut().zip(&all).for_each(|(sum, all)| *sum = *sum / count - all);
    }
    sums
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cosine(means: &[Vec<f64>], a: usize, b: usize) -> f64 {
    let (a, b) = (&means[a], &means[b]);
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..CLASSES).flat_map(|a| (0..a).map(move |b| (a, b)))
}

/// A share r of the labels is drawn anew with these probabilities, whatever the class.
fn redrawn(r: f64, shares: &[f64; CLASSES]) -> impl Fn(usize, usize) -> f64 {
    let shares = *shares;
    move |y, g| r * shares[g] + if y == g { 1.0 - r } else { 0.0 }
}

/// A label for each sample, drawn from its row of the transition.
fn draw(data: &Data, transition: &impl Fn(usize, usize) -> f64, seed: u64) -> Vec<usize> {
    let one = |(i, &y): (usize, &usize)| {
        let mut left = chance(seed, i);
        (0..CLASSES).find(|&g| {
            left -= transition(y, g);
            left < 0.0
        })
    };
    data.truth.iter().enumerate().map(|at| one(at).unwrap_or(CLASSES - 1)).collect()
}

const EVEN: [f64; CLASSES] = [0.1; CLASSES];
const UNEVEN: [f64; CLASSES] = [0.3, 0.02, 0.08, 0.1, 0.05, 0.05, 0.2, 0.1, 0.04, 0.06];

fn all() -> Vec<Data> {
    [Some(clouds()), embeddings()].into_iter().flatten().collect()
}

#[test]
fn labels_drawn_anew_whatever_the_class_turn_no_centred_class_mean() {
    for data in all() {
        let clean = means(&data, |i, g| f64::from(u8::from(data.truth[i] == g)));
        let sizes: Vec<f64> =
            (0..CLASSES).map(|g| data.truth.iter().filter(|&&y| y == g).count() as f64).collect();
        let samples: f64 = sizes.iter().sum();
        for shares in [EVEN, UNEVEN] {
            for r in [0.2, 0.5, 0.8, 0.99] {
                let transition = redrawn(r, &shares);
                let noisy = means(&data, |i, g| transition(data.truth[i], g));
                for (a, b) in pairs() {
                    let (before, after) = (cosine(&clean, a, b), cosine(&noisy, a, b));
                    assert!((before - after).abs() < 1e-9, "{r}, {a} and {b}: {before} became {after}");
                }
                for g in 0..CLASSES {
                    let shrunk = (1.0 - r) * sizes[g] / ((1.0 - r) * sizes[g] + r * shares[g] * samples);
                    let found = dot(&noisy[g], &clean[g]) / dot(&clean[g], &clean[g]);
                    assert!((found - shrunk).abs() < 1e-9, "{found}, not {shrunk}");
                    assert!(shares != EVEN || sizes[0] != sizes[9] || (shrunk - (1.0 - r)).abs() < 1e-12);
                }
            }
        }
    }
}

/// Standard error of the cosine of two centred class means whose labels are drawn, to first order (the delta method): sample i moves it by
/// alpha if it is labelled a, by beta if b.
fn standard_error(
    data: &Data,
    expected: &[Vec<f64>],
    transition: &impl Fn(usize, usize) -> f64,
    pair: (usize, usize),
) -> f64 {
    let (a, b) = pair;
    let c = cosine(expected, a, b);
    let unit = |g: usize| -> Vec<f64> {
        let length = dot(&expected[g], &expected[g]).sqrt();
        expected[g].iter().map(|x| x / length).collect()
    };
    let all: Vec<f64> = (0..data.dim)
        .map(|j| data.features.iter().skip(j).step_by(data.dim).sum::<f64>() / data.truth.len() as f64)
        .collect();
    // How far one more sample at x turns the mean of g towards the other.
    let slope = |g: usize, other: usize| {
        let (own, other) = (unit(g), unit(other));
        let across: Vec<f64> = other.iter().zip(&own).map(|(o, u)| o - c * u).collect();
        let count: f64 = data.truth.iter().map(|&y| transition(y, g)).sum();
        let scale = 1.0 / (count * dot(&expected[g], &expected[g]).sqrt());
        let at_mean = dot(&all, &across) + dot(&expected[g], &across);
        (across, scale, at_mean)
    };
    let (of_a, of_b) = (slope(a, b), slope(b, a));
    let term = |(row, &y): (&[f64], &usize)| {
        let size = |(across, scale, at_mean): &(Vec<f64>, f64, f64)| (dot(row, across) - at_mean) * scale;
        let (alpha, beta, to_a, to_b) = (size(&of_a), size(&of_b), transition(y, a), transition(y, b));
        to_a * (1.0 - to_a) * alpha * alpha + to_b * (1.0 - to_b) * beta * beta
            - 2.0 * to_a * to_b * alpha * beta
    };
    data.features.chunks_exact(data.dim).zip(&data.truth).map(term).sum::<f64>().sqrt()
}

#[test]
fn drawn_labels_keep_them_within_statistical_error() {
    for data in all() {
        let clean = means(&data, |i, g| f64::from(u8::from(data.truth[i] == g)));
        let transition = redrawn(0.5, &EVEN);
        let expected = means(&data, |i, g| transition(data.truth[i], g));
        let errors: Vec<f64> =
            pairs().map(|pair| standard_error(&data, &expected, &transition, pair)).collect();
        let mut scores = Vec::new();
        for seed in 0..8 {
            let labels = draw(&data, &transition, 100 + seed);
            let noisy = means(&data, |i, g| f64::from(u8::from(labels[i] == g)));
            let changes = pairs().map(|(a, b)| cosine(&noisy, a, b) - cosine(&clean, a, b));
            scores.extend(changes.zip(&errors).map(|(change, error)| change / error));
        }
        let count = scores.len() as f64;
        let (mean, square) =
            (scores.iter().sum::<f64>() / count, scores.iter().map(|z| z * z).sum::<f64>() / count);
        let largest = scores.iter().fold(0.0f64, |most, z| most.max(z.abs()));
        assert!(
            mean.abs() < 0.2 && (0.8..1.25).contains(&square) && largest < 4.5,
            "{mean} {square} {largest}"
        );
        // Labels that depend on the class do turn the means: this could fail.
        let labels =
            draw(&data, &|y: usize, g: usize| if g == y || g == (y + 1) % CLASSES { 0.5 } else { 0.0 }, 200);
        let noisy = means(&data, |i, g| f64::from(u8::from(labels[i] == g)));
        assert!(pairs().any(|(a, b)| (cosine(&noisy, a, b) - cosine(&clean, a, b)).abs() > 0.2));
    }
}

/// Two ways to put the classes of CIFAR-10 into groups: animals and vehicles; and those that are related by the tree.
const GROUPS: [[usize; CLASSES]; 2] = [[0, 0, 1, 1, 1, 1, 1, 1, 0, 0], [0, 1, 2, 3, 3, 3, 4, 3, 0, 1]];

#[test]
fn flips_within_groups_draw_classes_of_a_group_together_and_leave_groups_where_they_are() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let Some(data) = embeddings() else { return };
    for groups in GROUPS {
        let is_together = |a: usize, b: usize| groups[a] == groups[b];
        let size = |class: usize| groups.iter().filter(|group| **group == groups[class]).count() as f64;
        // With probability r a label is drawn anew within its group.
        let flips = |r: f64| {
            means(&data, |i, g| {
                let y = data.truth[i];
                let within = if is_together(y, g) { r / size(g) } else { 0.0 };
                within + if y == g { 1.0 - r } else { 0.0 }
            })
        };
        let clean = flips(0.0);
        let group_mean = |means: &[Vec<f64>], class: usize| -> Vec<f64> {
            let members: Vec<&Vec<f64>> =
                (0..CLASSES).filter(|&c| is_together(c, class)).map(|c| &means[c]).collect();
            (0..data.dim).map(|j| members.iter().map(|m| m[j]).sum::<f64>() / size(class)).collect()
        };
        for r in [0.2, 0.4, 0.6, 0.8, 1.0] {
            let noisy = flips(r);
            for class in 0..CLASSES {
                let (old, new) = (group_mean(&clean, class), group_mean(&noisy, class));
                let wanted = clean[class].iter().zip(&old).map(|(c, group)| group + (1.0 - r) * (c - group));
                assert!(old.iter().zip(&new).all(|(a, b)| (a - b).abs() < 1e-9), "groups stay");
                assert!(wanted.zip(&noisy[class]).all(|(a, b)| (a - b).abs() < 1e-9), "classes go there");
            }
            for (a, b) in pairs().filter(|&(a, b)| is_together(a, b)) {
                let angle = |means: &[Vec<f64>]| cosine(means, a, b).clamp(-1.0, 1.0).acos();
                assert!(angle(&noisy) < angle(&clean), "{r}, {a} and {b} come nearer");
                assert!(r < 1.0 || angle(&noisy) < 1e-6, "no label tells them apart any more");
            }
            let mean_change = |wanted: &dyn Fn(usize, usize) -> bool| {
                let kept = pairs().filter(|&(a, b)| wanted(a, b));
                let changes: Vec<f64> =
                    kept.map(|(a, b)| cosine(&noisy, a, b) - cosine(&clean, a, b)).collect();
                changes.iter().sum::<f64>() / changes.len() as f64
            };
            let of = |relation: Relation| {
                mean_change(&|a, b| tree.relation(a, b, Thresholds::default()) == relation)
            };
            let (related, unrelated) = (of(Relation::Related), of(Relation::Unrelated));
            // Nothing says that unrelated classes stay where they are: with animals and vehicles for groups they move as far.
            let times = if groups == GROUPS[1] { 3.0 } else { 0.9 };
            assert!(unrelated < 0.0 && related > times * -unrelated, "{r}: {related} and {unrelated}");
        }
    }
}
