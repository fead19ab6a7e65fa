//! FINE against power iteration written out, and neighbours' votes and FINE against NumPy and scikit-learn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_audit::gmm::{CleanSide, GmmSettings, fit};
use negscale_methods::kit::fine::fine;
use negscale_methods::kit::knn::{Voters, adaptive_vote, vote};
use negscale_methods::kit::rows::normalise;

fn close(found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() <= within, "{found} is not {wanted} within {within}");
}

/// Normalised rows around one centre per class, and labels of which some are wrong.
fn clusters(samples: usize, dim: usize, classes: usize, seed: u64) -> (Vec<f32>, Vec<u32>) {
    let mut state = seed;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let centres: Vec<f32> = (0..classes * dim).map(|_| unit() - 0.5).collect();
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let class = (unit() * classes as f32) as usize;
        features.extend((0..dim).map(|p| centres[class * dim + p] + 0.6 * (unit() - 0.5)));
        let is_wrong = unit() < 0.3;
        labels.push(if is_wrong { (unit() * classes as f32) as u32 } else { class as u32 });
    }
    (normalise(&features, dim).unwrap(), labels)
}

/// Alignments of the members of a class by many rounds of u <- sum_j z_j <z_j, u>, never forming a matrix.
fn literal_alignment(z: &[f32], dim: usize, members: &[usize]) -> Vec<f64> {
    let along = |u: &[f64], j: usize| -> f64 { (0..dim).map(|p| f64::from(z[j * dim + p]) * u[p]).sum() };
    let mut u: Vec<f64> = (0..dim).map(|p| f64::from(z[members[0] * dim + p])).collect();
    for _ in 0..3000 {
        let mut next = vec![0.0; dim];
        for &j in members {
            let a = along(&u, j);
            (0..dim).for_each(|p| next[p] += a * f64::from(z[j * dim + p]));
        }
        let length = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        u = next.iter().map(|x| x / length).collect();
    }
    members.iter().map(|&j| along(&u, j).abs()).collect()
}

#[test]
fn fine_equals_its_formulas() {
    // The last has blocks of rows that are not whole; the class after the last is missing everywhere.
    for (samples, dim, classes, seed) in
        [(1, 3, 1, 1), (40, 5, 3, 2), (60, 1, 2, 3), (300, 17, 20, 4), (700, 6, 2, 5)]
    {
        let (z, labels) = clusters(samples, dim, classes, seed);
        let found = fine(&z, dim, &labels, classes + 1, 0.4).unwrap();
        for class in 0..classes {
            let members: Vec<usize> = (0..samples).filter(|&j| labels[j] as usize == class).collect();
            if members.is_empty() {
                continue;
            }
            let alignment = literal_alignment(&z, dim, &members);
            let mixture = (members.len() >= 5).then(|| fit(&alignment, &GmmSettings::fine()).unwrap());
            for (&j, &a) in members.iter().zip(&alignment) {
                close(found.alignment[j], a, 1e-8);
                let wanted = mixture.map_or(1.0, |mixture| mixture.clean(a, CleanSide::Larger));
                close(found.posterior[j], wanted, 1e-4);
                assert_eq!(found.clean[j], found.posterior[j] > 0.4);
            }
        }
    }
}

#[test]
fn directions_of_nearly_equal_strength_are_told_apart() {
    // 1000 rows along one axis, 1001 along the other: eigenvalues 0.1 % apart.
    let z: Vec<f32> = (0..2001).flat_map(|i| if i % 2 == 0 { [0.0, 1.0] } else { [1.0, 0.0] }).collect();
    let found = fine(&z, 2, &[0; 2001], 1, 0.5).unwrap();
    for i in 0..2001 {
        close(found.alignment[i], f64::from(u32::from(i % 2 == 0)), 1e-7);
        assert_eq!(found.clean[i], i % 2 == 0);
    }
}

#[test]
fn opposite_rows_are_as_aligned_as_equal_ones() {
    let z = [0.6, 0.8, -0.6, -0.8, 0.6, 0.8, -0.6, -0.8, 0.8, -0.6, 0.6, 0.8];
    let found = fine(&z, 2, &[0; 6], 1, 0.5).unwrap();
    assert_eq!(found.clean, [true, true, true, true, false, true]);
}

#[test]
fn samples_that_do_not_differ_get_one_half_and_small_classes_are_clean() {
    let z = [1.0f32, 0.0].repeat(9);
    let found = fine(&z, 2, &[0, 0, 0, 0, 0, 1, 1, 1, 1], 2, 0.5).unwrap();
    assert_eq!(found.posterior, [0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(found.clean, [false, false, false, false, false, true, true, true, true]);
    // A threshold of 1 is above every posterior, but small classes are not judged at all.
    assert_eq!(fine(&z, 2, &[0, 0, 0, 0, 0, 1, 1, 1, 1], 2, 1.0).unwrap().clean, found.clean);
    let zeros = fine(&[0.0; 12], 2, &[0; 6], 1, 0.4).unwrap();
    assert_eq!((zeros.alignment, zeros.posterior), (vec![0.0; 6], vec![0.5; 6]));
}

#[test]
fn threads_do_not_change_a_bit() {
    let (z, labels) = clusters(900, 24, 6, 6);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fine(&z, 24, &labels, 6, 0.5).unwrap())
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3));
}

#[test]
fn bad_input_is_refused_by_name() {
    let z = [0.0, 1.0, f32::INFINITY, 0.0];
    for (error, word) in [
        (fine(&z, 2, &[0, 0], 1, 0.5), "sample 1 has inf"),
        (fine(&z[..2], 2, &[0, 0], 1, 0.5), "2 labels for 1"),
        (fine(&z[..2], 2, &[7], 1, 0.5), "label 7 of sample 0"),
        (fine(&z[..2], 2, &[0], 1, f64::NAN), "gamma"),
        (fine(&z[..2], 0, &[0], 1, 0.5), "rows of 0"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(word), "{error} does not say {word}");
    }
}

#[derive(serde::Deserialize)]
struct Case {
    dim: usize,
    classes: usize,
    k: usize,
    ceiling: usize,
    features: Vec<f32>,
    labels: Vec<u32>,
    fewest: Vec<usize>,
    sizes: Vec<usize>,
    fixed: Vec<Vec<f64>>,
    adaptive: Vec<Vec<f64>>,
    alignment: Vec<f64>,
    posterior: Vec<f64>,
}

#[test]
fn votes_and_verdicts_are_those_of_numpy_and_scikit_learn() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/selection.json")).unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let z = normalise(&case.features, case.dim).unwrap();
        let voters = Voters { labels: &case.labels, classes: case.classes };
        let everyone: Vec<usize> = (0..case.labels.len()).collect();
        let fixed = vote(&z, case.dim, voters, &everyone, case.k).unwrap();
        let adaptive = adaptive_vote(&z, case.dim, voters, &everyone, &case.fewest, case.ceiling).unwrap();
        assert_eq!(adaptive.neighbours, case.sizes);
        for (found, wanted) in [(fixed, case.fixed), (adaptive, case.adaptive)] {
            found.values.iter().zip(wanted.iter().flatten()).for_each(|(&a, &b)| close(a, b, 1e-8));
        }
        let found = fine(&z, case.dim, &case.labels, case.classes, 0.5).unwrap();
        for i in everyone {
            close(found.alignment[i], case.alignment[i], 1e-6);
            close(found.posterior[i], case.posterior[i], 1e-3);
        }
    }
}
