//! What is loaded: random pictures, and loaders over them.

use negscale_data::draw::{Draw, Purpose};
use negscale_data::loader::{Batch, Loader, LoaderSettings, Order};
use negscale_data::views::{ImageSettings, Normalise};
use negscale_data::{Dataset, Error, Image, ImageStore, Items, Result, Shape, View};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Random pictures of different sizes, some of which cannot be read.
pub struct Pictures {
    pub count: usize,
    pub broken: Option<usize>,
    pub panicking: Option<usize>,
    pub loads: Arc<AtomicUsize>,
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
pub fn label(index: usize) -> u32 {
    [0, 1, 1, 2, 2, 2, 2][index % 7]
}

pub fn dataset_of(pictures: Pictures) -> Dataset {
    let given = (0..pictures.count).map(label).collect();
    let classes = ["a", "b", "c"].map(String::from).to_vec();
    Dataset::new("random", classes, Items::Images(Arc::new(pictures)), given, None).unwrap()
}

pub fn pictures(count: usize) -> Pictures {
    Pictures { count, broken: None, panicking: None, loads: Arc::default() }
}

pub fn settings(batch: usize, threads: usize) -> LoaderSettings {
    let views = vec![View::Weak, View::Strong, View::AutoAugment, View::Plain];
    LoaderSettings { batch, threads, views, seed: 5, ..Default::default() }
}

pub fn loader_of(pictures: Pictures, settings: LoaderSettings) -> Loader {
    let shape = Shape { width: 12, height: 12, channels: 3 };
    let images = ImageSettings::new(shape, Normalise::cifar10());
    Loader::of_images(&dataset_of(pictures), &images, settings).unwrap()
}

/// Everything a batch says, with floats as bits.
pub type Said = (usize, Vec<u32>, Vec<u32>, Vec<Vec<u32>>, Vec<u32>, Vec<Vec<u32>>);

pub fn said(batch: Result<Batch>) -> Said {
    let batch = batch.unwrap();
    let bits = |views: &[Vec<f32>]| -> Vec<Vec<u32>> {
        views.iter().map(|view| view.iter().map(|x| x.to_bits()).collect()).collect()
    };
    let other = batch.unlabelled.clone().unwrap_or_default();
    (
        batch.number,
        batch.samples.clone(),
        batch.given.clone(),
        bits(&batch.views),
        other.samples.clone(),
        bits(&other.views),
    )
}

pub fn samples(loader: &Loader, epoch: u64, order: &Order) -> Vec<Vec<u32>> {
    loader.epoch(epoch, order).unwrap().map(|batch| batch.unwrap().samples.clone()).collect()
}
