//! Pictures and texts that are judged by what an encoder makes of them.

use crate::embed::{ENCODERS, Kind, Known, Loaded, Shards, Source, known};
use crate::error::bail;
use crate::folder::RunFolder;
use crate::recipe::{Judge, Layers, Recipe};
use crate::{Result, Stop, Watch};
use negscale_data::{Dataset, Items};

/// The encoder that is taken unless another is asked for.
fn default(kind: Kind) -> Option<&'static Known> {
    ENCODERS.iter().find(|known| known.kind == kind)
}

/// What an encoder would read of these items.
fn kind_of(items: &Items) -> Option<Kind> {
    match items {
        Items::Images(_) => Some(Kind::Pictures),
        Items::Features(_) => items.are_texts().then_some(Kind::Texts),
    }
}

/// The encoder that these settings of an audit of pictures or texts mean, if any: one that is named must be here, one that is not is taken if it
/// is, unless something of a training was chosen, or predictions were given. Texts cannot do without one, but by predictions.
pub(super) fn choose(layers: &Layers, judge: Option<Judge>, items: &Items) -> Result<Option<&'static str>> {
    let folders = layers.data()?.folders();
    let kind = kind_of(items).unwrap_or(Kind::Pictures);
    if kind == Kind::Texts && judge.is_some() {
        bail!(
            "texts are judged through an encoder, without a training: leave out settings of one such as --host, or make rows of numbers of them by `negscale embed`"
        );
    }
    match layers.encoder() {
        Some("none") if kind == Kind::Texts => {
            bail!("--encoder none: texts cannot be judged without an encoder")
        }
        Some("none") => Ok(None),
        None | Some("auto") => {
            let wanted = judge.is_none() && !layers.has_judge_of_pictures();
            let known = default(kind).filter(|_| wanted);
            match known.filter(|known| known.find(&folders).is_some()) {
                Some(known) => Ok(Some(known.name)),
                None => match known {
                    Some(known) if kind == Kind::Texts => bail!(
                        "texts are judged through an encoder, and its weights are not here: `{}` fetches them ({} MB)",
                        known.command(),
                        known.megabytes
                    ),
                    _ => Ok(None),
                },
            }
        }
        Some(name) => {
            let known = known(name)?;
            if known.kind != kind {
                bail!("--encoder {name} reads {}, and the data are {}", known.kind.word(), kind.word());
            }
            if judge.is_some() {
                bail!(
                    "--encoder {name} judges without a training: leave out settings of one such as --host, or give --encoder none"
                );
            }
            if known.find(&folders).is_none() {
                bail!("--encoder {name}: its weights are not here; `{}` fetches them", known.command());
            }
            Ok(Some(known.name))
        }
    }
}

/// What would help an audit with these settings to judge better, in words: the weights of an encoder, where pixels are trained on for want of them.
#[must_use]
pub fn what_would_help(recipe: &Recipe, layers: &Layers, train: &Dataset) -> Option<String> {
    let Items::Images(_) = train.items() else { return None };
    let wanted = recipe.encoder.is_none()
        && recipe.pred_probs.is_none()
        && matches!(layers.encoder(), None | Some("auto"))
        && layers.choose_judge().is_none();
    let known = default(Kind::Pictures).filter(|_| wanted)?;
    Some(format!(
        "the labels are judged by a network that is trained on the pixels; an encoder finds more of the wrong ones where pictures are photographs: `{}` fetches one ({} MB), --encoder none says that pixels are meant",
        known.command(),
        known.megabytes
    ))
}

/// An encoder at work for an audit.
pub(super) struct Encoded<'a> {
    encoder: Loaded,
    folder: Option<&'a RunFolder>,
}

impl<'a> Encoded<'a> {
    /// The encoder of these settings, if there is one and the items are for one. What it makes is kept in the folder until the audit is finished.
    pub fn open(
        recipe: &Recipe,
        train: &Dataset,
        folder: Option<&'a RunFolder>,
        watch: &mut dyn Watch,
    ) -> Result<Option<Self>> {
        let (Some(name), Some(kind)) = (&recipe.encoder, kind_of(train.items())) else { return Ok(None) };
        let encoder = known(name)?.load(&recipe.data.folders())?;
        watch.note(&match kind {
            Kind::Pictures => {
                format!(
                    "pictures are judged by what {name} sees in them (--encoder none: by training on pixels)"
                )
            }
            Kind::Texts => format!("texts are judged by what {name} reads in them"),
        });
        Ok(Some(Self { encoder, folder }))
    }

    /// Rows of all items, and the numbers in one.
    pub fn rows(&self, items: &Items, watch: &mut dyn Watch, stop: &Stop) -> Result<(Vec<f32>, usize)> {
        let texts: Vec<String>;
        let source = match items {
            Items::Images(store) => Source::Pictures(store.as_ref()),
            Items::Features(store) => {
                texts =
                    (0..store.len()).map(|item| store.text(item).unwrap_or_default().to_owned()).collect();
                Source::Texts(&texts)
            }
        };
        let shards = Shards::new(&source, &self.encoder, 0);
        let all = source.len().max(1) as f64;
        let mut progress = |done: usize| watch.encoding(done as f64 / all);
        let width = self.encoder.width();
        let Some(folder) = self.folder else { return Ok((shards.in_memory(&mut progress, stop)?, width)) };
        let place = |name: &str| folder.own_file(name);
        shards.fill(&place, &mut progress, stop)?;
        let mut rows = Vec::with_capacity(source.len() * width);
        shards.each(&place, &mut |bytes| {
            rows.extend(bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            Ok(())
        })?;
        Ok((rows, width))
    }

    /// What was done, for the report.
    pub fn story(&self) -> String {
        format!(
            "Before, every {} was turned into {} numbers by an encoder that was trained on other data, {}.",
            if self.encoder.kind() == Kind::Texts { "text" } else { "picture" },
            self.encoder.width(),
            self.encoder.name()
        )
    }
}
