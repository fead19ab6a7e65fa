use crate::material::{balanced, cifar10_names, cifar100_names, noise, numbered, real, refused};
use negscale_data::noise::{Noise, NoiseContext, apply, cifar};

/// The single class that each class turns into; fails if there are several.
fn targets(noise: &Noise) -> Vec<Option<u32>> {
    let mut targets = vec![None; noise.transition.classes()];
    for (from, to, _) in noise.transition.cells().filter(|(from, to, _)| from != to) {
        assert_eq!(targets[from as usize].replace(to), None, "class {from} turns into two");
    }
    targets
}

fn assert_rate(noise: &Noise, r: f64) {
    let sd = (r * (1.0 - r) / noise.labels.len() as f64).sqrt();
    assert!((noise.achieved - r).abs() < 4.0 * sd, "{}: {}", noise.spec, noise.achieved);
}

#[test]
fn the_cifar_10_map_at_40_percent_makes_20_percent_of_all_labels_wrong() {
    let data = balanced(cifar10_names(), 5000);
    let noise = noise("asym:0.4", &data, 1);
    assert_eq!(noise.spec.to_string(), "asym-map:0.4");
    assert_rate(&noise, 0.2);
    let expected = [None, None, Some(0), Some(5), Some(7), Some(3), None, None, None, Some(1)];
    assert_eq!(targets(&noise), expected);
    for (class, row) in noise.transition.shares().iter().enumerate().filter(|(c, _)| expected[*c].is_some()) {
        assert!((1.0 - row[class] - 0.4).abs() < 4.0 * (0.24f64 / 5000.0).sqrt());
        assert_eq!(noise.dominant[class], 1.0);
    }
    assert_eq!(noise.dominant[0], 0.0);
    assert!(noise.convention.contains("truck -> automobile"), "{}", noise.convention);
}

#[test]
fn the_map_follows_names_and_not_numbers() {
    let mut names = cifar10_names();
    names.reverse();
    names[9] = "Airplane".into();
    let noise = noise("asym-map:0.4", &balanced(names, 100), 1);
    let expected = [Some(8), None, None, None, Some(6), Some(2), Some(4), Some(9), None, None];
    assert_eq!(targets(&noise), expected);
}

#[test]
fn a_map_of_the_user_is_applied_to_exactly_a_share_of_all_samples() {
    let data = balanced(numbered(3), 1000);
    let noise = noise("asym-map:0.3:map=0to2+1to2+2to0", &data, 5);
    assert_eq!(targets(&noise), [Some(2), Some(2), Some(0)]);
    assert_eq!(noise.achieved, 0.3);
    assert!(
        refused("asym-map:0.3:map=0to3", &data).contains("0to3 in the map names a class that does not exist")
    );
    assert!(refused("asym-map:0.3", &data).contains("map=9to1"));
    assert!(refused("asym:0.3", &data).contains("pairflip"));
}

#[test]
fn block_noise_stays_in_blocks_of_five() {
    let data = balanced(cifar100_names(), 500);
    let noise = noise("asym:0.4", &data, 1);
    assert_eq!(noise.spec.to_string(), "asym-block:0.4");
    assert_rate(&noise, 0.4);
    let expected: Vec<_> = (0..100).map(|c| Some(if c % 5 == 4 { c - 4 } else { c + 1 })).collect();
    assert_eq!(targets(&noise), expected);
    assert!(refused("asym-block:0.4", &balanced(numbered(12), 10)).contains("blocks of five"));
}

#[test]
fn six_of_a_hundred_block_flips_stay_in_the_superclass_and_all_superclass_flips_do() {
    let data = balanced(cifar100_names(), 500);
    let of = cifar::superclasses_of(data.classes()).unwrap();
    let inside = |noise: &Noise| {
        let flips = targets(noise).into_iter().enumerate();
        flips.filter(|&(from, to)| of[from] == of[to.unwrap() as usize]).count()
    };
    assert_eq!(inside(&noise("asym-block:0.4", &data, 1)), 6);
    let noise = noise("asym-super:0.4", &data, 1);
    assert_eq!(inside(&noise), 100);
    assert_rate(&noise, 0.4);
    // Every class is the target of one, and five steps lead back.
    let next: Vec<usize> = targets(&noise).into_iter().map(|to| to.unwrap() as usize).collect();
    for c in 0..100 {
        assert_eq!((0..5).fold(c, |c, _| next[c]), c);
        assert!(next[c] > c || of[..c].iter().filter(|&&s| s == of[c]).count() == 4);
    }
}

#[test]
fn superclasses_can_be_given_and_must_fit() {
    let data = balanced(numbered(5), 400);
    let with = |superclasses| {
        let context = NoiseContext { superclasses: Some(superclasses), ..NoiseContext::default() };
        apply(&"asym-super:0.5".parse().unwrap(), &data, 1, &context)
    };
    assert_eq!(targets(&with(vec![8, 3, 8, 3, 1]).unwrap()), [Some(2), Some(3), Some(0), Some(1), None]);
    assert!(with(vec![0; 4]).unwrap_err().to_string().contains("4 superclasses for 5 classes"));
    assert!(refused("asym-super:0.5", &data).contains("superclass of every class"));
}

#[test]
fn pair_flip_goes_to_the_next_class() {
    for (classes, r) in [(10, 0.45), (100, 0.4)] {
        let noise = noise(&format!("pairflip:{r}"), &balanced(numbered(classes), 50_000 / classes), 6);
        assert_rate(&noise, r);
        assert_eq!(
            targets(&noise),
            (0..classes as u32).map(|c| Some((c + 1) % classes as u32)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_built_in_superclasses_are_the_official_ones() {
    let Some(folder) = real("cifar100") else { return };
    let lines = |name: &str| -> Vec<String> {
        std::fs::read_to_string(folder.join(name)).unwrap().lines().map(String::from).collect()
    };
    let (fine, coarse) = (lines("fine_label_names.txt"), lines("coarse_label_names.txt"));
    assert_eq!(fine, cifar100_names());
    assert_eq!(coarse, cifar::CIFAR100_SUPERCLASSES.map(|(name, _)| name));
    let of = cifar::superclasses_of(&fine).unwrap();
    let labels = std::fs::read(folder.join("train.labels")).unwrap();
    assert!(labels.chunks_exact(2).all(|pair| of[pair[1] as usize] == u32::from(pair[0])));
}
