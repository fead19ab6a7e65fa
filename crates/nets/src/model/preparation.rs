//! How an item becomes the networks' input, fixed when training starts and saved with the model.

use crate::Result;
use crate::networks::Input;
use negscale_data::loader::{Loader, LoaderSettings};
use negscale_data::views::{FeatureSettings, ImageSettings, Moments, Normalise};
use negscale_data::{Dataset, Error, ImageStore, Items, Shape};
use serde::{Deserialize, Serialize};

/// How items are prepared for a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preparation {
    /// Pictures, of any size, brought to the networks' shape.
    Images(ImageSettings),
    /// Feature vectors.
    Features(FeatureSettings),
}

impl Preparation {
    /// For the data to learn from.
    ///
    /// Pictures keep the size of the data, else that of the first one, else `side` (columns and rows). Values are scaled by
    /// the published constants of CIFAR-10, CIFAR-100 and Fashion-MNIST, known by the beginning of the data's name, else
    /// by measured ones. Views are mirrored unless the name begins with `mnist`: a mirrored digit is none.
    pub fn measure(dataset: &Dataset, side: Option<(usize, usize)>) -> Result<Self> {
        Ok(match dataset.items() {
            Items::Images(store) => {
                let shape = shape_of(dataset, store.as_ref(), side)?;
                let normalise = match published(dataset.name()) {
                    Some(constants) if constants.mean.len() == shape.channels => constants,
                    _ => dataset.channel_sums()?.normalise(shape.channels)?,
                };
                let flip = !dataset.name().starts_with("mnist");
                Self::Images(ImageSettings { flip, ..ImageSettings::new(shape, normalise) })
            }
            Items::Features(store) => Self::Features(FeatureSettings::new(Moments::measure(store.as_ref())?)),
        })
    }

    /// Refuses settings outside their ranges.
    pub fn checked(&self) -> Result<()> {
        match self {
            Self::Images(settings) => drop(settings.checked()?),
            Self::Features(settings) => drop(settings.clone().checked()?),
        }
        Ok(())
    }

    /// What the networks take.
    pub fn input(&self) -> Input {
        match self {
            Self::Images(ImageSettings { shape: Shape { width, height, channels }, .. }) => {
                Input::Image { channels: *channels, height: *height, width: *width }
            }
            Self::Features(settings) => Input::Features(settings.dim()),
        }
    }

    /// Numbers per item.
    pub fn len(&self) -> usize {
        match self {
            Self::Images(settings) => settings.shape.len(),
            Self::Features(settings) => settings.dim(),
        }
    }

    /// Whether items have no numbers at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Batches of a dataset in this form: the one learned from, or any other of its kind.
    pub fn loader(&self, dataset: &Dataset, settings: LoaderSettings) -> Result<Loader> {
        Ok(match (self, dataset.items()) {
            (Self::Images(images), Items::Images(_)) => Loader::of_images(dataset, images, settings)?,
            (Self::Features(features), Items::Features(store)) if store.dim() == features.dim() => {
                Loader::of_features(dataset, features.clone(), settings)?
            }
            (_, items) => {
                let found = match items {
                    Items::Images(_) => "images".to_owned(),
                    Items::Features(store) => format!("feature vectors of length {}", store.dim()),
                };
                let problem = format!(
                    "it holds {found}, but the model takes {}: give data of the kind it was trained on",
                    self.input()
                );
                return Err(Error::Labels { dataset: dataset.name().into(), problem }.into());
            }
        })
    }
}

fn shape_of(dataset: &Dataset, store: &dyn ImageStore, side: Option<(usize, usize)>) -> Result<Shape> {
    let shape = match store.shape() {
        Some(shape) => shape,
        None if store.is_empty() => {
            let problem = "it has no image to take the size from: give data that is not empty";
            return Err(Error::Labels { dataset: dataset.name().into(), problem: problem.into() }.into());
        }
        None => store.load(0)?.shape,
    };
    Ok(side.map_or(shape, |(width, height)| Shape { width, height, ..shape }))
}

fn published(name: &str) -> Option<Normalise> {
    // The longer name first: it begins with the shorter.
    [
        ("cifar100", Normalise::cifar100 as fn() -> Normalise),
        ("cifar10", Normalise::cifar10),
        ("fashion-mnist", Normalise::fashion_mnist),
    ]
    .into_iter()
    .find(|(known, _)| name.starts_with(known))
    .map(|(_, constants)| constants())
}
