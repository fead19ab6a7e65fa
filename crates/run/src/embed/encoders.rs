//! Encoders by name, and whether their weights are here.

use crate::Result;
use crate::error::bail;
use anyhow::Context;
use negscale_data::catalogue::{self, State};
use negscale_data::folders::Folders;
use negscale_encoders::{EFFICIENTNET_LITE0, EfficientNetLite0, Encoder, Picture};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What an encoder reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pictures.
    Pictures,
    /// Texts.
    Texts,
}

/// An encoder whose weights `negscale data get NAME` fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name, which is that of its weights in the catalogue.
    pub name: &'static str,
    /// What it reads.
    pub kind: Kind,
    /// The file of weights, in their folder.
    weights: &'static str,
    /// What `data get` has to fetch, in megabytes.
    pub megabytes: usize,
}

/// Every encoder known by name; the first of a kind is its default.
pub const ENCODERS: &[Known] = &[Known {
    name: EFFICIENTNET_LITE0,
    kind: Kind::Pictures,
    weights: "efficientnet-lite0-57934424.pth",
    megabytes: 19,
}];

/// The encoder of that name.
///
/// # Errors
/// Lists the known ones.
pub fn known(name: &str) -> Result<&'static Known> {
    match ENCODERS.iter().find(|known| known.name == name) {
        Some(known) => Ok(known),
        None => {
            let names: Vec<&str> = ENCODERS.iter().map(|known| known.name).collect();
            bail!("there is no encoder `{name}`; encoders are {}", names.join(", "))
        }
    }
}

impl Known {
    /// The file of weights, if it is in one of these folders.
    #[must_use]
    pub fn find(&self, folders: &Folders) -> Option<PathBuf> {
        match catalogue::entry(self.name).ok()?.state(folders) {
            State::Present { folder, .. } => Some(folder.join(self.weights)),
            _ => None,
        }
    }

    /// The command that fetches the weights.
    #[must_use]
    pub fn command(&self) -> String {
        format!("negscale data get {}", self.name)
    }

    /// Loads it from these folders. Nothing is fetched.
    ///
    /// # Errors
    /// Weights that are not here, with the command that fetches them, or that cannot be used.
    pub fn load(&self, folders: &Folders) -> Result<Loaded> {
        let Some(path) = self.find(folders) else {
            bail!(
                "the weights of {} are not here: `{}` fetches them ({} MB)",
                self.name,
                self.command(),
                self.megabytes
            )
        };
        self.open(&path)
    }

    /// Loads it from a file of weights.
    ///
    /// # Errors
    /// Weights that cannot be used.
    pub fn open(&self, path: &Path) -> Result<Loaded> {
        let encoder = match self.kind {
            Kind::Pictures => Any::Pictures(Box::new(EfficientNetLite0::open(path)?)),
            Kind::Texts => bail!("{}: there is no encoder of texts", self.name),
        };
        Loaded::new(encoder, path)
    }
}

/// An encoder of either kind.
pub(super) enum Any {
    Pictures(Box<dyn for<'a> Encoder<Picture<'a>>>),
    Texts(Box<dyn for<'a> Encoder<&'a str>>),
}

/// An encoder that is ready.
pub struct Loaded {
    pub(super) encoder: Any,
    /// Its name and sha256 of its weights: who has the same makes the same rows, on CPUs with the same instructions.
    pub stamp: String,
}

impl Loaded {
    /// An encoder of pictures of your own; `stamp` says which it is, with its weights.
    #[must_use]
    pub fn of_pictures(encoder: Box<dyn for<'a> Encoder<Picture<'a>>>, stamp: String) -> Self {
        Self { encoder: Any::Pictures(encoder), stamp }
    }

    /// An encoder of texts of your own.
    #[must_use]
    pub fn of_texts(encoder: Box<dyn for<'a> Encoder<&'a str>>, stamp: String) -> Self {
        Self { encoder: Any::Texts(encoder), stamp }
    }

    fn new(encoder: Any, weights: &Path) -> Result<Self> {
        let reading = || format!("cannot read {}", weights.display());
        let mut hash = Sha256::new();
        std::io::copy(&mut File::open(weights).with_context(reading)?, &mut hash).with_context(reading)?;
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut loaded = Self { encoder, stamp: String::new() };
        loaded.stamp = format!("{} {hash}", loaded.name());
        Ok(loaded)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.encoder {
            Any::Pictures(encoder) => encoder.name(),
            Any::Texts(encoder) => encoder.name(),
        }
    }

    /// Numbers in a row.
    #[must_use]
    pub fn width(&self) -> usize {
        match &self.encoder {
            Any::Pictures(encoder) => encoder.width(),
            Any::Texts(encoder) => encoder.width(),
        }
    }

    /// What it reads.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.encoder {
            Any::Pictures(_) => Kind::Pictures,
            Any::Texts(_) => Kind::Texts,
        }
    }
}
