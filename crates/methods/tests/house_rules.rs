//! What every registered training method must keep to.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{
    clouds, finish, is_sound, long_run, picture_settings, pictures, quick, settings, survives_stops, task,
    timeless, weights,
};
use negscale::Taxonomy;
use negscale_audit::{Audit, FLAG_BELOW};
use negscale_methods::host::{Beliefs, Facts, HostState, ItemKind, KnownNoise};
use negscale_methods::hosts::METHODS;
use negscale_methods::trainer::{TrainSettings, Trainer, Tree};
use negscale_methods::{hosts, settings as tables};

const NOISE: &str = "sym-exact:0.4";

/// Tells of all that are not as they should be, not just of the first.
fn nobody_fails(failures: Vec<String>) {
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_method_learns_an_easy_set_in_spite_of_wrong_labels() {
    let mut failures = Vec::new();
    for card in METHODS {
        let epochs = 8;
        let mut trainer = Trainer::new(task(600, NOISE), quick(card.id, epochs)).unwrap();
        let records = finish(&mut trainer);
        let last = records.last().unwrap();
        if last.test_accuracy.unwrap() <= 0.85 {
            failures.push(format!("{}: {last:?}", card.id));
        }
        assert_eq!(records.len(), epochs);
        assert!(last.losses["total"].is_finite() && last.validation_accuracy.is_some());
    }
    nobody_fails(failures);
}

#[test]
fn methods_learn_fewer_wrong_labels_by_heart_than_cross_entropy_and_none_is_worse() {
    let plain = long_run("cross-entropy", "view = \"plain\"");
    assert!(plain.by_heart > 0.1, "cross-entropy was not trained for long enough: {plain:?}");
    let mut failures = Vec::new();
    // Co-learning believes every label too, and learns it by Adam, which is quicker at that here.
    let others = METHODS.iter().filter(|card| !["cross-entropy", "co-learning"].contains(&card.id));
    for card in others {
        let long = long_run(card.id, "");
        // Three runs of 400 test samples: two points are luck.
        if long.accuracy <= plain.accuracy - 0.02 || long.by_heart >= plain.by_heart {
            failures.push(format!("{}: {long:?} against {plain:?}", card.id));
        }
    }
    nobody_fails(failures);
}

#[test]
fn every_method_says_which_labels_are_wrong_and_what_they_should_be() {
    let mut failures = Vec::new();
    for card in METHODS {
        let task = task(600, NOISE);
        let (names, truth) = (task.train.classes().to_vec(), task.train.truth().unwrap().to_vec());
        let mut trainer = Trainer::new(task, quick(card.id, 6)).unwrap();
        finish(&mut trainer);
        let (verdicts, _) = trainer.verdicts().unwrap();
        assert_eq!(verdicts.len(), 600, "held-out samples are judged too");
        assert!(verdicts.iter().all(|v| (0.0..=1.0).contains(&v.clean_probability)));
        let audit = Audit::new(&verdicts, &names, FLAG_BELOW).unwrap();
        let measures = audit.measure(&truth).unwrap();
        // Selection: labels held to be clean are right more often than labels are on the whole.
        let kept = verdicts.iter().zip(&truth).filter(|(v, _)| v.clean_probability >= 0.5);
        let (right, all) = kept.fold((0, 0), |(r, a), (v, &t)| (r + usize::from(v.given == t), a + 1));
        let selects = f64::from(right as u32) > 0.6 * f64::from(all as u32);
        let finds = measures.average_precision.unwrap() > 0.85;
        let corrects = measures.suggestion_accuracy.unwrap() > 0.7;
        if !(selects && finds && corrects) {
            failures.push(format!("{}: {right} of {all} kept labels are right; {measures:?}", card.id));
        }
    }
    nobody_fails(failures);
}

#[test]
fn a_run_stopped_after_any_batch_goes_on_bit_for_bit() {
    for card in METHODS {
        let settings = TrainSettings { plugin: "negscale".into(), epochs: 3, ..settings(card.id) };
        let make = || Trainer::new(task(200, NOISE), settings.clone()).unwrap();
        survives_stops(card.id, make);
    }
}

#[test]
fn every_method_learns_from_pictures_with_batch_norm_and_any_plug_in() {
    let off = toml::Table::from_iter(["lambda", "mu"].map(|key| (key.to_owned(), 0.0.into())));
    for card in METHODS {
        let run = |plugin: &str, plugin_settings: &toml::Table| {
            let (plugin, plugin_settings) = (plugin.into(), plugin_settings.clone());
            let settings = TrainSettings { plugin, plugin_settings, ..picture_settings(card.id) };
            let mut trainer = Trainer::new(pictures(), settings).unwrap();
            let last = finish(&mut trainer).pop().unwrap();
            assert!(last.losses["total"].is_finite() && is_sound(&trainer), "{}: {last:?}", card.id);
            (weights(&trainer), last)
        };
        let (alone, _) = run("none", &toml::Table::new());
        assert_eq!(alone, run("negscale", &off).0, "{}", card.id);
        let (with, last) = run("negscale", &toml::Table::new());
        assert!(last.losses.contains_key("snop-global") && with != alone, "{}: {last:?}", card.id);
    }
}

#[test]
fn a_plug_in_without_weight_leaves_the_method_as_it_is_bit_for_bit() {
    for card in METHODS {
        let run = |settings: TrainSettings| {
            let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
            let records = finish(&mut trainer);
            (weights(&trainer), records)
        };
        let (alone, _) = run(settings(card.id));
        let mut off = toml::Table::new();
        off.insert("lambda".into(), 0.0.into());
        off.insert("mu".into(), 0.0.into());
        let (weightless, _) =
            run(TrainSettings { plugin: "negscale".into(), plugin_settings: off, ..settings(card.id) });
        assert_eq!(alone, weightless, "{}", card.id);
        let (with, records) = run(TrainSettings { plugin: "negscale".into(), ..settings(card.id) });
        assert_ne!(alone, with, "{}: the plug-in does nothing", card.id);
        let terms = &records.last().unwrap().losses;
        assert!(terms.contains_key("snop-global") && terms.contains_key("dcsa"), "{}: {terms:?}", card.id);
    }
}

#[test]
fn class_means_of_several_networks_survive_a_stop() {
    let mut centred = toml::Table::new();
    centred.insert("centre".into(), "class-balanced".into());
    centred.insert("lambda".into(), 100.0.into());
    for host in ["co-teaching", "selc-plus"] {
        let settings = TrainSettings {
            plugin: "negscale".into(),
            plugin_settings: centred.clone(),
            epochs: 4,
            ..settings(host)
        };
        let make = || Trainer::new(task(200, NOISE), settings.clone()).unwrap();
        survives_stops(host, make);
    }
}

#[test]
fn what_other_forms_of_the_plug_in_remember_survives_a_stop() {
    let forms: toml::Table =
        "balance = 0.3\nanchor = 2.0\nexclusion = 1.0\nconfidence = \"clean\"\ndelta_features = \"epoch\"\n\
        delta_quantile = 0.8\nsimilarity = \"half\"\nlocal_shape = \"one-sided\""
            .parse()
            .unwrap();
    for host in ["cross-entropy", "rolr", "dividemix", "rankmatch", "anne", "selc-plus"] {
        let (plugin, plugin_settings) = ("negscale".into(), forms.clone());
        let settings = TrainSettings { plugin, plugin_settings, epochs: 4, ..settings(host) };
        let make = || Trainer::new(task(200, NOISE), settings.clone()).unwrap();
        let last = finish(&mut make()).pop().unwrap();
        let noted = |name: &str| last.more.get(name).is_some_and(|share| *share > 0.0);
        assert!(last.losses.contains_key("anchor") && last.losses["exclusion"] > 0.0, "{host}: {last:?}");
        assert!(noted("gradient share of snop-local"), "{host}: {last:?}");
        survives_stops(host, make);
        // What it goes by is looked at after every epoch, however often the report wants it.
        let trained = |scan_every| {
            let settings = TrainSettings { scan_every, ..settings.clone() };
            let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
            finish(&mut trainer);
            weights(&trainer)
        };
        assert!(trained(1) == trained(3), "{host}: looking less often changed weights");
    }
}

#[test]
fn every_method_hands_over_what_it_believes_or_is_refused_at_the_start() {
    let wishes = |during_warm_up: bool| {
        let mut wishes = toml::Table::new();
        wishes.insert("targets".into(), "refurbished".into());
        wishes.insert("during_warm_up".into(), during_warm_up.into());
        wishes
    };
    for card in METHODS {
        for during_warm_up in [false, true] {
            let plugin_settings = wishes(during_warm_up);
            let settings = TrainSettings { plugin: "negscale".into(), plugin_settings, ..settings(card.id) };
            let made = Trainer::new(task(200, NOISE), TrainSettings { epochs: 4, ..settings });
            if card.beliefs == Beliefs::Own {
                finish(&mut made.unwrap());
            } else {
                let message = made.err().unwrap().to_string();
                assert!(message.contains("targets = \"given\"") && message.contains(card.id), "{message}");
            }
        }
    }
    let on_pictures = |text: &str| {
        let (plugin, plugin_settings) = ("negscale".into(), wishes(false));
        let host_settings = text.parse().unwrap();
        let settings = picture_settings("dividemix");
        Trainer::new(pictures(), TrainSettings { plugin, plugin_settings, host_settings, ..settings })
    };
    let message = on_pictures("").err().unwrap().to_string();
    assert!(message.contains("dividemix.tap = \"unmixed\""), "mixed for pictures: {message}");
    finish(&mut on_pictures("tap = \"unmixed\"").unwrap());
}

#[test]
fn a_plug_in_without_pairs_to_act_on_is_refused_and_one_that_acts_says_on_what() {
    let make = |plugin: &str, flat: bool| {
        let mut task = task(200, NOISE);
        if flat {
            task.tree = Tree::Given(Taxonomy::flat(task.train.classes()).unwrap());
        }
        Trainer::new(task, TrainSettings { plugin: plugin.into(), ..settings("cross-entropy") })
    };
    for plugin in ["negscale", "no-snop", "no-dcsa", "random-pairs"] {
        let message = make(plugin, true).err().unwrap().to_string();
        assert!(message.contains(plugin) && message.contains("eta_max below 4"), "{message}");
        let trainer = make(plugin, false).unwrap();
        assert!(trainer.pair_coverage().unwrap().is_active(), "{plugin}");
        assert_eq!(trainer.pair_coverage().unwrap().qualified_name(plugin), plugin);
    }
    assert!(make("none", true).unwrap().pair_coverage().is_none());
}

#[test]
fn a_checkpoint_that_lacks_what_a_method_keeps_is_refused() {
    let facts = Facts {
        kind: ItemKind::Features,
        classes: 4,
        samples: 100,
        epochs: 4,
        batch: 16,
        noise: KnownNoise::Nothing,
        wrong_share: Some(0.0),
    };
    for card in METHODS {
        let mut host = (card.build)(&(card.settings)(), &facts).unwrap();
        let kept = host.state();
        host.restore(kept.clone()).unwrap();
        let restored = host.restore(HostState::default());
        if kept == HostState::default() {
            restored.unwrap();
        } else {
            let message = restored.unwrap_err().to_string();
            assert!(message.contains("missing"), "{}: {message}", card.id);
        }
    }
}

#[test]
fn ablations_differ_from_each_other_and_from_the_whole() {
    let run = |plugin: &str| {
        let settings = TrainSettings { plugin: plugin.into(), epochs: 1, ..settings("cross-entropy") };
        let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
        finish(&mut trainer);
        weights(&trainer)
    };
    let all = ["none", "negscale", "no-snop", "no-dcsa", "random-pairs"].map(run);
    for a in 0..all.len() {
        for b in 0..a {
            assert_ne!(all[a], all[b], "{a} and {b}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for card in METHODS {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let settings =
                    TrainSettings { plugin: "negscale".into(), threads, epochs: 2, ..settings(card.id) };
                let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
                let records = finish(&mut trainer);
                (weights(&trainer), timeless(&records))
            })
        };
        assert_eq!(run(1), run(2), "{}", card.id);
    }
}

#[test]
fn a_class_tree_can_grow_from_the_first_epoch_and_survives_a_stop() {
    let settings = TrainSettings { plugin: "negscale".into(), epochs: 3, ..settings("cross-entropy") };
    let make = || {
        let mut task = task(200, "sym-exact:0.2");
        task.tree = Tree::Learnt(Default::default());
        Trainer::new(task, settings.clone()).unwrap()
    };
    let mut straight = make();
    let records = finish(&mut straight);
    assert!(!records[0].losses.contains_key("dcsa"), "there is no tree yet");
    assert!(records[1].losses.contains_key("snop-global"));
    let mut first = make();
    first.epoch(|_| {}).unwrap();
    let bytes = first.save("run").unwrap();
    let mut second = make();
    second.restore(&bytes, "run", "memory").unwrap();
    finish(&mut second);
    assert_eq!(weights(&second), weights(&straight));
    assert_eq!(second.tree().unwrap().to_tsv(), straight.tree().unwrap().to_tsv());
}

#[test]
fn a_class_without_samples_is_no_trouble_unless_a_tree_must_grow_from_it() {
    let make = |plugin: &str| {
        let mut task = task(200, NOISE);
        let given = task.train.given().iter().map(|&label| if label == 3 { 2 } else { label }).collect();
        task.train = task.train.with_noise(given).unwrap();
        task.tree = Tree::Learnt(Default::default());
        Trainer::new(task, TrainSettings { plugin: plugin.into(), ..settings("cross-entropy") })
    };
    assert!(make("none").is_ok());
    let message = make("negscale").err().unwrap().to_string();
    assert!(message.contains("`bus`") && message.contains("tree"), "{message}");
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let settings = settings("cross-entropy");
    let trainer = Trainer::new(task(200, NOISE), settings.clone()).unwrap();
    let bytes = trainer.save("one").unwrap();
    let mut other = Trainer::new(task(200, NOISE), settings).unwrap();
    let message = other.restore(&bytes, "two", "file").unwrap_err().to_string();
    assert!(message.contains("other data, settings"), "{message}");
}

#[test]
fn every_setting_of_a_card_has_a_meaning_and_every_default_builds() {
    for card in METHODS {
        let defaults = (card.settings)();
        let mut meanings: Vec<&str> = card.meanings.iter().map(|meaning| meaning.0).collect();
        let mut keys: Vec<&str> = defaults.keys().map(String::as_str).collect();
        meanings.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, meanings, "{}", card.id);
        let wrong = Trainer::new(task(200, NOISE), {
            let mut settings = settings(card.id);
            settings.host_settings.insert("no_such_key".into(), 1.into());
            settings
        });
        let message = wrong.err().unwrap().to_string();
        assert!(message.contains("no_such_key") && message.contains(card.id), "{message}");
        tables::check_keys(card.id, &defaults, keys).unwrap();
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest_ones() {
    let message = hosts::card("corss-entropy").unwrap_err().to_string();
    assert!(message.contains("nearest: cross-entropy"), "{message}");
    let with = |change: fn(&mut TrainSettings)| {
        let mut settings = settings("cross-entropy");
        change(&mut settings);
        settings.checked().unwrap_err().to_string()
    };
    assert!(with(|s| s.plugin = "negscal".into()).contains("negscale"));
    assert!(with(|s| s.net = "cnn-smal".into()).contains("cnn-small"));
    assert!(with(|s| s.device = "cudaa".into()).contains("cuda"));
    assert!(with(|s| s.device = "cuda".into()).contains("--features cuda"));
    assert!(with(|s| s.epochs = 0).contains("epochs"));
    assert!(with(|s| s.validation = 0.9).contains("validation"));
}

#[test]
fn a_diverging_run_says_so_and_what_to_do() {
    let mut settings = settings("cross-entropy");
    settings.optimiser = negscale_nets::optim::Sgd { lr: 1e30, ..Default::default() }.into();
    let mut trainer = Trainer::new(task(200, NOISE), settings).unwrap();
    let error = loop {
        match trainer.epoch(|_| {}) {
            Ok(_) => assert!(!trainer.is_finished()),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("lr") || error.contains("divergence"), "{error}");
}

#[test]
fn clouds_are_what_they_seem() {
    let data = clouds(40, 1);
    assert_eq!((data.len(), data.classes().len()), (40, house::CLASSES));
}
