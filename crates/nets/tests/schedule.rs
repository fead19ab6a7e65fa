//! Schedules against PyTorch, and every method's published schedule at its milestones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_nets::schedule::{Milestone, Moment, Schedule, Shape};

fn golden(name: &str) -> Vec<[f64; 2]> {
    let all: serde_json::Value = serde_json::from_str(include_str!("golden/optim.json")).unwrap();
    serde_json::from_value(all[name].clone()).unwrap()
}

fn assert_close(ours: f64, theirs: f64, what: &str) {
    assert!((ours - theirs).abs() <= 1e-12 + 1e-9 * theirs.abs(), "{what}: {ours}, expected {theirs}");
}

fn rate(schedule: &Schedule, lr: f64, epoch: usize, epochs: usize) -> f64 {
    schedule.pace(lr, Moment::epoch(epoch, epochs)).lr
}

fn read(text: &str) -> Schedule {
    serde_json::from_str::<Schedule>(text).unwrap().checked().unwrap()
}

#[test]
fn cosine_follows_pytorch_within_its_period_and_stays_at_its_floor_after() {
    let cosine = read(r#"{"kind": "cosine", "floor": 0.02}"#);
    let clamped = read(r#"{"kind": "cosine", "floor": 0.02, "period": 30}"#);
    for (epoch, [lr, _]) in golden("cosine").into_iter().enumerate() {
        assert_close(rate(&cosine, 0.02, epoch, 30), lr, "whole");
        assert_close(rate(&clamped, 0.02, epoch, 50), lr, "with a period");
    }
    assert_close(rate(&clamped, 0.02, 49, 50), 0.0004, "after the period");
}

#[test]
fn a_cosine_per_step_passes_through_the_values_per_epoch() {
    let [coarse, fine] =
        [false, true].map(|per_step| Schedule::from(Shape::Cosine { period: None, floor: 0.1, per_step }));
    let at = |epoch, step| Moment { epoch, epochs: 10, step, steps: 4 };
    assert_eq!(coarse.pace(1.0, at(3, 0)), coarse.pace(1.0, at(3, 3)));
    assert_eq!(coarse.pace(1.0, at(3, 0)), fine.pace(1.0, at(3, 0)));
    assert!(fine.pace(1.0, at(3, 0)).lr > fine.pace(1.0, at(3, 1)).lr);
    assert!(fine.pace(1.0, at(3, 3)).lr > coarse.pace(1.0, at(4, 0)).lr);
}

#[test]
fn one_cycle_follows_pytorch_in_rate_and_momentum() {
    let moment =
        |step: usize, steps: usize| Moment { epoch: step / steps, epochs: 5, step: step % steps, steps };
    let usual = read(r#"{"kind": "one-cycle", "momentum": [0.85, 0.95]}"#);
    for (step, [lr, momentum]) in golden("one_cycle").into_iter().enumerate() {
        let pace = usual.pace(0.1, moment(step, 12));
        assert_close(pace.lr, lr, &format!("rate at {step}"));
        assert_close(pace.momentum.unwrap(), momentum, &format!("momentum at {step}"));
    }
    let other = read(r#"{"kind": "one-cycle", "rise": 0.2, "start_divisor": 10, "end_divisor": 100}"#);
    for (step, [lr, _]) in golden("one_cycle_other").into_iter().enumerate() {
        let pace = other.pace(0.4, moment(step, 9));
        assert_close(pace.lr, lr, &format!("rate at {step}"));
        assert_eq!(pace.momentum, None);
    }
}

#[test]
fn steps_follow_pytorch() {
    let steps = read(r#"{"kind": "steps", "at": [5, 8], "factor": 0.2}"#);
    for (epoch, [lr, _]) in golden("steps").into_iter().enumerate() {
        assert_close(rate(&steps, 0.1, epoch, 12), lr, "steps");
    }
}

/// Method and data, schedule, learning rate, epochs, and (epoch, rate) where something happens.
type Published = (&'static str, &'static str, f64, usize, &'static [(usize, f64)]);

const PUBLISHED: &[Published] = &[
    (
        "cross-entropy (CIFAR-N)",
        r#"{"kind": "steps", "at": [60]}"#,
        0.1,
        100,
        &[(59, 0.1), (60, 0.01), (99, 0.01)],
    ),
    ("dividemix, rankmatch", r#"{"kind": "steps", "at": [150]}"#, 0.02, 300, &[(149, 0.02), (150, 0.002)]),
    ("dividemix WebVision", r#"{"kind": "steps", "at": [40]}"#, 0.01, 80, &[(39, 0.01), (40, 0.001)]),
    (
        "rolr, ccl",
        r#"{"kind": "last", "epochs": 99}"#,
        0.02,
        500,
        &[(0, 0.02), (400, 0.02), (401, 0.002), (499, 0.002)],
    ),
    ("rolr as shares", r#"{"kind": "last", "epochs": 0.198}"#, 0.02, 500, &[(400, 0.02), (401, 0.002)]),
    (
        "rolr, a tenth of the epochs",
        r#"{"kind": "last", "epochs": 0.198}"#,
        0.02,
        50,
        &[(39, 0.02), (40, 0.002)],
    ),
    (
        "unicon",
        r#"{"kind": "cosine", "period": 280, "floor": 0.01}"#,
        0.02,
        350,
        &[(0, 0.02), (140, 0.0101), (280, 2e-4), (349, 2e-4)],
    ),
    ("unicon WebVision", r#"{"kind": "steps", "at": [60]}"#, 0.01, 120, &[(59, 0.01), (60, 0.001)]),
    (
        "crosssplit",
        r#"{"kind": "cosine", "period": 300, "floor": 0.02}"#,
        0.1,
        301,
        &[(0, 0.1), (150, 0.051), (300, 0.002)],
    ),
    ("anne", r#"{"kind": "cosine", "floor": 0.02}"#, 0.02, 300, &[(0, 0.02), (150, 0.0102), (300, 0.0004)]),
    (
        "anne Animal-10N",
        r#"{"kind": "steps", "at": [50, 100]}"#,
        0.02,
        150,
        &[(49, 0.02), (50, 0.002), (100, 2e-4)],
    ),
    ("disc", r#"{"kind": "steps", "at": [80, 160]}"#, 0.1, 200, &[(79, 0.1), (80, 0.01), (160, 0.001)]),
    (
        "disc as shares",
        r#"{"kind": "steps", "at": [0.4, 0.8]}"#,
        0.1,
        20,
        &[(7, 0.1), (8, 0.01), (16, 0.001)],
    ),
    (
        "disc Animal-10N",
        r#"{"kind": "steps", "at": [50, 80]}"#,
        0.05,
        120,
        &[(49, 0.05), (50, 0.005), (80, 5e-4)],
    ),
    (
        "disc WebVision",
        r#"{"kind": "steps", "at": [60, 80]}"#,
        0.1,
        100,
        &[(59, 0.1), (60, 0.01), (80, 0.001)],
    ),
    (
        "disc, rate above 0.6",
        r#"{"kind": "linear", "start": 120, "momentum": 0.1}"#,
        1e-3,
        200,
        &[(119, 1e-3), (120, 1e-3), (160, 5e-4), (199, 1.25e-5)],
    ),
    (
        "co-teaching, jocor, co-learning CIFAR-10",
        r#"{"kind": "linear", "start": 80, "momentum": 0.1}"#,
        1e-3,
        200,
        &[(79, 1e-3), (80, 1e-3), (140, 5e-4), (199, 1e-3 / 120.0)],
    ),
    (
        "co-teaching, jocor CIFAR-100",
        r#"{"kind": "linear", "start": 100, "momentum": 0.1}"#,
        1e-3,
        200,
        &[(100, 1e-3), (150, 5e-4)],
    ),
    ("selc", r#"{"kind": "steps", "at": [40, 80]}"#, 0.02, 200, &[(39, 0.02), (40, 0.002), (80, 2e-4)]),
    (
        "selc, instance noise",
        r#"{"kind": "steps", "at": [60, 120], "factor": 0.2}"#,
        0.1,
        200,
        &[(60, 0.02), (120, 0.004)],
    ),
    (
        "selc Animal-10N",
        r#"{"kind": "steps", "at": [50, 75], "factor": 0.2}"#,
        0.1,
        100,
        &[(50, 0.02), (75, 0.004)],
    ),
    ("dsos", r#"{"kind": "steps", "at": [50, 80]}"#, 0.01, 100, &[(49, 0.01), (50, 0.001), (80, 1e-4)]),
    ("dmlp, classifier", r#"{"kind": "steps", "at": [4]}"#, 0.006, 100, &[(3, 0.006), (4, 0.0006)]),
    ("dmlp, labels", r#"{"kind": "constant"}"#, 0.01, 100, &[(0, 0.01), (99, 0.01)]),
    ("nct CIFAR, co-teaching", r#"{"kind": "steps", "at": [50]}"#, 0.001, 100, &[(49, 0.001), (50, 1e-4)]),
    (
        "nct Animal-10N, co-teaching",
        r#"{"kind": "steps", "at": [5], "factor": 0.2}"#,
        0.004,
        30,
        &[(4, 0.004), (5, 8e-4)],
    ),
];

#[test]
fn every_published_schedule_can_be_written_down() {
    for (method, text, lr, epochs, values) in PUBLISHED {
        let schedule = read(text);
        for &(epoch, expected) in *values {
            assert_close(rate(&schedule, *lr, epoch, *epochs), expected, &format!("{method}, epoch {epoch}"));
        }
        let again: Schedule = serde_json::from_str(&serde_json::to_string(&schedule).unwrap()).unwrap();
        assert_eq!(again, schedule, "{method}");
    }
}

#[test]
fn beta1_switches_where_the_line_begins() {
    let linear = read(r#"{"kind": "linear", "start": 80, "momentum": 0.1}"#);
    assert_eq!(linear.pace(1e-3, Moment::epoch(79, 200)).momentum, None);
    assert_eq!(linear.pace(1e-3, Moment::epoch(80, 200)).momentum, Some(0.1));
}

#[test]
fn a_warm_up_stands_in_front_of_the_shape() {
    // Nested co-teaching, first stage: 6,000 steps of warm-up, 391 an epoch, so 16 epochs; then 100 of its own.
    let nct = read(r#"{"warm_up": 6000, "kind": "steps", "at": [50, 75], "factor": 0.2}"#);
    let at = |epoch, step| nct.pace(0.1, Moment { epoch, epochs: 116, step, steps: 391 }).lr;
    assert_close(at(0, 0), 0.1 / 6000.0, "first step");
    assert_close(at(7, 262), 0.05, "half way");
    assert_close(at(15, 134), 0.1, "last step of the warm-up");
    assert_close(at(15, 390), 0.1, "rest of its last epoch");
    assert_close(at(16 + 49, 0), 0.1, "before the first milestone");
    assert_close(at(16 + 50, 0), 0.02, "first milestone");
    assert_close(at(16 + 75, 0), 0.004, "second milestone");
    let one = Schedule { warm_up: 1, shape: Shape::Linear { start: Milestone::Epoch(0), momentum: None } };
    assert_eq!([0, 1, 2].map(|epoch| rate(&one, 1.0, epoch, 3)), [1.0, 1.0, 0.5]);
}

#[test]
fn odd_moments_give_finite_rates() {
    for text in [
        r#"{"kind": "cosine", "period": 0}"#,
        r#"{"kind": "linear", "start": 9}"#,
        r#"{"kind": "one-cycle", "rise": 0.0}"#,
        r#"{"kind": "one-cycle", "rise": 1.0, "momentum": [0.1, 0.2]}"#,
        r#"{"kind": "last", "epochs": 50}"#,
        r#"{"kind": "steps", "at": []}"#,
        r#"{"kind": "cosine", "warm_up": 1000}"#,
    ] {
        let schedule = read(text);
        for (epoch, epochs, steps) in [(0, 0, 0), (0, 1, 1), (5, 3, 2), (9, 9, 1), (4, 5, 0)] {
            let pace = schedule.pace(0.1, Moment { epoch, epochs, step: 0, steps });
            assert!(pace.lr.is_finite() && pace.lr >= 0.0, "{text} {epoch} {epochs} {steps}: {pace:?}");
            assert!(pace.momentum.is_none_or(f64::is_finite), "{text}: {pace:?}");
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused_by_name() {
    for (text, name) in [
        (r#"{"kind": "steps", "at": [0.5, 1.5]}"#, "`at` = 1.5"),
        (r#"{"kind": "steps", "at": [5], "factor": 0.0}"#, "`factor` = 0"),
        (r#"{"kind": "last", "epochs": -0.1}"#, "`epochs` = -0.1"),
        (r#"{"kind": "cosine", "floor": 2.0}"#, "`floor` = 2"),
        (r#"{"kind": "linear", "start": 8, "momentum": 1.0}"#, "`momentum` = 1"),
        (r#"{"kind": "one-cycle", "rise": -1.0}"#, "`rise` = -1"),
        (r#"{"kind": "one-cycle", "momentum": [0.9, 0.8]}"#, "`momentum` = [0.9, 0.8]"),
    ] {
        let message = serde_json::from_str::<Schedule>(text).unwrap().checked().unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
    for text in [r#"{"kind": "steps"}"#, r#"{"kind": "cosine", "flor": 0.1}"#, r#"{"kind": "triangle"}"#] {
        assert!(serde_json::from_str::<Schedule>(text).is_err(), "{text}");
    }
}
