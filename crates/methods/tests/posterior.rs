//! Guesses weighed by the class tree: counts and weights against plain loops, and what becomes of a run.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use burn::tensor::{Device, Tensor, TensorData};
use house::{finish, settings, survives_stops, task, tree, weights};
use negscale::Taxonomy;
use negscale::taxonomy::{Relation, Thresholds};
use negscale_data::draw::{Draw, Purpose};
use negscale_methods::hosts::METHODS;
use negscale_methods::kit::posterior::{RelationRates, weigh_guesses};
use negscale_methods::trainer::{TrainSettings, Trainer};
use negscale_nets::values;

const NOTE: &str = "wrong labels related, times chance";
/// Labels of relatives.
const NOISE: &str = "asym-map:0.4:map=0to1+1to0+2to3+3to2";
const GUESSING: [&str; 5] = ["rolr", "dividemix", "rankmatch", "ccl", "unicon"];

fn relations(tree: &Taxonomy) -> Vec<Relation> {
    tree.distances().as_slice().iter().map(|&d| Thresholds::default().relation(d)).collect()
}

/// Predictions, clean probabilities and labels, of which a share of the wrong ones is replaced by a relative of the true class.
fn samples(tree: &Taxonomy, count: usize, wrong: f64, semantic: f64) -> (Vec<f32>, Vec<f32>, Vec<u32>) {
    let (classes, relations) = (tree.classes(), relations(tree));
    let (mut predictions, mut clean, mut given) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..count {
        let mut draw = Draw::new(5, Purpose::Noise, 1, i as u64);
        let truth = i % classes;
        let row: Vec<f64> =
            (0..classes).map(|c| 0.2 * draw.unit() + f64::from(u8::from(c == truth)) * 4.0).collect();
        let sum: f64 = row.iter().sum();
        predictions.extend(row.iter().map(|p| (p / sum) as f32));
        let is_wrong = draw.unit() < wrong;
        let related = draw.unit() < semantic;
        let others: Vec<usize> = (0..classes)
            .filter(|&c| c != truth && (!related || relations[truth * classes + c] == Relation::Related))
            .collect();
        let label = if is_wrong && !others.is_empty() {
            others[draw.below(others.len() as u64) as usize]
        } else {
            truth
        };
        given.push(label as u32);
        clean.push(if label == truth { 0.95 } else { 0.05 });
    }
    (predictions, clean, given)
}

/// The definition, pair by pair.
fn literal(predictions: &[f32], clean: &[f32], given: &[u32], relations: &[Relation]) -> [f64; 3] {
    let classes = (relations.len() as f64).sqrt() as usize;
    let n = given.len() as f64;
    let share = |y: usize| given.iter().filter(|&&g| g as usize == y).count() as f64 / n;
    [Relation::Related, Relation::Neutral, Relation::Unrelated].map(|wanted| {
        let (mut found, mut expected) = (0.0, 0.0);
        for i in (0..given.len()).filter(|&i| !clean[i].is_nan()) {
            for c in (0..classes).filter(|&c| c != given[i] as usize) {
                let b = (1.0 - f64::from(clean[i])) * f64::from(predictions[i * classes + c]);
                if relations[c * classes + given[i] as usize] == wanted {
                    found += b;
                }
                for y in (0..classes).filter(|&y| y != c && relations[c * classes + y] == wanted) {
                    expected += b * share(y) / (1.0 - share(c));
                }
            }
        }
        (found + 10.0) / (expected + 10.0)
    })
}

fn as_array(rates: RelationRates) -> [f64; 3] {
    [rates.related, rates.neutral, rates.unrelated]
}

#[test]
fn rates_are_those_of_the_definition() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let relations = relations(&tree);
    for (wrong, semantic) in [(0.4, 0.0), (0.4, 0.7), (0.9, 1.0)] {
        let (predictions, mut clean, given) = samples(&tree, 300, wrong, semantic);
        clean[7] = f32::NAN;
        let found = as_array(RelationRates::of(&predictions, &clean, &given, &relations));
        let wanted = literal(&predictions, &clean, &given, &relations);
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?} {wanted:?}");
    }
}

#[test]
fn rates_tell_semantic_noise_from_noise_that_ignores_the_tree() {
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let rates = |count, semantic| {
        let (predictions, clean, given) = samples(&tree, count, 0.4, semantic);
        RelationRates::of(&predictions, &clean, &given, &relations(&tree))
    };
    let blind = as_array(rates(5000, 0.0));
    assert!(blind.iter().all(|rate| (rate - 1.0).abs() < 0.1), "{blind:?}");
    let semantic = rates(5000, 0.7);
    assert!(semantic.related > 1.8 && semantic.unrelated < 0.7, "{semantic:?}");
    let few = rates(10, 0.7);
    assert!((few.related - 1.0).abs() < 0.2, "few samples say little: {few:?}");
    // One relation only: whatever the labels, it is as frequent as by chance.
    let flat = Taxonomy::flat(&tree.class_names().collect::<Vec<_>>()).unwrap();
    let (predictions, clean, given) = samples(&tree, 500, 0.4, 0.7);
    let found = as_array(RelationRates::of(&predictions, &clean, &given, &relations(&flat)));
    assert!(found.iter().all(|rate| (rate - 1.0).abs() < 1e-6), "{found:?}");
}

#[test]
fn guesses_are_weighed_row_by_row_and_sum_to_one() {
    let tree = tree();
    let rates = RelationRates { related: 3.0, neutral: 0.5, unrelated: 0.25 };
    let table = rates.guess_weights(&relations(&tree));
    let q = [[0.1, 0.2, 0.3, 0.4f32], [0.7, 0.1, 0.1, 0.1]];
    let given = [1u32, 2];
    let tensor = || Tensor::<2>::from_data(TensorData::from(q), &Device::flex());
    let found = values(weigh_guesses(tensor(), &given, Some(&table))).unwrap();
    for (i, &label) in given.iter().enumerate() {
        let weight = |c: usize| match relations(&tree)[label as usize * 4 + c] {
            Relation::Same => 1.0,
            Relation::Related => 3.0,
            Relation::Neutral => 0.5,
            Relation::Unrelated => 0.25,
        };
        let weighed: Vec<f64> = (0..4).map(|c| f64::from(q[i][c]) * weight(c)).collect();
        let sum: f64 = weighed.iter().sum();
        for c in 0..4 {
            assert!((f64::from(found[i * 4 + c]) - weighed[c] / sum).abs() < 1e-6, "{i} {c}");
        }
    }
    assert_eq!(values(weigh_guesses(tensor(), &given, None)).unwrap(), q.as_flattened());
}

fn weighing(host: &str, epochs: usize) -> TrainSettings {
    let plugin_settings = "snop = false\ndcsa = false\nposterior = true".parse().unwrap();
    TrainSettings { plugin: "negscale".into(), plugin_settings, epochs, ..settings(host) }
}

#[test]
fn every_host_that_guesses_weighs_its_guesses_and_the_others_are_refused() {
    for card in METHODS {
        let made = Trainer::new(task(200, NOISE), weighing(card.id, 4));
        if !GUESSING.contains(&card.id) {
            let message = made.err().unwrap().to_string();
            assert!(message.contains("posterior") && message.contains(card.id), "{message}");
            continue;
        }
        let mut weighed = made.unwrap();
        let records = finish(&mut weighed);
        assert!(!records[0].more.contains_key(NOTE), "{}: nothing is guessed in warm-up", card.id);
        assert!(records[3].more[NOTE] > 0.0, "{}: {records:?}", card.id);
        let mut alone =
            Trainer::new(task(200, NOISE), TrainSettings { plugin: "none".into(), ..weighing(card.id, 4) });
        let records = finish(alone.as_mut().unwrap());
        assert!(!records[3].more.contains_key(NOTE));
        assert_ne!(weights(&weighed), weights(&alone.unwrap()), "{}", card.id);
        let coverage = weighed.pair_coverage().unwrap();
        assert_eq!(coverage.qualified_name("negscale"), "negscale (posterior alone)");
        assert_eq!(coverage.qualified_name("tree-posterior"), "tree-posterior");
    }
}

#[test]
fn it_has_a_name_of_its_own() {
    let run = |settings| {
        let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
        finish(&mut trainer);
        weights(&trainer)
    };
    let named = TrainSettings {
        plugin: "tree-posterior".into(),
        plugin_settings: toml::Table::new(),
        ..weighing("rolr", 4)
    };
    assert_eq!(run(named), run(weighing("rolr", 4)));
}

#[test]
fn weights_of_guesses_survive_a_stop_and_do_not_depend_on_scans() {
    for host in GUESSING {
        let settings = weighing(host, 4);
        survives_stops(host, || Trainer::new(task(200, NOISE), settings.clone()).unwrap());
    }
    let run = |scan_every| {
        let mut trainer =
            Trainer::new(task(200, NOISE), TrainSettings { scan_every, ..weighing("rolr", 5) }).unwrap();
        finish(&mut trainer);
        weights(&trainer)
    };
    assert_eq!(run(1), run(4));
}
