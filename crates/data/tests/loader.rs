//! The loader: what comes, in which order, and what does not depend on threads, resuming or memory.

#![allow(clippy::unwrap_used)] // a test that cannot go on has failed

use negscale_data::draw::{Draw, Purpose};
use negscale_data::loader::{Batch, Loader, LoaderSettings, Order, Until};
use negscale_data::views::{ImageSettings, Normalise, Stray};
use negscale_data::{Dataset, Error, Image, ImageStore, Items, Result, Shape, View};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Random pictures of different sizes, some of which cannot be read.
struct Pictures {
    count: usize,
    broken: Option<usize>,
    panicking: Option<usize>,
    loads: Arc<AtomicUsize>,
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.count
    }
    fn load(&self, index: usize) -> Result<Image> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        if Some(index) == self.broken {
            return Err(Error::format("cat.png", None, "is not a picture"));
        }
        assert_ne!(Some(index), self.panicking, "a defect");
        let shape = Shape {
            width: 12 + index % 3,
            height: 12 + index % 2,
            channels: if index.is_multiple_of(5) { 1 } else { 3 },
        };
        let mut draw = Draw::new(index as u64, Purpose::Noise, 0, 0);
        Ok(Image { shape, pixels: (0..shape.len()).map(|_| draw.bits() as u8).collect() })
    }
    fn bytes(&self, _: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&[]))
    }
    fn origin(&self, index: usize) -> Option<String> {
        Some(format!("pictures/{index}.png"))
    }
}

/// Classes 0, 1, 2 with shares of about 1/7, 2/7, 4/7.
fn label(index: usize) -> u32 {
    [0, 1, 1, 2, 2, 2, 2][index % 7]
}

fn dataset_of(pictures: Pictures) -> Dataset {
    let given = (0..pictures.count).map(label).collect();
    let classes = ["a", "b", "c"].map(String::from).to_vec();
    Dataset::new("random", classes, Items::Images(Arc::new(pictures)), given, None).unwrap()
}

fn pictures(count: usize) -> Pictures {
    Pictures { count, broken: None, panicking: None, loads: Arc::default() }
}

fn settings(batch: usize, threads: usize) -> LoaderSettings {
    let views = vec![View::Weak, View::Strong, View::AutoAugment, View::Plain];
    LoaderSettings { batch, threads, views, seed: 5, ..Default::default() }
}

fn loader_of(pictures: Pictures, settings: LoaderSettings) -> Loader {
    let shape = Shape { width: 12, height: 12, channels: 3 };
    let images = ImageSettings::new(shape, Normalise::cifar10());
    Loader::of_images(&dataset_of(pictures), &images, settings).unwrap()
}

/// Everything a batch says, with floats as bits.
type Said = (usize, Vec<u32>, Vec<u32>, Vec<Vec<u32>>, Vec<u32>, Vec<Vec<u32>>);

fn said(batch: Result<Batch>) -> Said {
    let batch = batch.unwrap();
    let bits = |views: &[Vec<f32>]| -> Vec<Vec<u32>> {
        views.iter().map(|view| view.iter().map(|x| x.to_bits()).collect()).collect()
    };
    let other = batch.unlabelled().cloned().unwrap_or_default();
    (
        batch.number,
        batch.samples.clone(),
        batch.given.clone(),
        bits(&batch.views),
        other.samples.clone(),
        bits(&other.views),
    )
}

fn samples(loader: &Loader, epoch: u64, order: &Order) -> Vec<Vec<u32>> {
    loader.epoch(epoch, order).unwrap().map(|batch| batch.unwrap().samples.clone()).collect()
}

fn orders() -> Vec<Order> {
    vec![
        Order::Sequential,
        Order::Shuffled { passes: 2 },
        Order::Among((3..40).collect()),
        Order::Balanced { length: None },
        Order::Pair {
            labelled: (0..40).collect(),
            unlabelled: (40..53).collect(),
            unlabelled_batch: Some(5),
            until: Until::Labelled,
        },
    ]
}

#[test]
fn the_number_of_threads_and_the_cache_change_no_bit() {
    for order in orders() {
        let expected: Vec<Said> =
            loader_of(pictures(53), settings(8, 1)).epoch(2, &order).unwrap().map(said).collect();
        assert!(expected.len() > 3);
        for (threads, prefetch, cache_bytes) in [(2, 1, 0), (3, 0, 5000), (7, 20, 1 << 30)] {
            let settings = LoaderSettings { prefetch, cache_bytes, ..settings(8, threads) };
            let loader = loader_of(pictures(53), settings);
            for _ in 0..2 {
                let made: Vec<Said> = loader.epoch(2, &order).unwrap().map(said).collect();
                assert!(made == expected, "{order:?} with {threads} threads");
            }
        }
    }
}

#[test]
fn resuming_gives_the_batches_that_would_have_come() {
    for order in orders() {
        let whole: Vec<Said> =
            loader_of(pictures(53), settings(8, 2)).epoch(4, &order).unwrap().map(said).collect();
        for first in [0, 1, 3, whole.len(), whole.len() + 9] {
            let rest: Vec<Said> =
                loader_of(pictures(53), settings(8, 2)).resume(4, &order, first).unwrap().map(said).collect();
            assert!(rest == whole[first.min(whole.len())..], "{order:?} from {first}");
        }
    }
}

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
fn a_sample_looks_different_in_every_epoch_pass_and_view_but_plain_stays() {
    let loader = loader_of(
        pictures(6),
        LoaderSettings { views: vec![View::Strong, View::Strong, View::Plain], ..settings(6, 1) },
    );
    let (mut strong, mut plain) = (HashSet::new(), HashSet::new());
    for epoch in 0..3 {
        for batch in loader.epoch(epoch, &Order::Shuffled { passes: 2 }).unwrap() {
            let batch = batch.unwrap();
            let row = batch.samples.iter().position(|&sample| sample == 4).unwrap();
            let width = 3 * 12 * 12;
            let bits = |view: usize| -> Vec<u32> {
                batch.views[view][row * width..][..width].iter().map(|x| x.to_bits()).collect()
            };
            strong.extend([bits(0), bits(1)]);
            plain.insert(bits(2));
        }
    }
    assert_eq!((strong.len(), plain.len()), (3 * 2 * 2, 1));
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
            let other = batch.unlabelled().unwrap();
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

#[test]
fn unlabelled_samples_can_be_shown_in_views_of_their_own() {
    let order = Order::Pair {
        labelled: (0..20).collect(),
        unlabelled: (0..53).collect(),
        unlabelled_batch: Some(5),
        until: Until::Unlabelled,
    };
    let views = |list: &[View], own: Option<&[View]>| {
        let loader = loader_of(pictures(53), settings(8, 2));
        let loader = loader.showing_pair(list.to_vec(), own.map(<[View]>::to_vec), 8, true).unwrap();
        loader.epoch(3, &order).unwrap().map(said).collect::<Vec<Said>>()
    };
    let (strong, weak) = ([View::Strong, View::Strong], [View::Weak, View::AutoAugment, View::Plain]);
    let (both_strong, both_weak) = (views(&strong, None), views(&weak, None));
    // Each part is, bit for bit, what it would be if both parts were shown so.
    for (at, made) in views(&strong, Some(&weak)).into_iter().enumerate() {
        let (number, samples, given, labelled, others, unlabelled) = made;
        assert_eq!((labelled.len(), unlabelled.len()), (2, 3));
        assert_eq!(
            (number, &samples, &given, &others),
            (at, &both_weak[at].1, &both_weak[at].2, &both_weak[at].4)
        );
        assert!(labelled == both_strong[at].3 && unlabelled == both_weak[at].5, "batch {at}");
    }
    assert!(views(&strong, Some(&strong)) == both_strong);
    // A sample that is in both parts looks different in each.
    let (_, samples, _, labelled, ..) = &both_strong[0];
    let place =
        both_strong.iter().find_map(|b| b.4.iter().position(|s| s == &samples[0]).map(|at| (&b.5, at)));
    let (unlabelled, at) = place.unwrap();
    let width = labelled[0].len() / samples.len();
    assert_ne!(labelled[0][..width], unlabelled[0][at * width..(at + 1) * width]);
    // Without a list of their own on the next showing, they are shown as the others again.
    let loader = loader_of(pictures(53), settings(8, 2));
    let loader = loader.showing_pair(strong.to_vec(), Some(weak.to_vec()), 8, true).unwrap();
    let loader = loader.showing(strong.to_vec(), 8, true).unwrap();
    assert!(loader.epoch(3, &order).unwrap().map(said).collect::<Vec<Said>>() == both_strong);
}

#[test]
fn an_item_that_cannot_be_read_is_named_and_ends_the_epoch() {
    for threads in [1, 4] {
        let loader = loader_of(Pictures { broken: Some(29), ..pictures(53) }, settings(8, threads));
        let mut batches = loader.epoch(0, &Order::Sequential).unwrap();
        for _ in 0..3 {
            batches.next().unwrap().unwrap();
        }
        let message = batches.next().unwrap().unwrap_err().to_string();
        for part in ["`random`", "item 29", "pictures/29.png", "cat.png", "is not a picture"] {
            assert!(message.contains(part), "{part} in: {message}");
        }
        assert!(batches.next().is_none() && batches.next().is_none());
    }
}

#[test]
fn a_panic_in_a_store_becomes_an_error_instead_of_a_wait_for_ever() {
    let loader = loader_of(Pictures { panicking: Some(9), ..pictures(53) }, settings(8, 2));
    let results: Vec<_> = loader.epoch(0, &Order::Sequential).unwrap().collect();
    assert!(results[0].is_ok() && results.len() == 2);
    let message = results[1].as_ref().unwrap_err().to_string();
    assert!(message.contains("items between 8 and 15"), "{message}");
    assert!(matches!(results[1], Err(Error::Defect { .. })), "{message}");
}

#[test]
fn no_more_batches_are_made_than_the_bound_and_their_memory_is_used_again() {
    let loads = Arc::<AtomicUsize>::default();
    let store = Pictures { loads: loads.clone(), ..pictures(400) };
    let loader = loader_of(store, LoaderSettings { prefetch: 3, cache_bytes: 0, ..settings(4, 4) });
    let mut batches = loader.epoch(0, &Order::Shuffled { passes: 1 }).unwrap();
    let first = batches.next().unwrap().unwrap();
    // However long we wait, only 3 more are made. (If the bound were broken, a short wait would show it nearly always.)
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(loads.load(Ordering::Relaxed) <= 4 * 4, "{loads:?} pictures read");
    drop(first);
    let places: HashSet<_> = batches.by_ref().map(|batch| batch.unwrap().views[0].as_ptr()).collect();
    assert!(places.len() <= 4, "{} buffers for 99 batches", places.len());
    drop(batches);
    loader.epoch(1, &Order::Shuffled { passes: 1 }).unwrap().for_each(|batch| drop(batch.unwrap()));
    assert!(loader.most_batches_in_memory() <= 4, "{}", loader.most_batches_in_memory());
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

#[test]
fn leaving_an_epoch_early_stops_its_threads() {
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

#[test]
fn settings_that_cannot_work_are_refused_with_a_reason() {
    let dataset = dataset_of(pictures(10));
    let shape = Shape { width: 12, height: 12, channels: 3 };
    let images = ImageSettings::new(shape, Normalise::cifar10());
    let refused = |settings: LoaderSettings| match Loader::of_images(&dataset, &images, settings) {
        Ok(_) => String::from("accepted"),
        Err(error) => error.to_string(),
    };
    assert!(refused(settings(0, 1)).contains("batch = 0"));
    assert!(refused(LoaderSettings { views: vec![], ..settings(4, 1) }).contains("views = 0"));
    let own = |views: Vec<View>| refused(LoaderSettings { unlabelled_views: Some(views), ..settings(4, 1) });
    assert!(own(vec![]).contains("unlabelled_views = 0"));
    let jitter = View::Noise(Stray { sigma: 0.1, dropout: 0.0 });
    assert!(own(vec![jitter]).contains("jitter:0.1"));
    assert!(refused(LoaderSettings { views: vec![jitter], ..settings(4, 1) }).contains("jitter:0.1"));
    assert!(refused(settings(4, usize::MAX)).contains("threads"));
    let loader = Loader::of_images(&dataset, &images, settings(4, 1)).unwrap();
    for (order, reason) in [
        (Order::Shuffled { passes: 0 }, "passes = 0"),
        (Order::Shuffled { passes: usize::MAX }, "more epochs"),
        (Order::Balanced { length: Some(usize::MAX) }, "more epochs"),
        (Order::Among(vec![3, 10]), "sample = 10"),
    ] {
        let error = loader.epoch(0, &order).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let grey = ImageSettings::new(Shape { channels: 1, ..shape }, Normalise::cifar10());
    assert!(Loader::of_images(&dataset, &grey, settings(4, 1)).is_err(), "three means for one channel");
}
