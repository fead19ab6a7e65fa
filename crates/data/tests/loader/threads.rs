//! Threads live as long as the loaders that share them, and several epochs may be under way on them.

use crate::pictures::{Pictures, Said, loader_of, pictures, said, settings};
use negscale_data::loader::{Loader, LoaderSettings, Order};
use negscale_data::views::{ImageSettings, Normalise};
use negscale_data::{Dataset, Image, ImageStore, Items, Result, Shape, View};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

/// Who reads, and how many of these have ended.
#[derive(Default)]
struct Readers {
    seen: Mutex<HashSet<ThreadId>>,
    ended: AtomicUsize,
}

impl Readers {
    fn seen(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// Counts when its thread ends.
struct End(Arc<Readers>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

thread_local! {
    static ENDS: RefCell<Vec<End>> = const { RefCell::new(Vec::new()) };
}

/// Pictures that know who reads them.
struct Watched {
    pictures: Pictures,
    readers: Arc<Readers>,
}

impl ImageStore for Watched {
    fn len(&self) -> usize {
        self.pictures.len()
    }
    fn load(&self, index: usize) -> Result<Image> {
        if self.readers.seen.lock().unwrap().insert(std::thread::current().id()) {
            ENDS.with_borrow_mut(|ends| ends.push(End(self.readers.clone())));
        }
        self.pictures.load(index)
    }
    fn bytes(&self, index: usize) -> Result<Cow<'_, [u8]>> {
        self.pictures.bytes(index)
    }
}

/// A loader that keeps nothing, so that every epoch reads.
fn watched(count: usize, threads: usize) -> (Loader, Arc<Readers>) {
    let readers = Arc::<Readers>::default();
    let store = Watched { pictures: pictures(count), readers: readers.clone() };
    let items = Items::Images(Arc::new(store));
    let dataset = Dataset::new("watched", vec!["a".into()], items, vec![0; count], None).unwrap();
    let images = ImageSettings::new(Shape { width: 12, height: 12, channels: 3 }, Normalise::cifar10());
    let settings = LoaderSettings { cache_bytes: 0, ..settings(4, threads) };
    (Loader::of_images(&dataset, &images, settings).unwrap(), readers)
}

fn read_through(loader: &Loader, epoch: u64) {
    loader.epoch(epoch, &Order::Sequential).unwrap().for_each(|batch| drop(batch.unwrap()));
}

#[test]
fn the_same_threads_make_all_epochs_of_a_loader_and_of_those_made_from_it_and_end_with_the_last() {
    let (loader, readers) = watched(60, 3);
    assert_eq!(readers.seen(), 0, "none before they are needed");
    for epoch in 0..20 {
        read_through(&loader, epoch);
        read_through(&loader.showing(vec![View::Plain], 7, false).unwrap(), epoch);
    }
    let shown = loader.showing(vec![View::Weak], 5, false).unwrap();
    drop(loader);
    read_through(&shown, 20);
    let mut batches = shown.epoch(21, &Order::Sequential).unwrap();
    drop(shown);
    assert_eq!(batches.by_ref().map(|batch| batch.unwrap().len()).sum::<usize>(), 60, "batches go on alone");
    assert!((1..=3).contains(&readers.seen()), "{} threads for 42 epochs", readers.seen());
    assert_eq!(readers.ended.load(Ordering::SeqCst), 0);
    drop(batches);
    assert_eq!(readers.ended.load(Ordering::SeqCst), readers.seen(), "all have ended");
}

#[test]
fn loaders_of_several_sets_can_share_their_threads() {
    let (first, readers) = watched(40, 2);
    let (second, others) = watched(40, 5);
    let second = second.with_threads_of(&first);
    for epoch in 0..5 {
        read_through(&first, epoch);
        read_through(&second, epoch);
    }
    let both: HashSet<ThreadId> = &*readers.seen.lock().unwrap() | &*others.seen.lock().unwrap();
    assert!((1..=2).contains(&both.len()), "{} threads", both.len());
    drop(first);
    read_through(&second, 5);
    assert_eq!(others.ended.load(Ordering::SeqCst), 0);
}

#[test]
fn an_epoch_goes_on_while_others_are_under_way_on_the_same_threads() {
    let order = Order::Shuffled { passes: 1 };
    let expected = |epoch| -> Vec<Said> {
        loader_of(pictures(53), settings(8, 1)).epoch(epoch, &order).unwrap().map(said).collect()
    };
    for (threads, prefetch) in [(1, 1), (2, 3)] {
        let loader = loader_of(pictures(53), LoaderSettings { prefetch, ..settings(8, threads) });
        // One that nobody asks for anything, one that is left in the middle, and one inside another.
        let idle = loader.epoch(9, &order).unwrap();
        let mut left = loader.epoch(8, &order).unwrap();
        left.next().unwrap().unwrap();
        let mut outer = Vec::new();
        for batch in loader.epoch(0, &order).unwrap() {
            outer.push(said(batch));
            let inner: Vec<Said> = loader.epoch(1, &order).unwrap().map(said).collect();
            assert!(inner == expected(1), "{threads} threads");
        }
        assert!(outer == expected(0), "{threads} threads");
        drop(left);
        assert!(idle.map(said).collect::<Vec<Said>>() == expected(9), "{threads} threads");
    }
}

#[test]
fn an_error_or_a_panic_in_one_epoch_leaves_the_threads_to_the_next() {
    for store in
        [Pictures { broken: Some(29), ..pictures(53) }, Pictures { panicking: Some(29), ..pictures(53) }]
    {
        let loader = loader_of(store, settings(8, 2));
        for _ in 0..3 {
            let results: Vec<bool> =
                loader.epoch(0, &Order::Sequential).unwrap().map(|batch| batch.is_ok()).collect();
            assert_eq!(results, [true, true, true, false]);
            let others = loader.epoch(0, &Order::Among((30..53).collect())).unwrap();
            assert_eq!(others.map(|batch| batch.unwrap().len()).sum::<usize>(), 23);
        }
    }
}

#[test]
fn leaving_an_epoch_early_ends_its_reading() {
    let store = Arc::<AtomicUsize>::default();
    let loader = loader_of(Pictures { loads: store.clone(), ..pictures(5000) }, settings(4, 3));
    for _ in 0..50 {
        let mut batches = loader.epoch(0, &Order::Shuffled { passes: 1 }).unwrap();
        batches.next().unwrap().unwrap();
    }
    let then = store.load(Ordering::Relaxed);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(store.load(Ordering::Relaxed), then, "nobody reads any more");
    drop(loader.epoch(0, &Order::Sequential).unwrap());
}
