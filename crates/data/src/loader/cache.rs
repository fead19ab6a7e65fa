//! Where items come from: pictures decoded once and kept while they fit, or features read from their store.

use crate::views::{FeatureSettings, Fit, ImageSettings, ImageViews, Picture, Scratch, View, fit, stream};
use crate::{Dataset, Error, FeatureStore, ImageStore, Items, Result};
use std::sync::{Arc, OnceLock};

/// Bytes that keeping a picture costs beside its pixels.
const OVERHEAD: usize = size_of::<OnceLock<Box<[u8]>>>() + 16;

/// Items and how they are shown.
pub(super) enum Source {
    Images { store: Arc<dyn ImageStore>, views: ImageViews, fit: Fit, kept: Vec<OnceLock<Box<[u8]>>> },
    Features { store: Arc<dyn FeatureStore>, settings: FeatureSettings },
}

/// Which view of which sample, when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub seed: u64,
    pub epoch: u64,
    pub again: u64,
}

impl Source {
    /// Pictures, of which as many are kept decoded as fit into `budget` bytes.
    pub fn images(dataset: &Dataset, settings: &ImageSettings, budget: usize) -> Result<Self> {
        let Items::Images(store) = dataset.items() else {
            return Err(mismatch(dataset, "features", "pictures"));
        };
        let views = settings.checked()?;
        let fitting = budget / (settings.shape.len() + OVERHEAD);
        let kept = (0..fitting.min(store.len())).map(|_| OnceLock::new()).collect();
        Ok(Self::Images { store: store.clone(), views, fit: settings.fit, kept })
    }

    /// Feature vectors.
    pub fn features(dataset: &Dataset, settings: FeatureSettings) -> Result<Self> {
        let Items::Features(store) = dataset.items() else {
            return Err(mismatch(dataset, "pictures", "features"));
        };
        let settings = settings.checked()?;
        if settings.dim() != store.dim() {
            return Err(Error::Setting {
                what: "moments",
                value: settings.dim().to_string(),
                requirement: format!("the data set `{}` has {} features", dataset.name(), store.dim()),
            });
        }
        Ok(Self::Features { store: store.clone(), settings })
    }

    /// Numbers per item.
    pub fn width(&self) -> usize {
        match self {
            Self::Images { views, .. } => views.shape().len(),
            Self::Features { settings, .. } => settings.dim(),
        }
    }

    /// Shape of an item as a network takes it: rows, columns, channels; or features.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Images { views, .. } => {
                vec![views.shape().height, views.shape().width, views.shape().channels]
            }
            Self::Features { settings, .. } => vec![settings.dim()],
        }
    }

    /// Refuses views the items do not have.
    pub fn check_view(&self, view: View) -> Result<()> {
        match self {
            Self::Images { .. } => view.for_pictures(),
            Self::Features { settings, .. } => settings.stray(view).map(|_| ()),
        }
    }

    /// Where an item came from, if that is known.
    pub fn origin(&self, sample: usize) -> Option<String> {
        match self {
            Self::Images { store, .. } => store.origin(sample),
            Self::Features { .. } => None,
        }
    }

    /// How many pictures are kept decoded at present.
    pub fn kept(&self) -> usize {
        match self {
            Self::Images { kept, .. } => kept.iter().filter(|place| place.get().is_some()).count(),
            Self::Features { .. } => 0,
        }
    }

    /// Adds the views of a sample, one to each of `out`.
    pub fn show(
        &self,
        sample: u32,
        views: &[View],
        moment: Moment,
        scratch: &mut Scratch,
        out: &mut [Vec<f32>],
    ) -> Result<()> {
        let out = out.iter_mut().map(|out| room(out, self.width()));
        let draw =
            |which: usize| stream(moment.seed, moment.epoch, sample as u64, which as u64, moment.again);
        match self {
            Self::Images { store, views: maker, fit: how, kept } => {
                let load = || Ok(fit(store.load(sample as usize)?, maker.shape(), *how)?.pixels);
                let decoded: Vec<u8>;
                let pixels: &[u8] = match kept.get(sample as usize) {
                    None => {
                        decoded = load()?;
                        &decoded
                    }
                    Some(place) => match place.get() {
                        Some(pixels) => pixels,
                        None => {
                            // Two threads may both decode it; both get the same, and one of the two is kept.
                            let pixels = load()?.into_boxed_slice();
                            place.get_or_init(|| pixels)
                        }
                    },
                };
                let picture = Picture::new(maker.shape(), pixels)?;
                for (which, (&view, out)) in views.iter().zip(out).enumerate() {
                    maker.render(view, picture, &mut draw(which), scratch, out)?;
                }
            }
            Self::Features { store, settings } => {
                for (which, (&view, out)) in views.iter().zip(out).enumerate() {
                    store.read(sample as usize, out)?;
                    settings.render(view, &mut draw(which), out)?;
                }
            }
        }
        Ok(())
    }
}

/// Places for `width` more numbers. They are cleared while they are in the cache next to the processor, just before they are written.
fn room(out: &mut Vec<f32>, width: usize) -> &mut [f32] {
    let start = out.len();
    out.resize(start + width, 0.0);
    &mut out[start..]
}

fn mismatch(dataset: &Dataset, has: &str, wanted: &str) -> Error {
    Error::Setting {
        what: "loader",
        value: wanted.into(),
        requirement: format!("the data set `{}` holds {has}: use the loader for {has}", dataset.name()),
    }
}
