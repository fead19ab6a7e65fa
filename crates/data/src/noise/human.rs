//! Human label noise: CIFAR-10N and CIFAR-100N (Wei et al., ICLR 2022). Nothing is drawn.
//!
//! The tables are `cifar10n_labels.npy` (columns: clean, aggregate, worse, random 1 to 3) and `cifar100n_labels.npy` (clean
//! fine, noisy fine, clean coarse, noisy coarse), row i for training image i in the official order. They hold clean labels
//! too, so a data set in another order is found out instead of being given noise that is not human at all.

use super::spec::HumanLabels;
use super::{NoiseContext, no_fit};
use crate::npy;
use crate::{Dataset, Result};
use std::path::PathBuf;

/// Where labels stand, and what is known of them.
struct Source {
    file: &'static str,
    columns: usize,
    classes: usize,
    clean: usize,
    noisy: usize,
    /// Share of wrong labels according to its authors; for the superclasses, which they do not state, as counted.
    published: f64,
    convention: &'static str,
}

impl HumanLabels {
    fn source(self) -> Source {
        let ten = |noisy, published, convention| Source {
            file: "cifar10n_labels.npy",
            columns: 6,
            classes: 10,
            clean: 0,
            noisy,
            published,
            convention,
        };
        let hundred = |classes, clean, published, convention| Source {
            file: "cifar100n_labels.npy",
            columns: 4,
            classes,
            clean,
            noisy: clean + 1,
            published,
            convention,
        };
        match self {
            Self::Aggregate => ten(1, 0.0903, "human labels, CIFAR-10N aggregate: majority of three people"),
            Self::Worse => {
                ten(2, 0.4021, "human labels, CIFAR-10N worse: a wrong one of three where there is one")
            }
            Self::Random1 => ten(3, 0.1723, "human labels, CIFAR-10N random 1: first of three people"),
            Self::Random2 => ten(4, 0.1812, "human labels, CIFAR-10N random 2: second of three people"),
            Self::Random3 => ten(5, 0.1764, "human labels, CIFAR-10N random 3: third of three people"),
            Self::Fine => hundred(100, 0, 0.4020, "human labels, CIFAR-100N: one person, 100 classes"),
            Self::Coarse => hundred(20, 2, 0.2640, "human labels, CIFAR-100N: one person, 20 superclasses"),
        }
    }

    /// Share of wrong labels as published.
    pub fn published_rate(self) -> f64 {
        self.source().published
    }

    /// In a sentence.
    pub fn convention(self) -> &'static str {
        self.source().convention
    }
}

pub(super) fn read_labels(
    which: HumanLabels,
    dataset: &Dataset,
    clean: &[u32],
    context: &NoiseContext,
) -> Result<Vec<u32>> {
    let source = which.source();
    let classes = dataset.classes().len();
    if classes != source.classes {
        let other = match classes {
            10 => "use aggre, random1, random2, random3 or worse",
            100 => "use `cifarn:fine`",
            20 => "use `cifarn:coarse`",
            _ => "CIFAR-N has labels for the training images of CIFAR-10 and CIFAR-100 only",
        };
        let problem =
            format!("these labels are for {} classes, and there are {classes}: {other}", source.classes);
        return Err(no_fit(dataset, problem));
    }
    let table = npy::open(&find(source.file, dataset, context)?)?;
    let (rows, columns) = table.label_table()?;
    if (rows, columns) != (clean.len(), source.columns) {
        let problem = format!(
            "`{}` has {} rows of {} labels, where {} items need as many rows of {}: lay these labels over the whole \
             training set, before taking a part of it",
            source.file,
            rows,
            columns,
            clean.len(),
            source.columns
        );
        return Err(no_fit(dataset, problem));
    }
    let table_clean = table.label_column(source.clean, classes)?;
    let noisy = table.label_column(source.noisy, classes)?;
    if let Some(at) = (0..clean.len()).find(|&i| table_clean[i] != clean[i]) {
        let apart = (0..clean.len()).filter(|&i| table_clean[i] != clean[i]).count();
        let problem = format!(
            "item {at} has true class {}, but `{}` has {} in that row ({apart} of {} rows differ): the items are not in \
             the official order of the training images, or their labels are already noisy; load the official files",
            clean[at],
            source.file,
            table_clean[at],
            clean.len()
        );
        return Err(no_fit(dataset, problem));
    }
    Ok(noisy)
}

/// The first folder that has the table, by itself or in a folder `cifar-n`.
fn find(file: &str, dataset: &Dataset, context: &NoiseContext) -> Result<PathBuf> {
    let places =
        context.folders.iter().flat_map(|folder| [folder.join("cifar-n").join(file), folder.join(file)]);
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let looked = context.folders.iter().map(|folder| folder.display().to_string());
        let looked = looked.collect::<Vec<_>>().join(", ");
        let problem = format!(
            "no table `{file}` of human labels in [{looked}]: put it into a folder `cifar-n` there, or name its folder \
             in NEGSCALE_DATA"
        );
        no_fit(dataset, problem)
    })
}
