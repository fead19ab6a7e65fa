//! Batches made in the background.
//!
//! A [`Loader`] knows the items and how they are shown; [`Loader::epoch`] starts an epoch in some [`Order`] and gives its batches.
//! Order and views are functions of (seed, epoch, sample), so neither the number of threads nor stopping and going on at a
//! batch changes a single bit. Memory is bounded: `prefetch` batches, `cache_bytes` of decoded pictures, and what a
//! thread needs for one picture. Threads are started once for a loader and all that are made from it by
//! [`showing`](Loader::showing), and end with the last of them.
//!
//! ```no_run
//! # use negscale_data::{Dataset, Result, Shape, View};
//! # use negscale_data::loader::{Loader, LoaderSettings, Order};
//! # use negscale_data::views::{ImageSettings, Normalise};
//! # fn train(dataset: &Dataset) -> Result<()> {
//! let shape = Shape { width: 32, height: 32, channels: 3 };
//! let settings = LoaderSettings { batch: 128, views: vec![View::Weak, View::Strong], ..Default::default() };
//! let loader = Loader::of_images(dataset, &ImageSettings::new(shape, Normalise::cifar10()), settings)?;
//! for epoch in 0..300 {
//!     for batch in loader.epoch(epoch, &Order::Shuffled { passes: 1 })? {
//!         let batch = batch?;
//!         let (weak, strong) = (&batch.views[0], &batch.views[1]); // each batch.len() x 32 x 32 x 3
//! #       let _ = (weak, strong);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod batch;
mod cache;
mod epoch;
mod order;
mod workers;

pub use batch::{Batch, BatchPart};
pub use order::{Order, Until};
pub use workers::Batches;

use crate::views::{FeatureSettings, ImageSettings, View};
use crate::{Dataset, Error, Result};
use batch::Count;
use cache::Source;
use epoch::Epoch;
use order::{Given, check_positive};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use workers::Workers;

/// Most views of a sample in a batch, each with a random stream of its own.
pub const MOST_VIEWS: usize = 64;
/// Most threads.
const MOST_THREADS: usize = 1024;

/// Settings of a loader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoaderSettings {
    /// Samples per batch.
    pub batch: usize,
    /// Views of each sample.
    pub views: Vec<View>,
    /// Views of the unlabelled samples of a pair, if they are shown otherwise than the labelled ones.
    pub unlabelled_views: Option<Vec<View>>,
    /// Whether a last batch that is not full is left out, unless it is the only one.
    pub drop_last: bool,
    /// Seed of order and views.
    pub seed: u64,
    /// Threads that make batches; 0 = as many as there are cores.
    pub threads: usize,
    /// Batches made ahead of the consumer; 0 = twice the threads.
    pub prefetch: usize,
    /// Memory for decoded pictures; those that do not fit are decoded each time.
    pub cache_bytes: usize,
}

impl Default for LoaderSettings {
    fn default() -> Self {
        Self {
            batch: 128,
            views: vec![View::Plain],
            unlabelled_views: None,
            drop_last: false,
            seed: 1,
            threads: 0,
            prefetch: 0,
            cache_bytes: 1 << 30,
        }
    }
}

impl LoaderSettings {
    fn all_views(&self) -> impl Iterator<Item = &View> {
        self.views.iter().chain(self.unlabelled_views.iter().flatten())
    }

    fn checked(mut self) -> Result<Self> {
        check_positive("batch", self.batch)?;
        check_views("views", &self.views)?;
        if let Some(views) = &self.unlabelled_views {
            check_views("unlabelled_views", views)?;
        }
        if self.threads > MOST_THREADS {
            return Err(Error::Setting {
                what: "threads",
                value: self.threads.to_string(),
                requirement: format!("must be at most {MOST_THREADS}, or 0 for as many as there are cores"),
            });
        }
        if self.threads == 0 {
            self.threads = std::thread::available_parallelism().map_or(1, usize::from);
        }
        if self.prefetch == 0 {
            self.prefetch = 2 * self.threads;
        }
        Ok(self)
    }
}

fn check_views(what: &'static str, views: &[View]) -> Result<()> {
    if (1..=MOST_VIEWS).contains(&views.len()) {
        return Ok(());
    }
    let (value, requirement) = (views.len().to_string(), format!("must be 1 to {MOST_VIEWS}"));
    Err(Error::Setting { what, value, requirement })
}

/// Makes batches of a data set.
pub struct Loader {
    source: Arc<Source>,
    labels: Arc<[u32]>,
    dataset: String,
    settings: LoaderSettings,
    workers: Arc<Workers>,
    count: Arc<Count>,
}

impl Loader {
    /// Over pictures.
    pub fn of_images(dataset: &Dataset, images: &ImageSettings, settings: LoaderSettings) -> Result<Self> {
        let source = Source::images(dataset, images, settings.cache_bytes)?;
        Self::new(dataset, source, settings)
    }

    /// Over feature vectors.
    pub fn of_features(
        dataset: &Dataset,
        features: FeatureSettings,
        settings: LoaderSettings,
    ) -> Result<Self> {
        Self::new(dataset, Source::features(dataset, features)?, settings)
    }

    fn new(dataset: &Dataset, source: Source, settings: LoaderSettings) -> Result<Self> {
        let settings = settings.checked()?;
        settings.all_views().try_for_each(|&view| source.check_view(view))?;
        if u32::try_from(dataset.len()).is_err() {
            return Err(Error::Setting {
                what: "items",
                value: dataset.len().to_string(),
                requirement: "must be fewer than 2^32".into(),
            });
        }
        Ok(Self {
            source: Arc::new(source),
            labels: dataset.given().into(),
            dataset: dataset.name().to_owned(),
            workers: Arc::new(Workers::new(settings.threads)),
            settings,
            count: Arc::default(),
        })
    }

    /// Shares the threads of another loader, such as that of the training set of the same run.
    pub fn with_threads_of(mut self, other: &Loader) -> Self {
        self.workers = other.workers.clone();
        self.settings.threads = other.settings.threads;
        self
    }

    /// The same items shown otherwise. Decoded pictures and threads are shared with this loader.
    pub fn showing(&self, views: Vec<View>, batch: usize, drop_last: bool) -> Result<Self> {
        self.showing_pair(views, None, batch, drop_last)
    }

    /// As [`showing`](Self::showing), with views of their own for the unlabelled samples of a pair.
    pub fn showing_pair(
        &self,
        views: Vec<View>,
        unlabelled_views: Option<Vec<View>>,
        batch: usize,
        drop_last: bool,
    ) -> Result<Self> {
        let settings = LoaderSettings { views, unlabelled_views, batch, drop_last, ..self.settings.clone() }
            .checked()?;
        settings.all_views().try_for_each(|&view| self.source.check_view(view))?;
        Ok(Self {
            source: self.source.clone(),
            labels: self.labels.clone(),
            dataset: self.dataset.clone(),
            settings,
            workers: self.workers.clone(),
            count: Arc::default(),
        })
    }

    /// The settings in use, with threads and prefetch as they came out.
    pub fn settings(&self) -> &LoaderSettings {
        &self.settings
    }

    /// Shape of an item in a view: rows, columns, channels; or features.
    pub fn item_shape(&self) -> Vec<usize> {
        self.source.shape()
    }

    /// The batches of an epoch.
    pub fn epoch(&self, epoch: u64, order: &Order) -> Result<Batches> {
        self.resume(epoch, order, 0)
    }

    /// The batches of an epoch from number `first` on: the same as if those before it had been asked for.
    pub fn resume(&self, epoch: u64, order: &Order, first: usize) -> Result<Batches> {
        let LoaderSettings { batch, drop_last, seed, prefetch, .. } = self.settings;
        let schedule = Given { labels: &self.labels, seed, epoch, batch, drop_last }.schedule(order)?;
        let epoch = Epoch {
            source: self.source.clone(),
            labels: self.labels.clone(),
            dataset: self.dataset.clone(),
            views: self.settings.views.clone(),
            unlabelled_views: self.settings.unlabelled_views.clone(),
            seed,
            number: epoch,
            schedule,
            count: self.count.clone(),
            left: AtomicBool::new(false),
        };
        self.workers.batches(epoch, first, prefetch)
    }

    /// How many pictures are kept decoded at present.
    pub fn kept_pictures(&self) -> usize {
        self.source.kept()
    }

    /// The most batches that were in memory at one time: waiting, being made, or held by the consumer.
    pub fn most_batches_in_memory(&self) -> usize {
        self.count.most()
    }
}
