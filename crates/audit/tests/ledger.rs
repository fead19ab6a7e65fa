//! The ledger: updates, what it refuses, and its verdicts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_audit::gmm::{GmmSettings, clean_probabilities};
use negscale_audit::ledger::SampleIndices::{All, These};
use negscale_audit::ledger::{Ledger, RECENT_EPOCHS};
use negscale_audit::{LossSummary, NoiseEstimate, NoiseModel, Predictions, Source, VerdictSettings};

fn losses(ledger: &Ledger, sample: usize) -> Vec<Option<f32>> {
    ledger.losses(sample).collect()
}

#[test]
fn a_new_ledger_believes_what_was_given() {
    let ledger = Ledger::new(&[2, 0], 3, RECENT_EPOCHS).unwrap();
    assert_eq!(ledger.targets(), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(ledger.clean(0), None);
    for verdict in ledger.verdicts(&VerdictSettings::default()).unwrap() {
        assert_eq!(verdict.suggested, verdict.given);
        assert_eq!((verdict.clean_probability, verdict.source), (0.5, Source::Nothing));
    }
}

#[test]
fn an_empty_ledger_has_no_verdicts() {
    let ledger = Ledger::new(&[], 3, 2).unwrap();
    assert!(ledger.is_empty());
    assert_eq!(ledger.verdicts(&VerdictSettings::default()).unwrap(), []);
}

#[test]
fn only_the_losses_of_recent_epochs_are_kept() {
    let mut ledger = Ledger::new(&[0, 1, 0], 2, 2).unwrap();
    for epoch in [3, 4, 7] {
        ledger.begin_epoch(epoch).unwrap();
        let loss = epoch as f32;
        ledger.record_losses(These(&[2, 0]), &[loss + 0.25, loss]).unwrap();
    }
    assert_eq!(ledger.epochs().collect::<Vec<_>>(), [4, 7]);
    assert_eq!(losses(&ledger, 0), [Some(4.0), Some(7.0)]);
    assert_eq!(losses(&ledger, 1), [None, None]);
    assert_eq!(losses(&ledger, 2), [Some(4.25), Some(7.25)]);
    ledger.record_losses(All, &[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(losses(&ledger, 1), [None, Some(2.0)]);
    ledger.begin_epoch(7).unwrap(); // once more, as after resuming
    assert_eq!(losses(&ledger, 2), [Some(4.25), None]);
    assert!(ledger.begin_epoch(6).unwrap_err().to_string().contains("epoch 6 after epoch 7"));
}

#[test]
fn batches_write_the_samples_they_name() {
    let mut ledger = Ledger::new(&[0, 1, 0], 2, 2).unwrap();
    ledger.set_targets(These(&[2, 1, 2]), &[0.5, 0.5, 0.25, 0.75, 0.125, 0.875]).unwrap();
    assert_eq!(ledger.targets(), [1.0, 0.0, 0.25, 0.75, 0.125, 0.875]);
    assert_eq!(ledger.target(2).unwrap(), [0.125, 0.875]);
    assert_eq!(ledger.target(3), None);
    ledger.set_clean(These(&[1]), &[0.0]).unwrap();
    assert_eq!([0, 1, 2, 9].map(|i| ledger.clean(i)), [None, Some(0.0), None, None]);
    ledger.forget_clean();
    assert_eq!(ledger.clean(1), None);
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let mut ledger = Ledger::new(&[0, 1, 0], 2, 2).unwrap();
    assert!(ledger.record_losses(All, &[1.0; 3]).unwrap_err().to_string().contains("no epoch is open"));
    ledger.begin_epoch(0).unwrap();
    let before = ledger.clone();
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (error, told) in [
        (ledger.record_losses(All, &[1.0; 2]), "2 numbers for 3 samples"),
        (ledger.record_losses(These(&[0, 3]), &[1.0; 2]), "no sample 3"),
        (ledger.record_losses(These(&[0, 2]), &[1.0, nan]), "sample 2 has NaN"),
        (ledger.record_losses(All, &[1.0, inf, 0.0]), "sample 1 has inf"),
        (ledger.set_clean(All, &[0.5, 0.5, 1.5]), "sample 2 has 1.5"),
        (ledger.set_clean(These(&[1, 0]), &[0.5, nan]), "sample 0 has NaN"),
        (ledger.set_targets(These(&[1]), &[0.5]), "1 numbers for 1 samples of 2"),
        (
            ledger.set_targets(These(&[0, 1]), &[1.0, 0.0, 0.5, 0.4]),
            "sample 1 has probabilities that sum to 0.9",
        ),
        (ledger.set_targets(These(&[1]), &[1.5, -0.5]), "1.5 for class 0"),
        (ledger.set_targets(These(&[1]), &[nan, 0.5]), "NaN for class 0"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        assert!(ledger == before);
    }
    assert!(Ledger::new(&[0, 2], 2, 1).unwrap_err().to_string().contains("label 2 of sample 1"));
    assert!(Ledger::new(&[0], 1, 0).unwrap_err().to_string().contains("recent"));
}

#[test]
fn the_default_verdict_is_that_of_the_loss_mixture() {
    let given: Vec<u32> = (0..20).map(|i| i % 2).collect();
    let mut ledger = Ledger::new(&given, 2, 3).unwrap();
    let squares: Vec<f32> = (0..20u8).map(|i| f32::from(i).powi(2)).collect();
    ledger.begin_epoch(0).unwrap();
    ledger.record_losses(All, &[7.0; 20]).unwrap();
    ledger.begin_epoch(1).unwrap();
    ledger.record_losses(All, &squares).unwrap();
    let verdicts = ledger.verdicts(&VerdictSettings::default()).unwrap();
    // Golden numbers of the mixture of 20 squares.
    for (at, wanted) in [(0, 0.998306), (10, 0.921877), (11, 0.787501), (12, 0.476825), (13, 0.144730)] {
        assert!((verdicts[at].clean_probability - wanted).abs() < 1e-6);
        assert_eq!(verdicts[at].source, Source::Mixture);
    }
    // The mean over both epochs is a shift and a stretch of the last losses: the same verdicts.
    let settings = VerdictSettings { losses: LossSummary::Mean, ..Default::default() };
    for (mean, last) in ledger.verdicts(&settings).unwrap().iter().zip(&verdicts) {
        assert!((mean.clean_probability - last.clean_probability).abs() < 1e-9);
    }
    assert_eq!(ledger.loss(3, LossSummary::Mean), Some(8.0));
}

#[test]
fn samples_that_were_missed_keep_their_last_loss_or_stay_unknown() {
    let mut ledger = Ledger::new(&[0; 4], 2, 3).unwrap();
    ledger.begin_epoch(0).unwrap();
    ledger.record_losses(These(&[0, 1]), &[1.0, 4.0]).unwrap();
    ledger.begin_epoch(1).unwrap();
    ledger.record_losses(These(&[1, 2]), &[6.0, 0.5]).unwrap();
    let verdicts = ledger.verdicts(&VerdictSettings::default()).unwrap();
    let wanted = clean_probabilities(&[1.0, 6.0, 0.5], &GmmSettings::default()).unwrap();
    assert_eq!(verdicts[..3].iter().map(|v| v.clean_probability).collect::<Vec<_>>(), wanted);
    assert_eq!((verdicts[3].clean_probability, verdicts[3].source), (0.5, Source::Nothing));
    assert_eq!(ledger.loss(1, LossSummary::Mean), Some(5.0));
}

#[test]
fn the_hosts_own_word_comes_first() {
    let mut ledger = Ledger::new(&[0; 3], 2, 3).unwrap();
    ledger.begin_epoch(0).unwrap();
    ledger.record_losses(All, &[0.0, 0.1, 5.0]).unwrap();
    ledger.set_clean(These(&[2]), &[0.75]).unwrap();
    let verdicts = ledger.verdicts(&VerdictSettings::default()).unwrap();
    assert_eq!((verdicts[2].clean_probability, verdicts[2].source), (0.75, Source::Host));
    assert_eq!(verdicts[0].source, Source::Mixture);
    let wanted = clean_probabilities(&[0.0, f64::from(0.1f32), 5.0], &GmmSettings::default()).unwrap();
    assert_eq!(verdicts[0].clean_probability, wanted[0]);
}

#[test]
fn the_suggestion_is_the_likeliest_class_and_the_given_one_among_equals() {
    let mut ledger = Ledger::new(&[2, 2, 0], 3, 1).unwrap();
    ledger.set_targets(All, &[0.5, 0.0, 0.5, 0.375, 0.375, 0.25, 0.25, 0.25, 0.5]).unwrap();
    let verdicts = ledger.verdicts(&VerdictSettings::default()).unwrap();
    assert_eq!(verdicts.iter().map(|v| v.suggested).collect::<Vec<_>>(), [2, 0, 2]);
    assert_eq!((verdicts[1].suggested_probability, verdicts[1].given_probability), (0.375, 0.25));
}

#[test]
fn predictions_are_averaged_once_the_warm_up_is_over() {
    let mut ledger = Ledger::new(&[0, 1], 2, 2).unwrap();
    assert_eq!(ledger.predictions(), None);
    ledger.record_predictions(&[0.0, 1.0, 1.0, 0.0], true).unwrap();
    assert_eq!(ledger.predictions().unwrap(), [0.0, 1.0, 1.0, 0.0]);
    ledger.record_predictions(&[0.5, 0.5, 0.25, 0.75], false).unwrap();
    assert_eq!(ledger.predictions().unwrap(), [0.5, 0.5, 0.25, 0.75], "the warm-up does not count");
    ledger.record_predictions(&[1.0, 0.0, 0.75, 0.25], false).unwrap();
    assert_eq!(ledger.predictions().unwrap(), [0.75, 0.25, 0.5, 0.5]);
    let before = ledger.clone();
    for wrong in [&[0.5, 0.5][..], &[0.5, 0.6, 0.5, 0.5], &[-0.5, 1.5, 0.5, 0.5], &[f32::NAN, 1.0, 0.5, 0.5]]
    {
        assert!(ledger.record_predictions(wrong, false).unwrap_err().to_string().contains("predictions"));
    }
    assert!(ledger == before);
    let whole = Ledger::merge(&[(&ledger, &[1, 0])]).unwrap();
    assert_eq!(whole.predictions().unwrap(), [0.5, 0.5, 0.75, 0.25]);
}

#[test]
fn by_a_model_the_clean_probability_is_the_hosts_and_the_rest_the_models() {
    let given = [0, 1, 1, 0, 2, 2];
    let rows =
        [0.9, 0.05, 0.05, 0.8, 0.1, 0.1, 0.1, 0.8, 0.1, 0.7, 0.2, 0.1, 0.1, 0.1, 0.8, 0.2, 0.2, 0.6f32];
    let mut ledger = Ledger::new(&given, 3, 2).unwrap();
    ledger.record_predictions(&rows, false).unwrap();
    ledger.set_clean(These(&[1, 4]), &[0.125, 1.0]).unwrap();
    let model = NoiseModel::fit(&Predictions::new(ledger.predictions().unwrap(), &given, 3).unwrap());
    let settings = VerdictSettings::default();
    let (by_model, estimate) = ledger.judge_by(&model, &settings).unwrap();
    assert_eq!(estimate, NoiseEstimate::new(&model), "one pass, the same estimate");
    let alone = ledger.verdicts(&settings).unwrap();
    for (i, found) in model.alternatives().iter().enumerate() {
        let verdict = by_model[i];
        assert_eq!(
            (verdict.clean_probability, verdict.source),
            (alone[i].clean_probability, alone[i].source)
        );
        assert_eq!((verdict.given, verdict.suggested, verdict.score), (given[i], found.class, found.score));
        assert_eq!(verdict.suggested_probability, found.probability as f32);
        assert_eq!(verdict.given_probability, found.given as f32);
    }
    assert_eq!((by_model[1].clean_probability, by_model[1].source), (0.125, Source::Host));
    assert_eq!(by_model[1].suggested, 0);
}
