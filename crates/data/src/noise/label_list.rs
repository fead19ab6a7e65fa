//! Plain lists of labels, as other programs write them: `.npy`, one label per line, one line of labels, or a CSV column.
//!
//! A label is a class name if every one of them is; else a class number, or a name where it is not a number. A CSV with several columns
//! needs a heading, and the column `label`, `noisy_label` or `given`; its rows may say whose they are ([`crate::own::join`]).

use super::no_fit;
use crate::array::Array;
use crate::own::header::{self, INDEX, PATHS};
use crate::own::label_file::LabelFile;
use crate::own::labels::{Column, Vocabulary};
use crate::own::lines::{Records, line};
use crate::own::words::Words;
use crate::{Dataset, Error, Result};
use negscale_records::cells::unguard;
use std::io::Read;
use std::path::Path;

const COLUMNS: [&str; 3] = ["label", "noisy_label", "given"];

pub(super) fn read_npy(path: &Path, table: &Array, dataset: &Dataset) -> Result<Vec<u32>> {
    let (rows, columns) = table.label_table()?;
    if rows != dataset.len() || columns != 1 {
        let problem = format!("{rows} x {columns} labels for {} items: every item needs one", dataset.len());
        return Err(Error::format(path, None, problem));
    }
    let words = table.clone().into_labels()?;
    // The numbers of classes that are called by numbers are their names.
    if let Ok(vocabulary) = Vocabulary::of_classes(dataset.classes())
        && let (true, Ok(labels)) = (vocabulary.is_numbers(), vocabulary.apply(&words))
    {
        return Ok(labels);
    }
    table.label_column(0, dataset.classes().len())
}

/// Labels of a text, one for each item. `path` is for messages.
pub fn read_text(path: &Path, reader: impl Read, dataset: &Dataset) -> Result<Vec<u32>> {
    let items = dataset.len();
    let mut file = LabelFile { path: path.into(), ..LabelFile::default() };
    let mut records = Records::new(path, reader)?;
    let mut first = records.next()?.map(|(number, record)| (number, record.clone()));
    let mut at = 0;
    if let Some((_, fields)) = &first
        && let Some(place) = header::find(fields.iter(), &COLUMNS)
    {
        at = place;
        let index = header::find(fields.iter(), &[INDEX]);
        let paths = header::find(fields.iter(), &PATHS);
        (file.index, file.paths) = (index.map(|_| Words::default()), paths.map(|_| Words::default()));
        let places = (index, paths);
        first = None;
        while let Some((number, record)) = records.next()? {
            push(&mut file, items, number, &record[at], dataset)?;
            for (place, column) in [(places.0, &mut file.index), (places.1, &mut file.paths)] {
                if let (Some(place), Some(column)) = (place, column) {
                    column.push(unguard(&record[place]));
                }
            }
        }
    }
    if let Some((number, fields)) = first {
        let mut next = records.next()?.map(|(number, record)| (number, record.clone()));
        if fields.len() > 1 && next.is_some() {
            let problem =
                format!("{} columns without a header: name the column of labels `label`", fields.len());
            return Err(Error::format(path, line(number), problem));
        }
        for field in &fields {
            push(&mut file, items, number, field, dataset)?;
        }
        while let Some((number, record)) = next {
            push(&mut file, items, number, &record[at], dataset)?;
            next = records.next()?.map(|(number, record)| (number, record.clone()));
        }
    }
    // Before they are brought into the order of items: errors name lines.
    let classes = classes(path, &file, dataset)?;
    if file.given.len() < items {
        let problem = format!("`{}` has {} labels for {items} items", path.display(), file.given.len());
        return Err(no_fit(dataset, problem + ": every item needs one"));
    }
    let mut numbers = Column::new(true);
    classes.iter().for_each(|class| numbers.push(&class.to_string()));
    let joined = LabelFile { given: numbers, ..file }.join(dataset.items())?;
    joined
        .given
        .words()
        .map(|word| word.parse().map_err(|_| no_fit(dataset, format!("`{word}` is not a class"))))
        .collect()
}

fn push(file: &mut LabelFile, items: usize, number: u64, word: &str, dataset: &Dataset) -> Result<()> {
    if file.given.len() == items {
        let problem = format!("`{}` has more than {items} labels for {items} items", file.path.display());
        return Err(no_fit(dataset, problem + ": every item needs one"));
    }
    file.given.push(unguard(word));
    file.lines.push(number);
    Ok(())
}

/// Class of every label, in the order of the list.
fn classes(path: &Path, file: &LabelFile, dataset: &Dataset) -> Result<Vec<u32>> {
    let names = dataset.classes();
    let by_name = |word: &str| names.iter().zip(0..).find(|(name, _)| *name == word).map(|(_, at)| at);
    let is_named = file.given.distinct().all(|word| by_name(word).is_some());
    let class = |word: &str| match word.parse::<u32>() {
        Ok(number) if !is_named => Some(number).filter(|&number| (number as usize) < names.len()),
        _ => by_name(word),
    };
    let known: std::collections::HashMap<&str, Option<u32>> =
        file.given.distinct().map(|word| (word, class(word))).collect();
    let label = |(word, &number): (&str, &u64)| {
        known.get(word).copied().flatten().ok_or_else(|| {
            let word: String = word.chars().take(60).collect();
            let problem = format!("`{word}` is not a class: there are {}, numbered from 0", names.len());
            Error::format(path, line(number), problem)
        })
    };
    file.given.words().zip(&file.lines).map(label).collect()
}
