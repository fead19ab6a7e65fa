//! Labels of the user's own for data that is known by name.

use super::labels::Vocabulary;
use super::{OwnOptions, label_file};
use crate::{Annotators, Dataset, Error, Result, Splits};
use std::path::PathBuf;

/// A known set, with labels of the user's own where they are asked for.
pub fn relabel(what: &str, splits: Splits, options: &OwnOptions) -> Result<Splits> {
    let has_file = options.labels.is_some() || options.test_labels.is_some();
    let alone = [
        ("test", options.test.is_some() || options.test_rows.is_some()),
        ("class_names", options.class_names.is_some()),
        ("image_column", options.image_column.is_some()),
        ("array", options.array.is_some()),
        ("feature_columns", !options.feature_columns.is_empty()),
        ("ignore_columns", !options.ignore_columns.is_empty()),
        ("id_column", options.id_column.is_some()),
        ("label_column", options.label_column.is_some() && !has_file),
        ("truth_column", options.truth_column.is_some() && !has_file),
        ("source_column", options.source_column.is_some() && !has_file),
        ("label_columns", !options.label_columns.is_empty() && !has_file),
    ];
    if let Some((setting, _)) = alone.iter().find(|(_, is_set)| *is_set) {
        let problem =
            format!("{setting} is only for your own data, and this is a known dataset: leave it out");
        return Err(Error::Labels { dataset: what.into(), problem });
    }
    let mut notes = splits.notes;
    let mut with = |dataset: Dataset, file: &Option<PathBuf>| -> Result<Dataset> {
        let Some(file) = file else { return Ok(dataset) };
        let joined = label_file::open(file, options.asked(file, |_| Ok(false))?)?.join(dataset.items())?;
        notes.extend(joined.notes);
        let wrong = |problem: String| Error::format(file, None, problem);
        let vocabulary = Vocabulary::of_classes(dataset.classes()).map_err(wrong)?;
        let given = match &joined.side.review {
            Some(review) => review.classes(&joined.given, &vocabulary),
            None => vocabulary.apply(&joined.given),
        };
        let given = given.map_err(wrong)?;
        let truth = joined.truth.map(|truth| vocabulary.apply(&truth)).transpose().map_err(wrong)?;
        let truth = truth.or(dataset.truth().map(<[u32]>::to_vec));
        let annotators = joined.side.annotators(&options.label_columns, &vocabulary).map_err(wrong)?;
        let given = annotators.as_ref().map_or(given, Annotators::majority);
        let dataset =
            dataset.relabelled(given, truth)?.with_provenance(joined.side.sources()?, annotators)?;
        let Some(review) = &joined.side.review else { return Ok(dataset) };
        let (dataset, note) = review.apply(dataset, &vocabulary)?;
        notes.push(note);
        Ok(dataset)
    };
    let train = with(splits.train, &options.labels)?;
    let test = splits.test.map(|test| with(test, &options.test_labels)).transpose()?;
    if let (None, Some(file)) = (&test, &options.test_labels) {
        return Err(Error::format(
            file,
            None,
            format!("labels for the test split of `{what}`, which has none"),
        ));
    }
    Ok(Splits { train, test, second_test: splits.second_test, notes, left_out: splits.left_out })
}
