//! The same batches, to the bit, for any number of threads, from any batch on, whatever is kept in memory.

use crate::pictures::{Said, loader_of, pictures, said, settings};
use negscale_data::loader::{LoaderSettings, Order, Until};
use negscale_data::views::{ImageSettings, Normalise, Picture, Scratch, fit, stream};
use negscale_data::{ImageStore, Shape, View};
use std::collections::HashSet;

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
fn the_numbers_of_a_view_come_row_by_row_with_the_channels_of_a_pixel_side_by_side() {
    let shape = Shape { width: 12, height: 12, channels: 3 };
    let images = ImageSettings::new(shape, Normalise::cifar10());
    let (maker, store) = (images.checked().unwrap(), pictures(20));
    let loader = loader_of(pictures(20), settings(8, 2));
    assert_eq!(loader.item_shape(), [12, 12, 3]);
    let mut scratch = Scratch::new();
    for batch in loader.epoch(3, &Order::Sequential).unwrap() {
        let batch = batch.unwrap();
        for (row, &sample) in batch.samples.iter().enumerate() {
            let image = fit(store.load(sample as usize).unwrap(), shape, images.fit).unwrap();
            for (which, &view) in loader.settings().views.iter().enumerate() {
                let mut draw = stream(5, 3, sample.into(), which as u64, 0);
                let picture = Picture::try_from(&image).unwrap();
                let shown = maker.apply(view, picture, &mut draw, &mut scratch).unwrap();
                let number = |(at, &level): (usize, &u8)| {
                    (level as f32 / 255.0 - images.normalise.mean[at % 3]) / images.normalise.std[at % 3]
                };
                let expected: Vec<f32> = shown.pixels().iter().enumerate().map(number).collect();
                assert_eq!(batch.views[which][row * shape.len()..][..shape.len()], expected, "{view}");
            }
        }
    }
}
