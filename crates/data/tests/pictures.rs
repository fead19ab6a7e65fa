//! Pictures that cannot be read: all named at once, or left out and listed.
#![allow(clippy::unwrap_used, clippy::panic)]

use image::{Rgb, RgbImage};
use negscale_data::own::{self, OwnOptions};
use negscale_data::views::Normalise;
use negscale_data::{Dataset, Error, Image, ImageStore, Items, Result, Shape, Splits};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two classes of `each` pictures, half of them JPEG and half PNG.
fn pictures(root: &Path, each: u32) {
    for class in ["cat", "dog"] {
        let folder = root.join(class);
        fs::create_dir_all(&folder).unwrap();
        for i in 0..each {
            let shade = |x: u32, y: u32| Rgb([(x * 9 + i) as u8, (y * 5) as u8, class.as_bytes()[0]]);
            let name = format!("{i:03}.{}", if i % 2 == 0 { "jpg" } else { "png" });
            RgbImage::from_fn(24, 24, shade).save(folder.join(name)).unwrap();
        }
    }
}

fn halve(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn skipping() -> OwnOptions {
    OwnOptions { skip_unreadable: true, ..OwnOptions::default() }
}

fn paths(items: &Items) -> Vec<PathBuf> {
    let Items::Images(store) = items else { panic!("no pictures") };
    (0..store.len()).map(|i| store.origin(i).unwrap().into()).collect()
}

#[test]
fn all_unreadable_pictures_of_all_parts_are_named_at_once_with_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    for part in ["train", "test"] {
        pictures(&root.path().join(part), 4);
    }
    let bad =
        ["train/cat/000.jpg", "train/dog/001.png", "test/dog/002.jpg"].map(|name| root.path().join(name));
    halve(&bad[0]);
    fs::write(&bad[1], "no picture").unwrap();
    halve(&bad[2]);
    let splits = own::open(root.path(), &OwnOptions::default()).unwrap();
    let error = splits.check_readable().unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("3 of 16 images cannot be read:"), "{text}");
    for path in &bad {
        assert_eq!(text.matches(path.to_str().unwrap()).count(), 1, "{text}");
    }
    assert!(text.contains("--skip-unreadable") && text.contains("cut off"), "{text}");
    assert!(matches!(error, Error::Unreadable { failures, items: 16 } if failures.len() == 3));
}

#[test]
fn of_many_unreadable_pictures_twenty_are_named_and_the_rest_counted() {
    let root = tempfile::tempdir().unwrap();
    pictures(root.path(), 15);
    for (path, _) in
        paths(own::open(root.path(), &OwnOptions::default()).unwrap().train.items()).iter().zip(0..25)
    {
        fs::write(path, "").unwrap();
    }
    let error =
        own::open(root.path(), &OwnOptions::default()).unwrap().check_readable().unwrap_err().to_string();
    assert!(error.contains("25 of 30") && error.contains("and 5 more"), "{error}");
    assert_eq!(error.matches("0 bytes").count(), 20, "{error}");
}

#[test]
fn unreadable_pictures_are_left_out_on_request_and_the_others_keep_their_labels() {
    let root = tempfile::tempdir().unwrap();
    pictures(root.path(), 4);
    let bad = [root.path().join("cat/002.jpg"), root.path().join("dog/003.png")];
    bad.iter().for_each(|path| halve(path));
    let all = own::open(root.path(), &OwnOptions::default()).unwrap();
    let kept = own::open(root.path(), &skipping()).unwrap();
    assert_eq!((all.train.len(), kept.train.len()), (8, 6));
    kept.check_readable().unwrap();
    assert_eq!(kept.train.given(), [0, 0, 0, 1, 1, 1]);
    assert!(paths(kept.train.items()).iter().all(|path| !bad.contains(path)));
    let listed: Vec<PathBuf> = kept.left_out.iter().map(|failure| failure.place().into()).collect();
    assert_eq!(listed, bad);
    assert!(
        kept.left_out.iter().all(|failure| !failure.reason.contains("002.jpg")),
        "the path stands beside it"
    );
    assert!(kept.notes.iter().any(|note| note.contains("2 of 8 images")), "{:?}", kept.notes);
    assert_ne!(all.train.fingerprint().unwrap(), kept.train.fingerprint().unwrap());
}

#[test]
fn a_label_file_may_count_all_pictures_or_those_that_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    pictures(&data, 2);
    halve(&data.join("cat/001.png"));
    for labels in ["dog\ncat\ndog\ncat\n", "dog\ndog\ncat\n"] {
        let file = root.path().join("labels.txt");
        fs::write(&file, labels).unwrap();
        let options = OwnOptions { labels: Some(file), ..skipping() };
        let splits = own::open(&data, &options).unwrap();
        assert_eq!(splits.train.given(), [1, 1, 0], "{labels}");
        assert_eq!(splits.left_out.len(), 1, "{labels}");
    }
    let file = root.path().join("labels.txt");
    fs::write(&file, "dog\ndog\n").unwrap();
    let error = own::open(&data, &OwnOptions { labels: Some(file), ..skipping() }).unwrap_err().to_string();
    assert!(error.contains("2 labels for 4 items"), "{error}");
}

#[test]
fn data_of_which_no_picture_can_be_read_is_an_error_even_if_such_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    pictures(root.path(), 1);
    ["cat/000.jpg", "dog/000.jpg"].iter().for_each(|name| halve(&root.path().join(name)));
    let error = own::open(root.path(), &skipping()).unwrap_err().to_string();
    assert!(error.contains("2 of 2") && !error.contains("--skip-unreadable"), "{error}");
    let error = own::open_items(root.path(), &skipping()).unwrap_err().to_string();
    assert!(error.contains("2 of 2"), "{error}");
}

#[test]
fn errors_say_what_the_system_said_once_even_as_a_chain() {
    let error = own::open(Path::new("no/such/place"), &OwnOptions::default()).unwrap_err();
    assert!(std::error::Error::source(&error).is_none(), "what is in the message is no source as well");
    assert_eq!(error.to_string().matches("No such file").count(), 1, "{error}");
}

/// Grey and coloured pictures of different sizes, one of which may be broken; it counts how often one is decoded.
struct Counted {
    broken: Option<usize>,
    loads: Arc<AtomicUsize>,
}

impl ImageStore for Counted {
    fn len(&self) -> usize {
        9
    }
    fn load(&self, index: usize) -> Result<Image> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        if Some(index) == self.broken {
            return Err(Error::format("broken.png", None, "is not a picture"));
        }
        let shape =
            Shape { width: 3 + index, height: 4, channels: if index.is_multiple_of(2) { 3 } else { 1 } };
        Ok(Image { shape, pixels: (0..shape.len()).map(|at| (at * 37 + index * 11) as u8).collect() })
    }
    fn bytes(&self, _: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&[]))
    }
}

#[test]
fn pictures_are_decoded_once_to_find_the_unreadable_and_to_measure_the_channels() {
    for broken in [None, Some(4)] {
        let loads = Arc::<AtomicUsize>::default();
        let items = Items::Images(Arc::new(Counted { broken, loads: loads.clone() }));
        let splits = Splits::new(Dataset::new("p", vec!["a".into()], items, vec![0; 9], None).unwrap(), None);
        let splits = match broken {
            None => splits.check_readable().map(|()| splits).unwrap(),
            Some(_) => splits.without_unreadable().unwrap(),
        };
        assert_eq!(splits.train.len(), 9 - splits.left_out.len());
        // Labels may change meanwhile.
        let train = splits.train.with_noise(vec![0; splits.train.len()]).unwrap();
        let known = [1, 3].map(|channels| train.channel_sums().unwrap().normalise(channels).unwrap());
        assert_eq!(loads.load(Ordering::Relaxed), 9);
        let Items::Images(store) = splits.train.items() else { panic!("pictures") };
        let measured = [1, 3].map(|channels| Normalise::measure(store.as_ref(), channels).unwrap());
        assert_eq!(known, measured);
        assert!(loads.load(Ordering::Relaxed) > 9);
        let some = train.subset(&[0, 1]).unwrap();
        assert_ne!(some.channel_sums().unwrap(), train.channel_sums().unwrap(), "those of its own pictures");
    }
}
