//! Memory is bounded, and pictures are not decoded more often than need be.

use crate::pictures::{Pictures, loader_of, pictures, settings};
use negscale_data::loader::{Batch, LoaderSettings, Order, Until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn no_more_batches_are_made_than_the_bound() {
    let loads = Arc::<AtomicUsize>::default();
    let store = Pictures { loads: loads.clone(), ..pictures(400) };
    let loader = loader_of(store, LoaderSettings { prefetch: 3, cache_bytes: 0, ..settings(4, 4) });
    let mut batches = loader.epoch(0, &Order::Shuffled { passes: 1 }).unwrap();
    let first = batches.next().unwrap().unwrap();
    // However long we wait, only 3 more are made. (If the bound were broken, a short wait would show it nearly always.)
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(loads.load(Ordering::Relaxed) <= 4 * 4, "{loads:?} pictures read");
    drop(first);
    batches.by_ref().for_each(|batch| drop(batch.unwrap()));
    drop(batches);
    loader.epoch(1, &Order::Shuffled { passes: 1 }).unwrap().for_each(|batch| drop(batch.unwrap()));
    assert!(loader.most_batches_in_memory() <= 4, "{}", loader.most_batches_in_memory());
}

#[test]
fn views_can_be_taken_out_of_a_batch_and_have_no_room_to_spare() {
    let order = Order::Pair {
        labelled: (0..40).collect(),
        unlabelled: (40..53).collect(),
        unlabelled_batch: Some(5),
        until: Until::Labelled,
    };
    let loader = loader_of(pictures(53), settings(8, 2));
    for batch in loader.epoch(0, &order).unwrap() {
        let Batch { labelled, unlabelled, .. } = batch.unwrap();
        for part in [labelled, unlabelled.unwrap()] {
            let (count, places) =
                (part.len(), part.views.iter().map(|view| view.as_ptr()).collect::<Vec<_>>());
            for (view, place) in part.views.into_iter().zip(places) {
                assert_eq!((view.len(), view.capacity()), (count * 12 * 12 * 3, view.len()));
                assert_eq!(view.as_ptr(), place, "handed over, not copied");
            }
        }
    }
}

#[test]
fn pictures_are_decoded_once_while_they_fit() {
    let item = 3 * 12 * 12;
    for (cache_bytes, kept) in [(1 << 20, 50..=50), (0, 0..=0), (20 * (item + 64), 20..=22)] {
        let loads = Arc::<AtomicUsize>::default();
        let store = Pictures { loads: loads.clone(), ..pictures(50) };
        let loader = loader_of(store, LoaderSettings { cache_bytes, ..settings(10, 1) });
        for epoch in 0..3 {
            loader.epoch(epoch, &Order::Sequential).unwrap().for_each(|batch| drop(batch.unwrap()));
        }
        let now = loader.kept_pictures();
        assert!(kept.contains(&now), "{now} kept of {cache_bytes} bytes");
        assert_eq!(loads.load(Ordering::Relaxed), now + 3 * (50 - now));
    }
}
