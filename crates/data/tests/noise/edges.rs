use crate::material::{balanced, cifar10_names, cifar100_names, noise, numbered, refused, vectors};
use negscale_data::Dataset;

const LAWS: [&str; 9] =
    ["sym", "sym-excl", "sym-exact", "asym-map", "asym-block", "asym-super", "pairflip", "ins", "asym"];

fn fitting(law: &str, each: usize) -> Dataset {
    balanced(if law == "asym-super" { cifar100_names() } else { cifar10_names() }, each)
}

#[test]
fn the_same_seed_repeats_and_another_does_not() {
    for law in LAWS {
        let data = fitting(law, 50);
        let spec = format!("{law}:0.4");
        assert_eq!(noise(&spec, &data, 1), noise(&spec, &data, 1));
        let (one, two) = (noise(&spec, &data, 1), noise(&spec, &data, 2));
        assert_ne!(one.labels, two.labels, "{law}");
        assert_ne!(one.hash, two.hash, "{law}");
        assert_eq!(one.hash.len(), 64);
    }
}

#[test]
fn an_empty_data_set_stays_empty() {
    for law in LAWS {
        let noise = noise(&format!("{law}:0.4"), &fitting(law, 0), 1);
        assert_eq!((noise.labels.len(), noise.achieved), (0, 0.0));
        assert!(noise.dominant.iter().all(|&share| share == 0.0));
        assert!(noise.transition.shares().iter().flatten().all(|&share| share == 0.0));
    }
    let nothing = Dataset::new("nothing", vec![], vectors(0, 1), vec![], None).unwrap();
    for spec in ["none", "sym:1", "sym-excl:1", "sym-exact:1", "pairflip:1", "ins:1", "asym-block:1"] {
        assert!(noise(spec, &nothing, 1).labels.is_empty());
    }
}

#[test]
fn one_class_has_nowhere_to_go() {
    let data = balanced(numbered(1), 20);
    assert_eq!(noise("sym:1", &data, 1).achieved, 0.0);
    for law in ["sym-excl", "sym-exact", "pairflip", "ins"] {
        assert!(refused(&format!("{law}:0.5"), &data).contains("needs a second class"));
        assert_eq!(noise(&format!("{law}:0"), &data, 1).labels, data.given());
    }
}

#[test]
fn rate_0_changes_nothing_and_rate_1_changes_all_that_the_law_can() {
    for law in LAWS {
        let data = fitting(law, 50);
        let (none, all) = (noise(&format!("{law}:0"), &data, 1), noise(&format!("{law}:1"), &data, 1));
        // Instance-dependent noise spreads its flip probabilities around the rate, by its definition.
        if law != "ins" {
            assert_eq!(none.labels, data.given(), "{law}");
        }
        match law {
            "sym" => assert!(all.achieved > 0.8 && all.achieved < 1.0),
            "ins" => assert!(all.achieved > 0.85 && all.achieved < 1.0),
            "asym" | "asym-map" => assert_eq!(all.achieved, 0.5),
            _ => assert_eq!(all.achieved, 1.0, "{law}"),
        }
    }
    let data = balanced(numbered(4), 5);
    let none = noise("none", &data, 1);
    assert_eq!((none.labels.as_slice(), none.nominal, none.seed), (data.given(), Some(0.0), 0));
}

#[test]
fn noise_starts_from_the_truth_where_it_is_known() {
    let truth = vec![0, 1, 2, 0, 1, 2];
    let data = Dataset::new("d", numbered(3), vectors(6, 1), vec![2; 6], Some(truth.clone())).unwrap();
    assert_eq!(noise("none", &data, 1).labels, truth);
    let noisy = data.with_noise(noise("pairflip:1", &data, 1).labels).unwrap();
    assert_eq!(noisy.given(), [1, 2, 0, 1, 2, 0]);
    assert_eq!(noisy.truth().unwrap(), truth);
}
