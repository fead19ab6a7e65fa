//! Embeddings in shards: stopped, resumed, with damaged and with other data.
#![allow(clippy::unwrap_used)]

use negscale_data::npy;
use negscale_data::{Image, ImageStore, Shape};
use negscale_encoders::{Encoder, Picture};
use negscale_run::embed::{Loaded, SHARD, Source, embed, parts, texts};
use negscale_run::{Error, Stop};
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The sum of a picture's bytes, its width and its height; counts how many it was given.
struct Sums(Arc<AtomicUsize>);

impl Encoder<Picture<'_>> for Sums {
    fn name(&self) -> &str {
        "sums"
    }
    fn width(&self) -> usize {
        3
    }
    fn encode(&self, items: &[Picture<'_>], rows: &mut [f32]) -> negscale_encoders::Result<()> {
        self.0.fetch_add(items.len(), Relaxed);
        for (picture, row) in items.iter().zip(rows.chunks_mut(3)) {
            let sum: u32 = picture.pixels.iter().map(|&p| u32::from(p)).sum();
            row.copy_from_slice(&[sum as f32, picture.width as f32, picture.height as f32]);
        }
        Ok(())
    }
}

fn sums(stamp: &str) -> (Loaded, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (Loaded::of_pictures(Box::new(Sums(count.clone())), stamp.into()), count)
}

/// Pictures of which some cannot be read.
struct Pictures {
    values: Vec<u8>,
    broken: Vec<usize>,
}

impl Pictures {
    fn new(count: usize) -> Self {
        Self { values: (0..count).map(|at| (at * 7) as u8).collect(), broken: Vec::new() }
    }
}

impl ImageStore for Pictures {
    fn len(&self) -> usize {
        self.values.len()
    }
    fn load(&self, index: usize) -> negscale_data::Result<Image> {
        if self.broken.contains(&index) {
            let problem = std::io::Error::other("torn");
            return Err(negscale_data::Error::Io { path: format!("{index}.png").into(), source: problem });
        }
        // Grey ones, of different sizes.
        let shape = Shape { width: 1 + index % 3, height: 2, channels: 1 };
        Ok(Image { shape, pixels: vec![self.values[index]; shape.len()] })
    }
    fn bytes(&self, index: usize) -> negscale_data::Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&self.values[index..=index]))
    }
    fn origin(&self, index: usize) -> Option<String> {
        Some(format!("{index}.png"))
    }
}

fn whole(pictures: &Pictures, out: &Path, together: usize) -> Vec<u8> {
    let (encoder, _) = sums("one");
    let source = Source::Pictures(pictures);
    embed(&source, &encoder, out, together, &mut |_| {}, &Stop::default()).unwrap();
    assert!(!parts(out).exists());
    fs::read(out).unwrap()
}

#[test]
fn rows_are_those_of_the_encoder_whatever_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("e.npy");
    let pictures = Pictures::new(SHARD + 77);
    let bytes = whole(&pictures, &out, 0);
    for together in [1, 13, 5000] {
        assert!(whole(&pictures, &out, together) == bytes, "{together} at a time");
    }
    let array = npy::open(&out).unwrap();
    assert_eq!(array.shape(), [SHARD + 77, 3]);
    let numbers = &bytes[bytes.len() - (SHARD + 77) * 12..];
    let row = |at: usize| -> Vec<f32> {
        numbers[at * 12..at * 12 + 12].as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
    };
    // Grey in three colours: 6 x width times the value.
    assert_eq!(row(5), [(35 * 6 * 3) as f32, 3.0, 2.0]);
    assert_eq!(
        row(SHARD + 1),
        [
            (((SHARD + 1) * 7) as u8) as f32 * 6.0 * (1 + (SHARD + 1) % 3) as f32,
            (1 + (SHARD + 1) % 3) as f32,
            2.0
        ]
    );
    let safetensors = folder.path().join("e.safetensors");
    assert!(whole(&pictures, &safetensors, 0).ends_with(numbers));
}

#[test]
fn stopped_anywhere_it_goes_on_and_leaves_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = Pictures::new(2 * SHARD + 40);
    let wanted = whole(&pictures, &folder.path().join("whole.npy"), 0);
    let out = folder.path().join("e.npy");
    let (encoder, count) = sums("one");
    let source = Source::Pictures(&pictures);
    let stop = Stop::default();
    let mut ask = |done: usize| {
        if done == 2 * SHARD {
            stop.ask(15)
        }
    };
    let error = embed(&source, &encoder, &out, 0, &mut ask, &stop).unwrap_err();
    assert!(matches!(error, Error::Stopped(15)), "{error}");
    assert!(!out.exists());
    // As after a crash: one shard is cut off, and a part that was being written is left.
    let shards = parts(&out).join("embeddings");
    let second = shards.join(format!("{SHARD:08}.rows"));
    let bytes = fs::read(&second).unwrap();
    fs::write(&second, &bytes[..100]).unwrap();
    count.store(0, Relaxed);
    let done = embed(&source, &encoder, &out, 0, &mut |_| {}, &Stop::default()).unwrap();
    assert_eq!((done.rows, done.width, done.resumed), (2 * SHARD + 40, 3, SHARD));
    assert_eq!(count.load(Relaxed), SHARD + 40);
    assert!(fs::read(&out).unwrap() == wanted);
    assert!(!parts(&out).exists());
}

#[test]
fn shards_of_other_data_or_another_encoder_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("e.npy");
    let mut pictures = Pictures::new(2 * SHARD);
    let begin = |pictures: &Pictures, stamp: &str| {
        let (encoder, count) = sums(stamp);
        let stop = Stop::default();
        let mut ask = |done: usize| {
            if done == SHARD {
                stop.ask(2)
            }
        };
        assert!(embed(&Source::Pictures(pictures), &encoder, &out, 0, &mut ask, &stop).is_err());
        count.load(Relaxed)
    };
    assert_eq!(begin(&pictures, "one"), SHARD);
    assert_eq!(begin(&pictures, "one"), 0, "it is there");
    assert_eq!(begin(&pictures, "another"), SHARD);
    pictures.values[3] ^= 1;
    assert_eq!(begin(&pictures, "another"), SHARD);
    let resumed = whole(&pictures, &out, 0);
    assert!(resumed == whole(&pictures, &folder.path().join("afresh.npy"), 0));
}

#[test]
fn pictures_that_cannot_be_read_are_all_named_and_the_others_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("e.npy");
    let mut pictures = Pictures::new(3 * SHARD);
    pictures.broken = vec![4, 5, 2 * SHARD + 1];
    let (encoder, _) = sums("one");
    let error = embed(&Source::Pictures(&pictures), &encoder, &out, 0, &mut |_| {}, &Stop::default());
    let error = error.unwrap_err().to_string();
    for told in ["3 of 1536", "4.png: torn", "5.png", &format!("{}.png", 2 * SHARD + 1)] {
        assert!(error.contains(told), "{told}: {error}");
    }
    assert!(!out.exists());
    pictures.broken.clear();
    let done = embed(&Source::Pictures(&pictures), &encoder, &out, 0, &mut |_| {}, &Stop::default()).unwrap();
    assert_eq!(done.resumed, SHARD);
}

#[test]
fn no_items_make_an_empty_array_and_odd_names_and_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("e.npy");
    whole(&Pictures::new(0), &out, 0);
    assert!(fs::read(&out).unwrap().windows(6).any(|part| part == b"(0, 3)"));
    let (encoder, _) = sums("one");
    let pictures = Pictures::new(2);
    let told = |out: &Path| {
        let source = Source::Pictures(&pictures);
        embed(&source, &encoder, out, 0, &mut |_| {}, &Stop::default()).unwrap_err().to_string()
    };
    assert!(told(&folder.path().join("e.txt")).contains(".npy or .safetensors"));
    // A folder of the user's that has the name of ours is left alone.
    let theirs = folder.path().join("b.npy.parts");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("note"), "mine").unwrap();
    assert!(told(&folder.path().join("b.npy")).contains("b.npy.parts"));
    assert_eq!(fs::read(theirs.join("note")).unwrap(), b"mine");
    let words = vec!["a".to_owned()];
    let mixed = embed(&Source::Texts(&words), &encoder, &out, 0, &mut |_| {}, &Stop::default());
    assert!(mixed.unwrap_err().to_string().contains("sums reads pictures, not texts"));
}

#[test]
fn texts_are_a_column_or_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let table = path("a.csv", "id,text\n1,\"good, really\"\n2,bad\n");
    assert_eq!(texts(&table, Some("text")).unwrap(), ["good, really", "bad"]);
    assert!(texts(&table, Some("txet")).unwrap_err().to_string().contains("id, text"));
    assert!(texts(&table, None).unwrap_err().to_string().contains("--text-column"));
    assert_eq!(texts(&path("a.txt", "one\ntwo\n"), None).unwrap(), ["one", "two"]);
}
