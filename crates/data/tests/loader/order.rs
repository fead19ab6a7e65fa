//! Which samples come when.

use crate::pictures::{label, loader_of, pictures, samples, settings};
use negscale_data::loader::{LoaderSettings, Order, Until};
use std::collections::{BTreeMap, HashSet};

#[test]
fn every_sample_comes_once_per_pass_and_every_epoch_has_another_order() {
    let loader = loader_of(pictures(53), settings(8, 2));
    let once: Vec<u32> = (0..53).collect();
    assert_eq!(samples(&loader, 0, &Order::Sequential).concat(), once);
    let mut seen = HashSet::new();
    for epoch in 0..4 {
        let batches = samples(&loader, epoch, &Order::Shuffled { passes: 3 });
        assert_eq!(batches.len(), (3usize * 53).div_ceil(8), "one stream: a short batch only at its end");
        let stream = batches.concat();
        for pass in stream.chunks(53) {
            assert!(seen.insert(pass.to_vec()), "every pass has an order of its own");
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, once);
        }
    }
}

#[test]
fn a_short_last_batch_can_be_dropped_unless_it_is_all_there_is() {
    let sizes = |count: usize, drop_last: bool, order: &Order| -> Vec<usize> {
        let loader = loader_of(pictures(count), LoaderSettings { drop_last, ..settings(10, 2) });
        samples(&loader, 0, order).iter().map(Vec::len).collect()
    };
    let shuffled = Order::Shuffled { passes: 1 };
    assert_eq!(sizes(25, false, &shuffled), [10, 10, 5]);
    assert_eq!(sizes(25, true, &shuffled), [10, 10]);
    assert_eq!(sizes(20, true, &shuffled), [10, 10]);
    assert_eq!(sizes(7, true, &shuffled), [7]);
    assert_eq!(sizes(25, true, &Order::Sequential), [10, 10, 5], "evaluation leaves nothing out");
    assert_eq!(sizes(0, true, &shuffled), [0; 0]);
}

#[test]
fn balanced_batches_hold_every_class_equally_often_and_every_sample_at_least_once() {
    let loader = loader_of(pictures(70), settings(12, 2));
    let batches = samples(&loader, 1, &Order::Balanced { length: None });
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for batch in &batches {
        let mut within = [0; 3];
        batch.iter().for_each(|&sample| within[label(sample as usize) as usize] += 1);
        assert_eq!(within, [4, 4, 4]);
        batch.iter().for_each(|&sample| *counts.entry(sample).or_default() += 1);
    }
    assert_eq!(batches.concat().len(), 3 * 40, "as long as the largest class needs");
    for sample in 0..70 {
        let share = 40 / [10, 20, 40][label(sample as usize) as usize];
        assert_eq!(counts[&sample], share, "a class goes through all its samples before it starts again");
    }
    let cut = samples(&loader, 1, &Order::Balanced { length: Some(31) }).concat();
    assert_eq!(cut, batches.concat()[..31]);
}

#[test]
fn the_shorter_set_of_a_pair_starts_again_in_a_new_order() {
    let loader = loader_of(pictures(53), settings(8, 2));
    let pair = |labelled: std::ops::Range<u32>, unlabelled: std::ops::Range<u32>, until| Order::Pair {
        labelled: labelled.collect(),
        unlabelled: unlabelled.collect(),
        unlabelled_batch: None,
        until,
    };
    let parts = |order: &Order| -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let batches = loader.epoch(0, order).unwrap().map(|batch| {
            let batch = batch.unwrap();
            let other = batch.unlabelled.as_ref().unwrap();
            assert!(other.samples.iter().zip(&other.given).all(|(&s, &given)| given == label(s as usize)));
            (batch.samples.clone(), other.samples.clone())
        });
        batches.unzip()
    };
    let sorted = |batches: &[Vec<u32>]| {
        let mut all = batches.concat();
        all.sort_unstable();
        all
    };
    // 40 labelled: 5 batches. 13 unlabelled: a batch of 8 and one of 5 per pass.
    let (labelled, unlabelled) = parts(&pair(0..40, 40..53, Until::Labelled));
    assert_eq!(sorted(&labelled), (0..40).collect::<Vec<_>>());
    assert_eq!(unlabelled.iter().map(Vec::len).collect::<Vec<_>>(), [8, 5, 8, 5, 8]);
    for pass in [0..2, 2..4] {
        assert_eq!(sorted(&unlabelled[pass]), (40..53).collect::<Vec<_>>());
    }
    assert_ne!(unlabelled[..2], unlabelled[2..4], "a new order");
    // The other way round, the epoch ends with the labelled set, or with the longer one.
    assert_eq!(parts(&pair(0..13, 13..53, Until::Labelled)).0.len(), 2);
    let (labelled, unlabelled) = parts(&pair(0..13, 13..53, Until::Longer));
    assert_eq!(labelled.iter().map(Vec::len).collect::<Vec<_>>(), [8, 5, 8, 5, 8]);
    assert_eq!(sorted(&unlabelled), (13..53).collect::<Vec<_>>());
    // The unlabelled set sets the length whichever is longer, and samples may be in both sets, or twice in one.
    assert_eq!(parts(&pair(0..40, 40..53, Until::Unlabelled)).0.len(), 2);
    let twice = Order::Pair {
        labelled: [3, 3, 4].repeat(2),
        unlabelled: (0..53).collect(),
        unlabelled_batch: None,
        until: Until::Unlabelled,
    };
    let (labelled, unlabelled) = parts(&twice);
    assert_eq!(sorted(&unlabelled), (0..53).collect::<Vec<_>>());
    assert!(labelled.len() == 7 && labelled.iter().all(|batch| batch.len() == 6));
    assert_eq!(sorted(&labelled[..1]), [3, 3, 3, 3, 4, 4]);
    assert_eq!(parts(&pair(0..0, 0..13, Until::Unlabelled)).0, vec![Vec::<u32>::new(); 2]);
    // Nothing unlabelled: empty parts; nothing labelled: no epoch.
    let (labelled, unlabelled) = parts(&pair(0..13, 0..0, Until::Labelled));
    assert_eq!((labelled.len(), unlabelled), (2, vec![vec![]; 2]));
    assert!(parts(&pair(0..0, 0..13, Until::Labelled)).0.is_empty());
}
