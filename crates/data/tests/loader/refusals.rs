//! What cannot be loaded, and what is said of it.

use crate::pictures::{Pictures, dataset_of, loader_of, pictures, settings};
use negscale_data::loader::{Loader, LoaderSettings, Order};
use negscale_data::views::{ImageSettings, Normalise, Stray};
use negscale_data::{Error, Shape, View};

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
