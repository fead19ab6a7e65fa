//! How many labels are wrong: known mixtures, and cases at the edge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_audit::{
    HiddenLabelModel, MIN_EXPONENT_COUNTING, MIN_EXPONENT_RANKING, NoiseEstimate, average_precision,
};

/// Uniform numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn pick(&mut self, shares: &[f64]) -> usize {
        let mut left = self.next() * shares.iter().sum::<f64>();
        for (at, share) in shares.iter().enumerate() {
            left -= share;
            if left < 0.0 {
                return at;
            }
        }
        shares.len() - 1
    }
}

struct World {
    predictions: Vec<f32>,
    given: Vec<u32>,
    truth: Vec<u32>,
    classes: usize,
}

/// Calibrated predictions: the true class is drawn from them, the given one from the true one. `ease` is how sure they are.
fn world(count: usize, classes: usize, ease: f64, flip: impl Fn(usize) -> Vec<f64>, seed: u64) -> World {
    let mut chance = Chance(seed);
    let mut world = World { predictions: Vec::new(), given: Vec::new(), truth: Vec::new(), classes };
    for _ in 0..count {
        let (favourite, sure) = ((chance.next() * classes as f64) as usize, chance.next().powf(1.0 / ease));
        let rest: Vec<f64> = (0..classes).map(|_| chance.next().powi(4) + 1e-6).collect();
        let sum: f64 = rest.iter().sum();
        let row: Vec<f64> = (0..classes)
            .map(|c| (1.0 - sure) * rest[c] / sum + if c == favourite { sure } else { 0.0 })
            .collect();
        let truth = chance.pick(&row);
        world.given.push(chance.pick(&flip(truth)) as u32);
        world.truth.push(truth as u32);
        world.predictions.extend(row.iter().map(|&p| p as f32));
    }
    world
}

fn symmetric(classes: usize, rate: f64) -> impl Fn(usize) -> Vec<f64> {
    move |truth| {
        let other = rate / (classes - 1) as f64;
        (0..classes).map(|c| if c == truth { 1.0 - rate } else { other }).collect()
    }
}

impl World {
    fn estimate(&self) -> (HiddenLabelModel, NoiseEstimate) {
        let model =
            HiddenLabelModel::fit(&self.predictions, &self.given, self.classes, MIN_EXPONENT_COUNTING)
                .unwrap();
        let estimate = NoiseEstimate::new(&self.predictions, &self.given, self.classes, &model).unwrap();
        (model, estimate)
    }

    fn rate(&self) -> f64 {
        let wrong = self.given.iter().zip(&self.truth).filter(|(given, truth)| given != truth).count();
        wrong as f64 / self.given.len() as f64
    }
}

#[track_caller]
fn check_shape(estimate: &NoiseEstimate, classes: usize) {
    let [low, high] = estimate.interval;
    assert!(0.0 <= low && low <= estimate.rate && estimate.rate <= high && high <= 1.0, "{estimate:?}");
    let [low, high] = estimate.sampling_interval;
    assert!(low <= estimate.rate && estimate.rate <= high);
    for matrix in [&estimate.given_by_true, &estimate.true_by_given] {
        assert_eq!(matrix.len(), classes);
        for row in matrix {
            assert!(
                (row.iter().sum::<f64>() - 1.0).abs() < 1e-9 && row.iter().all(|x| (0.0..=1.0).contains(x))
            );
        }
    }
}

#[test]
fn known_rates_are_found_and_lie_inside_the_interval() {
    // Where one sample in twenty is hard to tell; the confident reading takes some of these for wrong labels.
    for (seed, (classes, rate)) in
        [(4, 0.0), (10, 0.05), (10, 0.2), (4, 0.4), (10, 0.6)].into_iter().enumerate()
    {
        let world = world(8000, classes, 20.0, symmetric(classes, rate), seed as u64);
        let (_, estimate) = world.estimate();
        check_shape(&estimate, classes);
        let (found, wanted) = (estimate.rate, world.rate());
        assert!((found - wanted).abs() < 0.04, "{classes} classes: {found} instead of {wanted}");
        let [low, high] = estimate.interval;
        // Pseudo-counts keep the careful reading of clean labels a little above 0.
        assert!(low <= wanted + 0.003 && wanted <= high, "{wanted} is outside {low} to {high}");
    }
}

#[test]
fn overlap_of_classes_is_taken_for_noise_by_the_confident_reading_but_not_by_the_interval() {
    let world = world(8000, 4, 4.0, symmetric(4, 0.0), 2);
    let (_, estimate) = world.estimate();
    assert!(estimate.rate > 0.02 && estimate.interval[0] < 0.003, "{estimate:?}");
}

#[test]
fn calibrated_predictions_give_the_careful_reading_exactly() {
    for rate in [0.0, 0.1, 0.3, 0.5] {
        let world = world(12_000, 5, 4.0, symmetric(5, rate), 77);
        let (model, estimate) = world.estimate();
        let careful = estimate.readings[0];
        assert!((careful - world.rate()).abs() < 0.02, "{careful} instead of {}", world.rate());
        assert_eq!(model.exponent(), 1.0, "they need no calibration");
    }
}

#[test]
fn confusions_are_found_with_their_direction() {
    // Of class 2, three in ten are called 0; nothing else is wrong.
    let flip = |truth: usize| match truth {
        2 => vec![0.3, 0.0, 0.7, 0.0],
        other => (0..4).map(|c| f64::from(u8::from(c == other))).collect(),
    };
    let world = world(8000, 4, 8.0, flip, 5);
    let (model, estimate) = world.estimate();
    let (truth, given, count) = estimate.confusions()[0];
    assert_eq!((truth, given), (2, 0));
    assert!((count / 8000.0 - 0.075).abs() < 0.02, "{count}");
    assert!((model.transition()[2 * 4] - 0.3).abs() < 0.05, "{:?}", model.transition());
    assert!(estimate.wrong_by_true[2] > 3.0 * estimate.wrong_by_true[1]);
    assert!(estimate.wrong_by_given[0] > 3.0 * estimate.wrong_by_given[1]);
}

#[test]
fn the_score_orders_better_than_the_predicted_probability_of_the_label() {
    let flip = |truth: usize| match truth {
        2 => vec![0.4, 0.0, 0.6, 0.0],
        3 => vec![0.0, 0.2, 0.0, 0.8],
        other => (0..4).map(|c| f64::from(u8::from(c == other))).collect(),
    };
    let world = world(8000, 4, 3.0, flip, 9);
    let wrong: Vec<bool> =
        world.given.iter().zip(&world.truth).map(|(given, truth)| given != truth).collect();
    let own = world.given.iter().enumerate().map(|(i, &g)| -f64::from(world.predictions[i * 4 + g as usize]));
    let plain = average_precision(&own.collect::<Vec<_>>(), &wrong).unwrap();
    let ranking = HiddenLabelModel::fit(&world.predictions, &world.given, 4, MIN_EXPONENT_RANKING).unwrap();
    let scores = world.estimate().0.scores();
    for scores in [ranking.scores(), scores.clone()] {
        let better = average_precision(&scores, &wrong).unwrap();
        assert!(better > plain + 0.05, "{better} against {plain}");
    }
    assert!(ranking.exponent() >= MIN_EXPONENT_RANKING);
    // Beyond the peak of the likelihood the nearest exponent is the best: no search is needed.
    let counting = world.estimate().0;
    assert!(counting.exponent() < MIN_EXPONENT_RANKING);
    let nearest = counting.with_exponent_from(&world.predictions, MIN_EXPONENT_RANKING).unwrap();
    assert_eq!((nearest.exponent(), nearest.scores()), (ranking.exponent(), ranking.scores()));
    let same = ranking.with_exponent_from(&world.predictions, MIN_EXPONENT_RANKING).unwrap();
    assert_eq!(same.scores(), ranking.scores());
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    assert!((mean - world.rate()).abs() < 0.02, "scores are probabilities: {mean} against {}", world.rate());
}

#[test]
fn scores_do_not_depend_on_the_number_of_threads() {
    let world = world(9000, 20, 4.0, symmetric(20, 0.3), 3);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (world.estimate().0.scores(), world.estimate().1))
    };
    assert!(run(1) == run(3));
}

#[test]
fn labels_that_are_all_right_or_all_wrong_are_known_as_such() {
    let sure = |class: u32| (0..3).map(move |c| if c == class { 0.98 } else { 0.01f32 });
    let truth: Vec<u32> = (0..600).map(|i| i % 3).collect();
    let predictions: Vec<f32> = truth.iter().flat_map(|&class| sure(class)).collect();
    let of =
        |given: Vec<u32>| World { predictions: predictions.clone(), given, truth: truth.clone(), classes: 3 };
    let (model, right) = of(truth.clone()).estimate();
    check_shape(&right, 3);
    assert!(right.rate == 0.0 && right.interval[1] < 0.02, "{right:?}");
    assert!(model.scores().iter().all(|&score| score < 0.02));
    // Each label is one of the two wrong ones, so none of the three is confidently its own.
    let wrong = truth.iter().zip(0..).map(|(class, i)| (class + 1 + (i / 3) % 2) % 3).collect();
    let (model, wrong) = of(wrong).estimate();
    check_shape(&wrong, 3);
    assert!(wrong.interval[1] > 0.95 && wrong.readings[2] == 1.0, "{wrong:?}");
    assert!(model.scores().iter().all(|&score| score > 0.5));
}

#[test]
fn a_class_without_labels_and_a_class_alone_are_no_trouble() {
    let with_empty =
        World { predictions: [0.7, 0.2, 0.1].repeat(50), given: vec![0; 50], truth: vec![0; 50], classes: 3 };
    let (model, estimate) = with_empty.estimate();
    check_shape(&estimate, 3);
    assert_eq!((estimate.rate, &estimate.given_counts), (0.0, &vec![50, 0, 0]));
    assert!(model.scores().iter().all(|score| score.is_finite()));
    let alone = World { predictions: vec![1.0; 5], given: vec![0; 5], truth: vec![0; 5], classes: 1 };
    let (model, estimate) = alone.estimate();
    check_shape(&estimate, 1);
    assert_eq!((estimate.rate, estimate.interval, model.scores()), (0.0, [0.0, 0.0], vec![0.0; 5]));
    let nobody = World { predictions: vec![], given: vec![], truth: vec![], classes: 2 };
    let (model, estimate) = nobody.estimate();
    check_shape(&estimate, 2);
    assert!(model.scores().is_empty() && estimate.rate == 0.0);
}

#[test]
fn what_is_no_prediction_is_refused() {
    for (predictions, given, told) in [
        (vec![0.5, 0.5], vec![0, 1], "2 numbers for 2 samples"),
        (vec![0.5, 0.5], vec![2], "is not a class"),
        (vec![f32::NAN, 0.5], vec![1], "outside [0, 1]"),
    ] {
        let error =
            HiddenLabelModel::fit(&predictions, &given, 2, MIN_EXPONENT_RANKING).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
