use crate::material::{balanced, noise, numbered};
use negscale_data::noise::Noise;

/// Chi-square of the cells off the diagonal of one row against a flat law, and its degrees of freedom.
fn chi_square(noise: &Noise, row: usize) -> (f64, f64) {
    let counts = &noise.transition.counts()[row];
    let others: Vec<f64> = (0..counts.len()).filter(|&c| c != row).map(|c| counts[c] as f64).collect();
    let mean = others.iter().sum::<f64>() / others.len() as f64;
    (others.iter().map(|n| (n - mean).powi(2) / mean).sum(), others.len() as f64 - 1.0)
}

/// A chi-square variable with k degrees of freedom has mean k and variance 2k; all rows together are near normal.
fn assert_flat(noise: &Noise) {
    let rows = 0..noise.transition.classes();
    let (sum, freedom) =
        rows.map(|row| chi_square(noise, row)).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!((sum - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(), "chi-square {sum} for {freedom}");
}

#[test]
fn inclusive_noise_has_the_rate_r_times_c_minus_1_over_c() {
    for (classes, each) in [(10, 5000), (100, 500)] {
        let data = balanced(numbered(classes), each);
        for (seed, r) in [0.2, 0.5, 0.8, 0.9].into_iter().enumerate() {
            let noise = noise(&format!("sym:{r}"), &data, seed as u64);
            let (n, c) = (data.len() as f64, classes as f64);
            let sd = (r / c * (1.0 - 1.0 / c) / n).sqrt();
            let expected = r * (c - 1.0) / c;
            assert!((noise.achieved - expected).abs() < 4.0 * sd, "{r} of {classes}: {}", noise.achieved);
            assert_eq!(noise.nominal, Some(r));
            assert_flat(&noise);
        }
    }
}

#[test]
fn sym_50_on_ten_classes_is_45_percent_inclusive_and_50_exclusive() {
    let data = balanced(numbered(10), 5000);
    assert!((noise("sym:0.5", &data, 1).achieved - 0.45).abs() < 4.0 * 0.00095);
    assert!((noise("sym-excl:0.5", &data, 1).achieved - 0.5).abs() < 4.0 * 0.00224);
    assert_eq!(noise("sym-exact:0.5", &data, 1).achieved, 0.5);
}

#[test]
fn inclusive_noise_touches_exactly_the_front_of_one_permutation() {
    // With one class more the same samples are touched, so whatever differs between two class counts was touched, and at
    // rate r no more than floor(rN) samples may differ from the truth under any of many class counts.
    let n = 1001;
    let r = 0.3;
    let mut touched = vec![false; n];
    for classes in [11, 12, 13, 15, 16, 17, 1000] {
        let labels: Vec<u32> = (0..n as u32).map(|i| i % 11).collect();
        let items = crate::material::vectors(n, 1);
        let data = negscale_data::Dataset::new("n", numbered(classes), items, labels.clone(), None).unwrap();
        let noise = noise(&format!("sym:{r}"), &data, 9);
        (0..n).for_each(|i| touched[i] |= noise.labels[i] != labels[i]);
    }
    assert_eq!(touched.iter().filter(|&&t| t).count(), 300);
}

#[test]
fn exclusive_noise_is_binomial_and_flat() {
    for (classes, each) in [(10, 5000), (100, 500), (2, 20_000)] {
        let data = balanced(numbered(classes), each);
        for r in [0.2, 0.5, 0.8] {
            let noise = noise(&format!("sym-excl:{r}"), &data, 4);
            let sd = (r * (1.0 - r) / data.len() as f64).sqrt();
            assert!((noise.achieved - r).abs() < 4.0 * sd, "{r} of {classes}: {}", noise.achieved);
            // Not exact: a count that equals rN to the sample would be another law.
            assert_ne!(noise.achieved, r);
            if classes > 2 {
                assert_flat(&noise);
            }
        }
    }
}

#[test]
fn exact_noise_flips_the_ceiling_of_r_n_in_every_class() {
    let data = balanced(numbered(10), 501);
    for (r, expected) in [(0.2, 101), (0.5, 251), (0.001, 1), (1.0, 501), (0.0, 0)] {
        let noise = noise(&format!("sym-exact:{r}"), &data, 2);
        for (class, row) in noise.transition.counts().iter().enumerate() {
            assert_eq!(row.iter().sum::<u64>() - row[class], expected, "rate {r}");
        }
    }
    assert_flat(&noise("sym-exact:0.9", &balanced(numbered(10), 5000), 3));
}

#[test]
fn rows_of_the_transition_matrix_add_up_and_agree_with_the_labels() {
    let data = balanced(numbered(10), 300);
    let noise = noise("sym:0.6", &data, 8);
    for row in noise.transition.shares() {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let wrong = data.given().iter().zip(&noise.labels).filter(|(a, b)| a != b).count();
    assert_eq!(noise.achieved, wrong as f64 / 3000.0);
    let counted = noise.transition.cells().filter(|(a, b, _)| a != b).map(|(_, _, n)| n).sum::<u64>();
    assert_eq!(counted as usize, wrong);
    let row = &noise.transition.counts()[3];
    let (most, all) = (0..10).filter(|&c| c != 3).fold((0, 0), |(m, s), c| (row[c].max(m), s + row[c]));
    assert_eq!(noise.dominant[3], most as f64 / all as f64);
}
