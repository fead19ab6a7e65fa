//! Encoders by name, and whether their weights are here.

use crate::Result;
use crate::error::bail;
use anyhow::Context;
use negscale_data::catalogue::{self, State};
use negscale_data::folders::Folders;
use negscale_encoders::{
    EFFICIENTNET_LITE0, EfficientNetLite0, Encoder, OnnxPictures, OnnxSettings, OnnxTexts, Picture,
    Precision, TextEncoder,
};
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

impl Kind {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pictures => "pictures",
            Self::Texts => "texts",
        }
    }
}

/// An encoder whose weights `negscale data get NAME` fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name, which is that of its weights in the catalogue.
    pub name: &'static str,
    /// What it reads.
    pub kind: Kind,
    /// Its files, in their folder: weights first, then all else that rows depend on.
    pub files: &'static [&'static str],
    /// What `data get` has to fetch, in megabytes.
    pub megabytes: usize,
}

/// Every encoder known by name; the first of a kind is its default.
pub const ENCODERS: &[Known] = &[
    Known {
        name: EFFICIENTNET_LITE0,
        kind: Kind::Pictures,
        files: &["efficientnet-lite0-57934424.pth"],
        megabytes: 19,
    },
    Known {
        name: "minilm",
        kind: Kind::Texts,
        files: &["model.safetensors", "tokenizer.json", "config.json", "sentence_bert_config.json"],
        megabytes: 84,
    },
];

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
    /// The folder of its files, if they are in one of these.
    #[must_use]
    pub fn find(&self, folders: &Folders) -> Option<PathBuf> {
        match catalogue::entry(self.name).ok()?.state(folders) {
            State::Present { folder, .. } => Some(folder),
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
        let Some(folder) = self.find(folders) else {
            bail!(
                "the weights of {} are not here: `{}` fetches them ({} MB)",
                self.name,
                self.command(),
                self.megabytes
            )
        };
        self.open(&folder)
    }

    /// Loads it from the folder of its files.
    ///
    /// # Errors
    /// Files that cannot be used.
    pub fn open(&self, folder: &Path) -> Result<Loaded> {
        let files: Vec<PathBuf> = self.files.iter().map(|name| folder.join(name)).collect();
        let encoder = match self.kind {
            Kind::Pictures => Any::Pictures(Box::new(EfficientNetLite0::open(&files[0])?)),
            Kind::Texts => Any::Texts(Box::new(TextEncoder::open(folder, Precision::F32)?)),
        };
        Loaded::new(encoder, self.name, &files)
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

    /// A network in an ONNX file, for pictures, or for texts with its `tokenizer.json` beside it.
    ///
    /// # Errors
    /// Files that cannot be used.
    pub fn onnx(file: &Path, kind: Kind, settings: &OnnxSettings) -> Result<Self> {
        let mut files = vec![file.to_owned()];
        let encoder = match kind {
            Kind::Pictures => Any::Pictures(Box::new(OnnxPictures::open(file, settings)?)),
            Kind::Texts => {
                files.push(file.with_file_name("tokenizer.json"));
                Any::Texts(Box::new(OnnxTexts::open(file, settings)?))
            }
        };
        Self::new(encoder, &format!("onnx {settings:?}"), &files)
    }

    /// Stamped with what it is called and the content of its files.
    fn new(encoder: Any, name: &str, files: &[PathBuf]) -> Result<Self> {
        let mut hash = Sha256::new();
        for path in files {
            let reading = || format!("cannot read {}", path.display());
            std::io::copy(&mut File::open(path).with_context(reading)?, &mut hash).with_context(reading)?;
        }
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { encoder, stamp: format!("{name} {hash}") })
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

    /// Of how many items the end was not read so far, because they are longer than it takes.
    #[must_use]
    pub fn truncated(&self) -> usize {
        match &self.encoder {
            Any::Pictures(encoder) => encoder.truncated(),
            Any::Texts(encoder) => encoder.truncated(),
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
