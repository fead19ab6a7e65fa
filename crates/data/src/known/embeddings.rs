//! Frozen embeddings of CIFAR-10 and CIFAR-100: features of an image encoder, one vector per picture.
//!
//! `<set>_efflite0_pca128.npy` holds 60,000 rows of 128 half-precision numbers, mapped: rows 0 to 49,999 for training, the
//! others for testing, in official order, so that the tables of [`super::cifar_n`] fit. `<set>_labels.npy` holds a byte per
//! row.

use super::cifar::{CIFAR10, CIFAR100_FINE};
use super::owned;
use crate::array::Array;
use crate::npy;
use crate::{Dataset, Error, FeatureStore, Items, Result, Splits};
use std::path::Path;
use std::sync::Arc;

/// Files of CIFAR-10's embeddings.
pub(super) const FILES10: [&str; 2] = ["cifar10_efflite0_pca128.npy", "cifar10_labels.npy"];
/// Files of CIFAR-100's embeddings.
pub(super) const FILES100: [&str; 2] = ["cifar100_efflite0_pca128.npy", "cifar100_labels.npy"];

/// Pictures for training and for testing.
const PARTS: (usize, usize) = (50_000, 10_000);

/// Embeddings of CIFAR-10.
pub fn cifar10(folder: &Path) -> Result<Splits> {
    read("cifar10-embeddings", folder, FILES10, &CIFAR10, PARTS)
}

/// Embeddings of CIFAR-100, fine labels.
pub fn cifar100(folder: &Path) -> Result<Splits> {
    read("cifar100-embeddings", folder, FILES100, &CIFAR100_FINE, PARTS)
}

/// Some rows of an array.
struct ArrayRows {
    table: Arc<Array>,
    start: usize,
    len: usize,
}

impl FeatureStore for ArrayRows {
    fn len(&self) -> usize {
        self.len
    }
    fn dim(&self) -> usize {
        self.table.dim()
    }
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        if index >= self.len || out.len() != self.dim() {
            let (len, dim) = (self.len, self.dim());
            let problem =
                format!("item {index} into {} places, but {len} items of {dim} are there", out.len());
            return Err(Error::format(self.table.path(), None, problem));
        }
        self.table.read(self.start + index, out)
    }
}

fn read(
    name: &str,
    folder: &Path,
    files: [&str; 2],
    classes: &[&str],
    parts: (usize, usize),
) -> Result<Splits> {
    let total = parts.0 + parts.1;
    let [features, labels] = files.map(|file| folder.join(file));
    let table = npy::open(&features)?.into_features()?;
    let given = npy::open(&labels)?;
    for table in [&table, &given] {
        if table.len() != total {
            let problem = format!(
                "{} rows, but {total} are needed: {} to train, {} to test",
                table.len(),
                parts.0,
                parts.1
            );
            return Err(Error::format(table.path(), None, problem));
        }
    }
    // A value that is not finite is an error, found now rather than in the middle of training.
    let mut row = vec![0.0; table.dim()];
    (0..total).try_for_each(|index| table.read(index, &mut row))?;
    let given = given.label_column(0, classes.len())?;
    let table = Arc::new(table);
    let part = |name: String, start, len| {
        let items = Items::Features(Arc::new(ArrayRows { table: table.clone(), start, len }));
        Dataset::new(name, owned(classes), items, given[start..start + len].to_vec(), None)
    };
    Ok(Splits::new(part(name.to_owned(), 0, parts.0)?, Some(part(format!("{name}-test"), parts.0, parts.1)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::real;
    use crate::npy::tests::npy;
    use half::f16;

    fn write(folder: &Path, values: &[f32], labels: &[u8]) {
        let halves: Vec<u8> = values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect();
        std::fs::write(
            folder.join("x.npy"),
            npy("'<f2'", "False", &format!("({}, 2)", values.len() / 2), &halves),
        )
        .unwrap();
        std::fs::write(folder.join("y.npy"), npy("'|u1'", "False", &format!("({},)", labels.len()), labels))
            .unwrap();
    }

    fn small(folder: &Path) -> Result<Splits> {
        read("small", folder, ["x.npy", "y.npy"], &["a", "b"], (2, 1))
    }

    #[test]
    fn rows_are_split_into_training_and_testing() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[1.0, -2.0, 0.5, 4.0, 65504.0, 6e-8], &[0, 1, 1]);
        let splits = small(folder.path()).unwrap();
        let test = splits.test.unwrap();
        assert_eq!((splits.train.given(), test.given()), ([0, 1].as_slice(), [1].as_slice()));
        let Items::Features(store) = test.items() else { panic!("features") };
        let mut row = [0.0; 2];
        store.read(0, &mut row).unwrap();
        assert_eq!(row, [65504.0, f32::powi(2.0, -24)]);
        assert!(store.read(1, &mut row).is_err() && store.read(0, &mut [0.0]).is_err());
    }

    #[test]
    fn wrong_rows_labels_and_values_are_errors_that_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for (values, labels, expected) in [
            (vec![0.0; 4], vec![0, 1, 1], "x.npy"),
            (vec![0.0; 6], vec![0, 1], "y.npy"),
            (vec![0.0; 6], vec![0, 1, 2], "y.npy, row 2"),
            (vec![0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0], vec![0, 1, 1], "x.npy, row 1"),
            (vec![0.0, 0.0, 0.0, 0.0, f32::NEG_INFINITY, 0.0], vec![0, 1, 1], "x.npy, row 2"),
        ] {
            write(folder.path(), &values, &labels);
            let message = small(folder.path()).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn real_embeddings_have_every_class_equally_often() {
        let Some(file) = real("embeddings/cifar10_labels.npy") else { return };
        let folder = file.parent().unwrap();
        for (splits, classes) in [(cifar10(folder).unwrap(), 10), (cifar100(folder).unwrap(), 100)] {
            for (part, total) in [(&splits.train, 50_000), (splits.test.as_ref().unwrap(), 10_000)] {
                let mut counts = vec![0; classes];
                part.given().iter().for_each(|&label| counts[label as usize] += 1);
                assert_eq!(counts, vec![total / classes; classes]);
            }
        }
    }
}
