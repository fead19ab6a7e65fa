//! Class trees: the numbers they must give, the texts they are read from, and what goes wrong.

// Clippy spares only the test functions themselves, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod facts;
mod indented;
mod learnt;
mod matching;
mod permuted;
mod picture;
mod tsv;
mod wordnet;

use negscale::taxonomy::{Relation, Taxonomy, Thresholds};

/// No list of classes.
const NO_NAMES: &[&str] = &[];

fn thresholds(eta_min: u32, eta_max: u32) -> Thresholds {
    Thresholds::new(eta_min, eta_max).unwrap()
}

fn builtin(name: &str) -> Taxonomy {
    Taxonomy::builtin(name).unwrap()
}

/// Distance of two classes by name.
fn between(tree: &Taxonomy, a: &str, b: &str) -> u32 {
    let find = |name: &str| tree.class_names().position(|known| known == name).expect(name);
    tree.distance(find(a), find(b))
}

/// (related, neutral, unrelated) pairs, counted one by one.
fn counts(tree: &Taxonomy, thresholds: Thresholds) -> (usize, usize, usize) {
    let mut counts = (0, 0, 0);
    for a in 0..tree.classes() {
        for b in a + 1..tree.classes() {
            match tree.relation(a, b, thresholds) {
                Relation::Related => counts.0 += 1,
                Relation::Neutral => counts.1 += 1,
                Relation::Unrelated => counts.2 += 1,
                Relation::Same => panic!("classes {a} and {b} differ"),
            }
        }
    }
    counts
}

/// Asserts that an error message contains every one of the parts.
#[track_caller]
fn complains<T: std::fmt::Debug>(result: negscale::Result<T>, parts: &[&str]) {
    let message = result.unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}
