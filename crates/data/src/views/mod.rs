//! Views: what a network sees of an item.
//!
//! | view | pictures | feature vectors |
//! |---|---|---|
//! | plain, identity | as it is | as it is |
//! | weak | crop out of a black border, mirrored in half of the cases | little jitter |
//! | strong | three of 14 operations, Cutout, then weak | jitter and dropout |
//! | zoom | a part of any size, mirrored in half of the cases | as weak |
//! | contrast | zoom, then colours changed, at times to grey | as strong |
//! | autoaugment | weak, then a pair of the AutoAugment policy | - |
//! | jitter:S, dropout:P, jitter:S+dropout:P | - | the noise named, S in standard deviations |
//!
//! A view is a function of (seed, epoch, sample, which view): the caller hands in the [`Draw`] of these four. All 8-bit
//! arithmetic equals Pillow's, pixel by pixel. What is published for 32 x 32 colour pictures is done for any size and for grey:
//! the border is an eighth of each side (halves up), 16 becomes half the side, Cutout's colour its brightness.
//!
//! # Where this differs from published code
//! The mirror can be switched off (digits). Grey pictures are taken; "colour" leaves them alone, as Pillow does.

mod autoaugment;
mod canvas;
mod channels;
mod crop;
mod enhance;
mod features;
mod geometry;
mod levels;
mod normalise;
mod normals;
mod operation;
mod resize;
mod word;
mod zoom;

pub use canvas::{LONGEST_SIDE, Picture, Scratch, check_shape};
pub use channels::ChannelSums;
pub use crop::default_border;
pub use features::{FeatureSettings, Moments, Stray};
pub use geometry::Edge;
pub use normalise::Normalise;
pub use operation::{Cutout, Operation};
pub use resize::{Fit, convert, fit};
pub use word::View;

use crate::draw::{Draw, Purpose};
use crate::{Error, Result, Shape};
use serde::{Deserialize, Serialize};

/// The stream that the `which`-th view of a sample draws from. `again` counts the times the sample came before in the same
/// epoch, so that a second pass shows other views; at most 64 views of a sample have streams of their own.
pub fn stream(seed: u64, epoch: u64, sample: u64, which: u64, again: u64) -> Draw {
    Draw::numbered(seed, Purpose::View, again * 64 + which, epoch, sample)
}

/// How pictures are shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSettings {
    /// The network's size and channels; pictures of other shapes are brought to it.
    pub shape: Shape,
    /// From 8-bit values to the network's numbers.
    pub normalise: Normalise,
    /// Whether weak and strong views are mirrored in half of the cases. Not for digits and letters.
    pub flip: bool,
    /// Columns and rows of the black border to crop from; an eighth of each side if not set.
    pub border: Option<(usize, usize)>,
    /// How pictures of other proportions are brought to the network's.
    pub fit: Fit,
}

impl ImageSettings {
    /// Mirrored, with the usual border.
    pub fn new(shape: Shape, normalise: Normalise) -> Self {
        Self { shape, normalise, flip: true, border: None, fit: Fit::default() }
    }

    /// Settings in a form that is ready to use, if all of them are in their ranges.
    pub fn checked(&self) -> Result<ImageViews> {
        check_shape(self.shape)?;
        let border =
            self.border.unwrap_or((default_border(self.shape.width), default_border(self.shape.height)));
        if border.0 > self.shape.width || border.1 > self.shape.height {
            return Err(Error::Setting {
                what: "border",
                value: format!("{} x {}", border.0, border.1),
                requirement: format!(
                    "must not exceed the picture, {} x {}",
                    self.shape.width, self.shape.height
                ),
            });
        }
        let tables = self.normalise.tables(self.shape.channels)?;
        Ok(ImageViews { shape: self.shape, tables, flip: self.flip, border })
    }
}

/// Makes views of pictures of one shape.
#[derive(Debug, Clone)]
pub struct ImageViews {
    shape: Shape,
    tables: Vec<[f32; 256]>,
    flip: bool,
    border: (usize, usize),
}

impl ImageViews {
    /// Shape of the pictures it takes and gives.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The 8-bit view of a picture, which stays in `scratch`.
    pub fn apply<'a>(
        &self,
        view: View,
        picture: Picture,
        draw: &mut Draw,
        scratch: &'a mut Scratch,
    ) -> Result<Picture<'a>> {
        if picture.shape() != self.shape {
            return Err(Error::Setting {
                what: "picture",
                value: format!("{:?}", picture.shape()),
                requirement: format!("these views take {:?}: bring it there with `views::fit`", self.shape),
            });
        }
        view.for_pictures()?;
        scratch.load(picture);
        if view == View::Strong {
            operation::strengthen(scratch, draw);
        }
        if matches!(view, View::Weak | View::Strong | View::AutoAugment) {
            crop::crop_and_flip(scratch, self.border, self.flip, draw);
        }
        if matches!(view, View::Zoom | View::Contrast) {
            zoom::zoom(scratch, self.flip, draw)?;
        }
        if view == View::Contrast {
            zoom::recolour(scratch, draw);
        }
        if view == View::AutoAugment {
            autoaugment::augment(scratch, draw);
        }
        Ok(scratch.picture())
    }

    /// Adds the view to `out` as the network's numbers, row by row, the channels of a pixel side by side.
    pub fn render(
        &self,
        view: View,
        picture: Picture,
        draw: &mut Draw,
        scratch: &mut Scratch,
        out: &mut Vec<f32>,
    ) -> Result<()> {
        let shown = self.apply(view, picture, draw, scratch)?;
        normalise::add_numbers(shown, &self.tables, out);
        Ok(())
    }
}

impl FeatureSettings {
    /// Turns the vector in `row` into its view.
    pub fn render(&self, view: View, draw: &mut Draw, row: &mut [f32]) -> Result<()> {
        check_room(row, self.dim())?;
        self.show(self.stray(view)?, draw, row);
        Ok(())
    }

    /// How far a view strays, or an error for a view that only pictures have.
    pub fn stray(&self, view: View) -> Result<Stray> {
        match view {
            View::Plain | View::Identity => Ok(Stray::NONE),
            View::Weak | View::Zoom => Ok(self.weak),
            View::Strong | View::Contrast => Ok(self.strong),
            View::Noise(stray) => stray.checked(),
            View::AutoAugment => Err(Error::Setting {
                what: "view",
                value: view.to_string(),
                requirement: "is for pictures; features have plain, weak, strong, jitter:S, dropout:P".into(),
            }),
        }
    }
}

fn check_room(out: &[f32], needed: usize) -> Result<()> {
    if out.len() == needed {
        return Ok(());
    }
    Err(Error::Setting {
        what: "room for a view",
        value: out.len().to_string(),
        requirement: format!("must be {needed} numbers"),
    })
}
