//! Runs with fixed class vectors: they learn, survive stops, and say what they lack.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{finish, quick, settings, survives_stops, task};
use negscale::taxonomy::LearntSettings;
use negscale_methods::trainer::{TrainSettings, Trainer, Tree};
use negscale_nets::LastLayer;

const NOISE: &str = "sym-exact:0.4";

fn with_tree(settings: TrainSettings) -> TrainSettings {
    TrainSettings { classifier: LastLayer::Tree, ..settings }
}

#[test]
fn networks_with_fixed_class_vectors_learn_and_the_vectors_stay() {
    for host in ["cross-entropy", "rolr", "dividemix"] {
        let mut trainer = Trainer::new(task(600, NOISE), with_tree(quick(host, 8))).unwrap();
        let vectors = |trainer: &Trainer, net| {
            let all = trainer.networks().net(net).read().unwrap();
            let of = |path: &str| all.iter().find(|(entry, _)| entry.path == path).unwrap().1.clone();
            (of("fc.weight"), of("log_scale"))
        };
        let (before, scale) = vectors(&trainer, 0);
        let last = finish(&mut trainer).pop().unwrap();
        assert!(last.test_accuracy.unwrap() > 0.85, "{host}: {last:?}");
        let (after, trained) = vectors(&trainer, 0);
        assert_eq!(before, after, "{host}");
        assert_ne!(scale, trained, "{host}");
        if trainer.networks().len() > 1 {
            assert_ne!(vectors(&trainer, 1).0, after, "{host}: every network has a rotation of its own");
        }
    }
}

#[test]
fn a_stop_changes_nothing() {
    for host in ["cross-entropy", "rolr", "selc-plus"] {
        let settings = with_tree(TrainSettings { plugin: "negscale".into(), ..settings(host) });
        survives_stops(host, || Trainer::new(task(200, NOISE), settings.clone()).unwrap());
    }
}

#[test]
fn a_learnt_tree_and_too_few_features_are_refused_at_the_start() {
    let mut learnt = task(200, NOISE);
    learnt.tree = Tree::Learnt(LearntSettings::default());
    let message = Trainer::new(learnt, with_tree(settings("rolr"))).err().unwrap().to_string();
    assert!(
        message.contains("needs a class tree before training") && message.contains("linear"),
        "{message}"
    );
    let narrow = TrainSettings { hidden: vec![2], ..with_tree(settings("rolr")) };
    let message = Trainer::new(task(200, NOISE), narrow).err().unwrap().to_string();
    assert!(message.contains("need 3 dimensions, with 2 features"), "{message}");
}
