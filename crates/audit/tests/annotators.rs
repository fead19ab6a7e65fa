//! Consensus of several annotators, on made-up labels.
#![allow(clippy::unwrap_used)]

use negscale_audit::Error;
use negscale_audit::annotators::{Consensus, Labels, Settings};
use proptest::prelude::*;

/// Numbers from 0 to 1 by a counter.
fn draws(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One of the classes, by their probabilities.
fn pick(row: &[f64], draw: f64) -> u32 {
    let mut left = draw;
    row.iter()
        .position(|p| {
            left -= p;
            left < 0.0
        })
        .unwrap_or(row.len() - 1) as u32
}

/// A matrix with `right` on the diagonal; of the rest, most goes to the next class.
fn matrix(classes: usize, right: f64) -> Vec<f64> {
    let rest = 1.0 - right;
    let cell = |at: usize| match (at / classes, at % classes) {
        (y, l) if y == l => right,
        (y, l) if (y + 1) % classes == l => 0.7 * rest,
        _ => 0.3 * rest / (classes - 2) as f64,
    };
    (0..classes * classes).map(cell).collect()
}

/// True classes and labels by annotators with these matrices, some labels missing.
fn made_up(samples: usize, matrices: &[Vec<f64>], missing: f64, seed: u64) -> (Vec<u32>, Vec<Option<u32>>) {
    let mut draw = draws(seed);
    let classes = matrices[0].len().isqrt();
    let truth: Vec<u32> = (0..samples).map(|_| (draw() * classes as f64) as u32).collect();
    let mut rows = Vec::new();
    for &y in &truth {
        for matrix in matrices {
            let label = pick(&matrix[y as usize * classes..(y as usize + 1) * classes], draw());
            rows.push((draw() >= missing).then_some(label));
        }
    }
    (truth, rows)
}

fn right(consensus: &Consensus, truth: &[u32]) -> f64 {
    let right = consensus.samples.iter().zip(truth).filter(|(sample, y)| sample.class == **y).count();
    right as f64 / truth.len() as f64
}

#[test]
fn planted_confusion_matrices_are_recovered() {
    let planted = [0.9, 0.8, 0.6, 0.75].map(|right| matrix(4, right));
    let (truth, rows) = made_up(8000, &planted, 0.2, 1);
    let consensus = Consensus::fit(&Labels::from_rows(&rows, 4, 4).unwrap(), None).unwrap();
    assert!(consensus.converged);
    for (annotator, planted) in planted.iter().enumerate() {
        let found = consensus.confusion(annotator);
        let worst = found.iter().zip(planted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 0.05, "annotator {annotator}: {found:?}");
        for row in found.chunks(4) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
        }
        let own: Vec<(u32, u32)> =
            (0..8000).filter_map(|i| Some((rows[i * 4 + annotator]?, truth[i]))).collect();
        let actual = own.iter().filter(|(label, y)| label == y).count() as f64 / own.len() as f64;
        let about = consensus.annotators[annotator];
        let error = about.accuracy.unwrap() - actual;
        assert_eq!(about.labels, own.len());
        assert!(
            error.abs() < 4.0 * about.standard_error.unwrap(),
            "annotator {annotator}: off by {error}, {about:?}"
        );
        assert!((about.wrong_rate().unwrap() + about.accuracy.unwrap() - 1.0).abs() < 1e-12);
    }
    let kappas: Vec<f64> = consensus.annotators.iter().map(|about| about.kappa.unwrap()).collect();
    assert!(kappas[0] > kappas[1] && kappas[1] > kappas[3] && kappas[3] > kappas[2], "{kappas:?}");
}

#[test]
fn a_good_annotator_outweighs_two_bad_ones() {
    let planted = [0.95, 0.5, 0.5, 0.5].map(|right| matrix(4, right));
    let (truth, rows) = made_up(4000, &planted, 0.0, 2);
    let consensus = Consensus::fit(&Labels::from_rows(&rows, 4, 4).unwrap(), None).unwrap();
    let majority = (0..4000).filter(|&i| {
        let votes = |class: u32| rows[i * 4..i * 4 + 4].iter().filter(|label| **label == Some(class)).count();
        (0..4).filter(|&class| class != truth[i]).all(|class| votes(class) < votes(truth[i]))
    });
    let (majority, found) = (majority.count() as f64 / 4000.0, right(&consensus, &truth));
    assert!(found > 0.94 && found > majority + 0.05, "{found} and {majority}");
    let certainty = consensus.samples.iter().map(|s| f64::from(s.certainty)).sum::<f64>() / 4000.0;
    assert!((certainty - found).abs() < 0.02, "certainty {certainty}, right {found}");
}

#[test]
fn predictions_are_a_further_voice_and_their_exponent_is_fitted() {
    let mut draw = draws(3);
    let (samples, classes) = (6000, 3);
    let planted = matrix(3, 0.6);
    let (mut rows, mut truth, mut honest, mut boasting) = (vec![], vec![], vec![], vec![]);
    for _ in 0..samples {
        let raw: Vec<f64> = (0..classes).map(|_| draw().powi(3) + 0.02).collect();
        let p: Vec<f64> = raw.iter().map(|x| x / raw.iter().sum::<f64>()).collect();
        let cubes: f64 = p.iter().map(|x| x.powi(3)).sum();
        let y = pick(&p, draw());
        rows.extend((0..2).map(|_| Some(pick(&planted[y as usize * 3..y as usize * 3 + 3], draw()))));
        honest.extend(p.iter().map(|&x| x as f32));
        boasting.extend(p.iter().map(|x| (x.powi(3) / cubes) as f32));
        truth.push(y);
    }
    let labels = Labels::from_rows(&rows, 2, classes).unwrap();
    let alone = right(&Consensus::fit(&labels, None).unwrap(), &truth);
    let with = Consensus::fit(&labels, Some(&honest)).unwrap();
    assert!((with.exponent.unwrap() - 1.0).abs() < 0.15, "{:?}", with.exponent);
    assert!(right(&with, &truth) > alone + 0.05, "{} and {alone}", right(&with, &truth));
    let sharp = Consensus::fit(&labels, Some(&boasting)).unwrap();
    assert!((sharp.exponent.unwrap() - 1.0 / 3.0).abs() < 0.05, "{:?}", sharp.exponent);
    assert!((right(&sharp, &truth) - right(&with, &truth)).abs() < 2e-3);
}

#[test]
fn one_annotator_with_predictions_is_judged_by_them() {
    let planted = [matrix(4, 0.7), matrix(4, 0.85)];
    let (truth, rows) = made_up(3000, &planted, 0.0, 4);
    let own: Vec<Option<u32>> = rows.iter().copied().step_by(2).collect();
    // The second annotator's word as a prediction.
    let mut predictions = vec![0.06; 3000 * 4];
    (0..3000).for_each(|i| predictions[i * 4 + rows[i * 2 + 1].unwrap() as usize] = 0.82f32);
    let labels = Labels::from_rows(&own, 1, 4).unwrap();
    let single = Consensus::fit(&labels, Some(&predictions)).unwrap();
    let diagonal = (0..4).map(|c| single.confusion(0)[c * 5]).sum::<f64>() / 4.0;
    assert!((diagonal - 0.7).abs() < 0.06, "{:?}", single.confusion(0));
    assert_eq!((single.alpha, single.strength, single.samples[0].agreement), (None, None, None));
    assert!(right(&single, &truth) > 0.84);
}

#[test]
fn classes_by_other_numbers_give_the_same_results_by_those_numbers() {
    let (_, rows) = made_up(500, &[0.9, 0.6, 0.7].map(|right| matrix(4, right)), 0.3, 5);
    let mut draw = draws(6);
    let predictions: Vec<f32> = (0..500)
        .flat_map(|_| {
            let raw: Vec<f64> = (0..4).map(|_| draw() + 0.01).collect();
            let sum: f64 = raw.iter().sum();
            raw.into_iter().map(move |x| (x / sum) as f32)
        })
        .collect();
    let to = [2u32, 0, 3, 1];
    let moved: Vec<Option<u32>> = rows.iter().map(|label| label.map(|class| to[class as usize])).collect();
    let mut moved_predictions = predictions.clone();
    (0..2000).for_each(|at| moved_predictions[at / 4 * 4 + to[at % 4] as usize] = predictions[at]);
    let (a, b) = (Labels::from_rows(&rows, 3, 4).unwrap(), Labels::from_rows(&moved, 3, 4).unwrap());
    for (p, q) in [(None, None), (Some(&predictions[..]), Some(&moved_predictions[..]))] {
        let (a, b) = (Consensus::fit(&a, p).unwrap(), Consensus::fit(&b, q).unwrap());
        for at in 0..2000 {
            let other = b.posteriors[at / 4 * 4 + to[at % 4] as usize];
            assert!((a.posteriors[at] - other).abs() < 1e-5, "{} and {other}", a.posteriors[at]);
        }
        for annotator in 0..3 {
            let (ours, theirs) = (a.confusion(annotator), b.confusion(annotator));
            for at in 0..16 {
                let other = theirs[to[at / 4] as usize * 4 + to[at % 4] as usize];
                assert!((ours[at] - other).abs() < 1e-6);
            }
            let (ours, theirs) = (a.annotators[annotator], b.annotators[annotator]);
            assert!((ours.accuracy.unwrap() - theirs.accuracy.unwrap()).abs() < 1e-6);
            assert_eq!(ours.chance, theirs.chance);
        }
        assert!((a.alpha.unwrap() - b.alpha.unwrap()).abs() < 1e-12);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (_, rows) = made_up(3000, &[0.9, 0.6, 0.7].map(|right| matrix(5, right)), 0.3, 7);
    let labels = Labels::from_rows(&rows, 3, 5).unwrap();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Consensus::fit(&labels, None).unwrap())
    };
    let one = with(1);
    for threads in [2, 3] {
        let other = with(threads);
        assert_eq!(one.posteriors, other.posteriors);
        assert_eq!(one.annotators, other.annotators);
        assert_eq!(one.confusion(1), other.confusion(1));
    }
}

#[test]
fn few_labels_are_judged_like_the_others_and_none_not_at_all() {
    let (_, rows) = made_up(2000, &[0.9, 0.7, 0.8].map(|right| matrix(4, right)), 0.0, 8);
    // A fourth annotator with three labels, a fifth with none.
    let rows: Vec<Option<u32>> = (0..2000)
        .flat_map(|i| [rows[i * 3], rows[i * 3 + 1], rows[i * 3 + 2], (i < 3).then_some(1), None])
        .collect();
    let consensus = Consensus::fit(&Labels::from_rows(&rows, 5, 4).unwrap(), None).unwrap();
    let pooled = consensus.pooled_confusion();
    let far = |annotator: usize| {
        let cells = consensus.confusion(annotator);
        cells.iter().zip(&pooled).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(far(3) < 0.1 && far(4) < 1e-12 && far(0) > 0.05, "{} {} {}", far(3), far(4), far(0));
    let nobody = consensus.annotators[4];
    assert_eq!((nobody.labels, nobody.accuracy, nobody.standard_error, nobody.kappa), (0, None, None, None));
    assert_eq!(consensus.annotators[3].labels, 3);
}

#[test]
fn who_always_says_the_same_is_no_better_than_chance() {
    let (truth, rows) = made_up(3000, &[0.85, 0.8, 0.75].map(|right| matrix(3, right)), 0.0, 9);
    let rows: Vec<Option<u32>> = rows.chunks(3).flat_map(|row| [row[0], row[1], row[2], Some(1)]).collect();
    let consensus = Consensus::fit(&Labels::from_rows(&rows, 4, 3).unwrap(), None).unwrap();
    let stuck = consensus.annotators[3];
    assert!((stuck.accuracy.unwrap() - 1.0 / 3.0).abs() < 0.03, "{stuck:?}");
    assert!(stuck.kappa.unwrap().abs() < 1e-9, "{stuck:?}");
    assert!(consensus.annotators[0].kappa.unwrap() > 0.5);
    assert!(right(&consensus, &truth) > 0.88, "{}", right(&consensus, &truth));
}

#[test]
fn two_who_always_disagree_leave_everything_open() {
    let rows: Vec<Option<u32>> = (0..400).flat_map(|i| [Some(i % 2), Some(1 - i % 2)]).collect();
    let consensus = Consensus::fit(&Labels::from_rows(&rows, 2, 2).unwrap(), None).unwrap();
    assert!(consensus.alpha.unwrap() < -0.9);
    for sample in &consensus.samples {
        assert!(sample.certainty < 0.6 && sample.agreement == Some(0.0), "{sample:?}");
    }
    for about in &consensus.annotators {
        assert!((about.accuracy.unwrap() - 0.5).abs() < 0.1 && about.kappa.unwrap() < 1e-9, "{about:?}");
    }
}

#[test]
fn samples_without_labels_go_by_predictions_alone() {
    let rows = [Some(0), Some(0), None, None, Some(1), Some(1)];
    let labels = Labels::from_rows(&rows, 2, 2).unwrap();
    let consensus = Consensus::fit(&labels, Some(&[0.8, 0.2, 0.3, 0.7, 0.1, 0.9])).unwrap();
    let [first, second, third] = consensus.samples[..] else { panic!() };
    assert_eq!((first.class, second.class, third.class), (0, 1, 1));
    assert_eq!((second.labels, second.agreement, first.agreement), (0, None, Some(1.0)));
    let shared = Consensus::fit(&labels, None).unwrap();
    assert!(shared.samples[1].certainty < 0.7, "{:?}", shared.samples[1]);
}

#[test]
fn standard_errors_are_of_the_size_of_the_errors() {
    let planted = [0.85, 0.7, 0.75].map(|right| matrix(3, right));
    let (mut squares, mut count) = (0.0, 0.0);
    for seed in 0..20 {
        let (truth, rows) = made_up(1500, &planted, 0.0, 100 + seed);
        let consensus = Consensus::fit(&Labels::from_rows(&rows, 3, 3).unwrap(), None).unwrap();
        for annotator in 0..3 {
            let actual =
                (0..1500).filter(|&i| rows[i * 3 + annotator] == Some(truth[i])).count() as f64 / 1500.0;
            let about = consensus.annotators[annotator];
            squares += ((about.accuracy.unwrap() - actual) / about.standard_error.unwrap()).powi(2);
            count += 1.0;
        }
    }
    let size = f64::sqrt(squares / count);
    assert!((0.4..1.6).contains(&size), "{size}");
}

#[test]
fn one_class_is_no_trouble() {
    let consensus = Consensus::fit(&Labels::from_rows(&[Some(0); 6], 2, 1).unwrap(), None).unwrap();
    assert_eq!(
        (consensus.samples[2].certainty, consensus.alpha, consensus.annotators[0].kappa),
        (1.0, None, None)
    );
}

#[test]
fn what_cannot_be_compared_or_is_no_prediction_is_refused_in_words_that_help() {
    let told = |result: Result<Consensus, Error>| result.unwrap_err().to_string();
    let one = Labels::from_rows(&[Some(0), Some(1)], 1, 2).unwrap();
    assert!(told(Consensus::fit(&one, None)).contains("a second annotator"));
    let none = Labels::from_rows(&[None; 4], 2, 2).unwrap();
    assert!(told(Consensus::fit(&none, None)).contains("empty"));
    assert!(told(Consensus::fit(&one, Some(&[0.5; 3]))).contains("3 numbers for 2 samples of 2 classes"));
    assert!(told(Consensus::fit(&one, Some(&[0.5, 0.5, 1.5, -0.5]))).contains("sample 1 has 1.5"));
    assert!(told(Consensus::fit(&one, Some(&[0.5, 0.5, f32::NAN, 0.5]))).contains("sample 1 has NaN"));
    assert!(told(Consensus::fit(&one, Some(&[0.5, 0.5, 0.5, 0.1]))).contains("not logits"));
    let with = |settings| told(Consensus::fit_with(&one, Some(&[0.5; 4]), settings));
    assert!(with(Settings { strength: Some(0.0), ..Settings::default() }).contains("`strength` = 0"));
    assert!(with(Settings { exponents: [2.0, 1.0], ..Settings::default() }).contains("`exponents`"));
    assert!(with(Settings { rounds: 0, ..Settings::default() }).contains("one round"));
}

proptest! {
    #[test]
    fn whatever_the_labels_posteriors_are_distributions_and_numbers_are_finite(
        rows in prop::collection::vec(prop::array::uniform4(prop::option::of(0u32..3)), 1..30),
        sure in prop::option::of(0.0f32..=1.0),
    ) {
        let flat: Vec<Option<u32>> = rows.iter().flatten().copied().collect();
        let labels = Labels::from_rows(&flat, 4, 3).unwrap();
        let predictions = sure.map(|sure| [sure, 1.0 - sure, 0.0].repeat(rows.len()));
        if let Ok(found) = Consensus::fit(&labels, predictions.as_deref()) {
            for row in found.posteriors.chunks(3) {
                prop_assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{row:?}");
            }
            for about in &found.annotators {
                for number in [about.accuracy, about.standard_error, about.agreement, about.chance, about.kappa] {
                    prop_assert!(number.is_none_or(f64::is_finite), "{about:?}");
                }
            }
            prop_assert!(found.log_likelihood.is_finite() && found.wrong_rate.1.is_finite());
        }
    }
}
