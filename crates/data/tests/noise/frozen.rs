//! Stored noise never changes silently: labels of every law for one seed, written down once.

use crate::material::{balanced, cifar10_names, cifar100_names, noise};

#[test]
fn labels_of_seed_42_are_what_they_always_were() {
    let ten = balanced(cifar10_names(), 4);
    let hundred = balanced(cifar100_names(), 1);
    for (spec, data, expected) in [
        ("none", &ten, "0 7 4 1 8 5 2 9 6 3 0 7 4 1 8 5 2 9 6 3"),
        ("sym:0.5", &ten, "7 8 3 5 8 5 2 9 6 9 0 9 4 2 8 5 2 3 6 2"),
        ("sym-excl:0.5", &ten, "0 3 4 1 8 5 7 7 8 3 7 8 4 1 4 5 7 9 2 2"),
        ("sym-exact:0.5", &ten, "0 7 0 1 8 5 2 9 6 8 9 5 8 7 4 6 1 6 6 3"),
        ("asym-map:0.8", &ten, "0 7 7 1 8 3 0 9 6 5 0 7 7 1 8 3 0 1 6 5"),
        ("asym-block:0.4", &hundred, "0 8 14 21 28 35 43 49 56 63 71 77 84 91 99 5 13 19 27 34"),
        ("asym-super:0.4", &hundred, "0 14 14 21 28 35 43 49 56 63 82 77 84 91 2 5 17 19 45 49"),
        ("pairflip:0.4", &ten, "0 8 4 1 8 5 3 9 6 3 1 7 4 1 9 5 3 9 7 4"),
        ("ins:0.6", &ten, "9 4 4 1 8 9 5 9 2 4 0 7 4 1 8 5 8 9 9 0"),
        ("ins:0.6:input=unit", &ten, "8 8 4 1 8 8 4 9 3 6 0 7 4 1 8 5 9 9 3 1"),
        ("ins:0.6:input=normalised", &ten, "9 3 4 1 8 9 9 9 2 5 0 7 4 1 8 5 8 9 9 0"),
        ("ins:0.6:matrix=shared", &ten, "9 9 4 1 8 8 1 9 5 0 0 7 4 1 8 5 3 9 4 0"),
    ] {
        let labels = noise(spec, data, 42).labels;
        let text: Vec<String> = labels[..20].iter().map(u32::to_string).collect();
        assert_eq!(text.join(" "), expected, "{spec}");
    }
}

#[test]
fn hashes_of_stored_noise_are_what_they_always_were() {
    // Convention sentences are part of the hash: rewording one makes every stored noise file of that law differ.
    let hash = noise("sym:0.5", &balanced(cifar10_names(), 4), 42).hash;
    assert_eq!(hash, "b030b0197bfeb61e6facb05e61c2806e5a43b9714798a5c2552c916bb7d6440a");
}
