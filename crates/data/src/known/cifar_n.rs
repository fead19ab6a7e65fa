//! CIFAR-10N and CIFAR-100N (Wei et al., ICLR 2022): labels that people gave to the training pictures of CIFAR.
//!
//! `cifar10n_labels.npy` is a table of bytes with the columns clean, aggre, worse, random1, random2, random3;
//! `cifar100n_labels.npy` has clean fine, noisy fine, clean coarse, noisy coarse. Row i belongs to training picture i in
//! official order. The clean column is compared with the labels of the dataset, row by row, so that a set in another order
//! is noticed.
//!
//! | table | wrong labels |
//! |---|---|
//! | aggre | 9.01 % |
//! | worse | 40.21 % |
//! | random1, random2, random3 | 17.23 %, 18.12 %, 17.64 % |
//! | fine (CIFAR-100) | 40.20 % |
//! | coarse (CIFAR-100) | 26.40 % |

use super::{Place, find};
use crate::npy;
use crate::{Dataset, Error, Result};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Which labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HumanLabels {
    /// CIFAR-10N: majority of three.
    Aggregate,
    /// CIFAR-10N: a wrong one of the three, where there is one.
    Worse,
    /// CIFAR-10N: the first person's.
    Random1,
    /// CIFAR-10N: the second person's.
    Random2,
    /// CIFAR-10N: the third person's.
    Random3,
    /// CIFAR-100N, fine.
    Fine,
    /// CIFAR-100N, coarse.
    Coarse,
}

use HumanLabels::*;

/// Every name in texts; the first of each is the one that is printed.
pub(crate) const NAMES: [(&str, HumanLabels); 12] = [
    ("aggre", Aggregate),
    ("worse", Worse),
    ("random1", Random1),
    ("random2", Random2),
    ("random3", Random3),
    ("fine", Fine),
    ("coarse", Coarse),
    ("aggregate", Aggregate),
    ("worst", Worse),
    ("noisy", Fine),
    ("noisy-fine", Fine),
    ("noisy-coarse", Coarse),
];

/// What a table says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanColumns {
    /// Labels given by people.
    pub noisy: Vec<u32>,
    /// The labels of CIFAR.
    pub clean: Vec<u32>,
}

impl HumanLabels {
    /// All of them.
    pub const ALL: [Self; 7] = [Aggregate, Worse, Random1, Random2, Random3, Fine, Coarse];

    /// Its name in texts.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Share of wrong labels according to the authors; for the superclasses, which they do not state, as counted.
    pub fn published_rate(self) -> f64 {
        match self {
            Aggregate => 0.0903,
            Worse => 0.4021,
            Random1 => 0.1723,
            Random2 => 0.1812,
            Random3 => 0.1764,
            Fine => 0.4020,
            Coarse => 0.2640,
        }
    }

    /// In a sentence.
    pub fn convention(self) -> &'static str {
        match self {
            Aggregate => "human labels, CIFAR-10N aggregate: majority of three people",
            Worse => "human labels, CIFAR-10N worse: a wrong one of three where there is one",
            Random1 => "human labels, CIFAR-10N random 1: first of three people",
            Random2 => "human labels, CIFAR-10N random 2: second of three people",
            Random3 => "human labels, CIFAR-10N random 3: third of three people",
            Fine => "human labels, CIFAR-100N: one person, 100 classes",
            Coarse => "human labels, CIFAR-100N: one person, 20 superclasses",
        }
    }

    /// The file that holds them.
    pub fn file(self) -> &'static str {
        if matches!(self, Fine | Coarse) { "cifar100n_labels.npy" } else { "cifar10n_labels.npy" }
    }

    /// Number of classes.
    pub fn classes(self) -> usize {
        match self {
            Fine => 100,
            Coarse => 20,
            _ => 10,
        }
    }

    /// Columns of the file, then those of the clean and of the noisy labels.
    fn columns(self) -> (usize, usize, usize) {
        match self {
            Fine => (4, 0, 1),
            Coarse => (4, 2, 3),
            _ => (6, 0, 1 + self as usize),
        }
    }

    /// Looks for the file in the folders, directly or below `cifar-n`.
    pub fn find(self, folders: &[PathBuf]) -> Result<PathBuf> {
        let file = self.file();
        let place = Place { folders: &["cifar-n", "."], files: std::slice::from_ref(&file) };
        find(file.trim_end_matches("_labels.npy"), &[place], folders).map(|(_, folder)| folder.join(file))
    }

    /// Reads both columns.
    pub fn read(self, path: &Path) -> Result<HumanColumns> {
        let table = npy::open(path)?;
        let (columns, clean, noisy) = self.columns();
        let (rows, found) = table.label_table()?;
        if rows == 0 || found != columns {
            let problem = format!("{rows} rows of {found} labels, but {} has {columns}", self.file());
            return Err(Error::format(path, None, problem));
        }
        let column = |column| table.label_column(column, self.classes());
        Ok(HumanColumns { noisy: column(noisy)?, clean: column(clean)? })
    }

    /// These labels for a training set, pictures or embeddings, whose true labels are those of CIFAR row by row.
    pub fn labels_of(self, train: &Dataset, path: &Path) -> Result<Vec<u32>> {
        let wrong = |problem| Err(Error::Labels { dataset: train.name().to_owned(), problem });
        let classes = train.classes().len();
        if classes != self.classes() {
            let other = match classes {
                10 => "use aggre, random1, random2, random3 or worse",
                100 => "use `cifarn:fine`",
                20 => "use `cifarn:coarse`",
                _ => "CIFAR-N has labels for the training images of CIFAR-10 and CIFAR-100 only",
            };
            let needs = self.classes();
            return wrong(format!("these labels are for {needs} classes, but there are {classes}: {other}"));
        }
        let HumanColumns { noisy, clean } = self.read(path)?;
        let truth = train.truth().unwrap_or(train.given());
        let (rows, items) = (clean.len(), truth.len());
        if rows != items {
            return wrong(format!(
                "`{}` has {rows} rows of {} labels, where {items} items need as many rows: lay these labels over the \
                 whole training set, before taking a part of it",
                path.display(),
                self.columns().0
            ));
        }
        let mut apart = (0..items).filter(|&at| clean[at] != truth[at]);
        if let Some(at) = apart.next() {
            return wrong(format!(
                "item {at} has true class {}, but row {at} of `{}` says that it is {} ({} of {rows} rows differ): the \
                 items are not in the official order of the training images, or their labels are already noisy; load \
                 the official files",
                truth[at],
                path.display(),
                clean[at],
                1 + apart.count()
            ));
        }
        Ok(noisy)
    }

    /// The training set with these labels as given and CIFAR's as the truth.
    pub fn lay_over(self, train: &Dataset, path: &Path) -> Result<Dataset> {
        train.with_noise(self.labels_of(train, path)?)
    }
}

impl FromStr for HumanLabels {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, labels)| *labels).ok_or_else(|| {
            let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            let requirement = format!("one of {}", names.join(", "));
            Error::Setting { what: "human labels", value: text.to_owned(), requirement }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::{cifar, embeddings, owned, real};
    use crate::npy::tests::npy;
    use crate::{FeatureStore, Items};
    use std::sync::Arc;

    struct Nothing(usize);
    impl FeatureStore for Nothing {
        fn len(&self) -> usize {
            self.0
        }
        fn dim(&self) -> usize {
            1
        }
        fn read(&self, _: usize, out: &mut [f32]) -> Result<()> {
            out.fill(0.0);
            Ok(())
        }
    }

    fn ten(labels: Vec<u32>) -> Dataset {
        let items = Items::Features(Arc::new(Nothing(labels.len())));
        Dataset::new("ten", owned(&cifar::CIFAR10), items, labels, None).unwrap()
    }

    #[test]
    fn every_name_is_read_back() {
        assert_eq!(
            HumanLabels::ALL.map(HumanLabels::name),
            ["aggre", "worse", "random1", "random2", "random3", "fine", "coarse"]
        );
        for labels in HumanLabels::ALL {
            assert_eq!(labels.name().parse::<HumanLabels>().unwrap(), labels);
        }
        assert_eq!("worst".parse::<HumanLabels>().unwrap(), Worse);
        assert!("best".parse::<HumanLabels>().unwrap_err().to_string().contains("aggre, worse"));
    }

    #[test]
    fn another_order_is_noticed_at_the_first_row_that_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cifar10n_labels.npy");
        std::fs::write(&path, npy("'|u1'", "False", "(2, 6)", &[6, 6, 4, 6, 4, 6, 9, 8, 7, 9, 9, 1]))
            .unwrap();
        let noisy = Worse.lay_over(&ten(vec![6, 9]), &path).unwrap();
        assert_eq!((noisy.given(), noisy.truth().unwrap()), ([4, 7].as_slice(), [6, 9].as_slice()));
        assert_eq!(Random3.lay_over(&ten(vec![6, 9]), &path).unwrap().given(), [6, 1]);
        // Laid over once more, it is compared with the truth, not with the labels people gave.
        assert_eq!(Aggregate.lay_over(&noisy, &path).unwrap().given(), [6, 8]);
        let message = Worse.lay_over(&ten(vec![6, 3]), &path).unwrap_err().to_string();
        assert!(message.contains("item 1 has true class 3") && message.contains("it is 9"), "{message}");
        assert!(Worse.lay_over(&ten(vec![6, 9, 9]), &path).unwrap_err().to_string().contains("2 rows"));
        assert!(Fine.lay_over(&ten(vec![6, 9]), &path).is_err());
        assert!(Fine.read(&path).unwrap_err().to_string().contains("2 rows of 6 labels"));

        std::fs::write(&path, npy("'|u1'", "False", "(2, 6)", &[6, 6, 4, 6, 4, 6, 9, 10, 7, 9, 9, 1]))
            .unwrap();
        let message = Aggregate.read(&path).unwrap_err().to_string();
        assert!(message.contains("cifar10n_labels.npy, row 1") && message.contains("label 10"), "{message}");

        std::fs::write(&path, npy("'|u1'", "False", "(0, 6)", &[])).unwrap();
        assert!(Aggregate.read(&path).unwrap_err().to_string().contains("0 rows"));
    }

    fn rate(noisy: &[u32], clean: &[u32]) -> f64 {
        let wrong = noisy.iter().zip(clean).filter(|(a, b)| a != b).count();
        (1e4 * wrong as f64 / noisy.len() as f64).round() / 100.0
    }

    #[test]
    fn rates_are_those_published() {
        let Some(path) = real("cifar-n/cifar10n_labels.npy") else { return };
        let folders = [path.parent().unwrap().to_owned()];
        let rates = HumanLabels::ALL.map(|labels| {
            let HumanColumns { noisy, clean } = labels.read(&labels.find(&folders).unwrap()).unwrap();
            rate(&noisy, &clean)
        });
        assert_eq!(rates, [9.01, 40.21, 17.23, 18.12, 17.64, 40.20, 26.40]);
    }

    #[test]
    fn tables_fit_the_embeddings_and_the_packed_pictures_row_by_row() {
        let Some(path) = real("cifar-n/cifar10n_labels.npy") else { return };
        let tables = path.parent().unwrap();
        if let Some(file) = real("embeddings/cifar10_labels.npy") {
            let folder = file.parent().unwrap();
            let ten = embeddings::cifar10(folder).unwrap();
            let worse = Worse.lay_over(&ten.train, &path).unwrap();
            assert_eq!(rate(worse.given(), worse.truth().unwrap()), 40.21);
            let hundred = embeddings::cifar100(folder).unwrap();
            Fine.lay_over(&hundred.train, &tables.join(Fine.file())).unwrap();
            let reversed: Vec<usize> = (0..50_000).rev().collect();
            assert!(Worse.lay_over(&ten.train.subset(&reversed).unwrap(), &path).is_err());
        }
        if let Some(file) = real("cifar100/train.webpstrips") {
            let coarse = cifar::cifar100_packed(file.parent().unwrap(), cifar::Labels::Coarse).unwrap();
            let noisy = Coarse.lay_over(&coarse.train, &tables.join(Coarse.file())).unwrap();
            assert_eq!(rate(noisy.given(), noisy.truth().unwrap()), 26.40);
        }
    }
}
