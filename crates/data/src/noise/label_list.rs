//! Plain lists of labels, as other programs write them: `.npy`, one label per line, one line of labels, or a CSV column.
//!
//! A label is a class number, or a class name where it is not a number. A CSV with several columns needs a heading, and the
//! column `label`, `noisy_label` or `given`.

use super::no_fit;
use crate::array::Array;
use crate::{Dataset, Error, Result};
use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

const COLUMNS: [&str; 3] = ["label", "noisy_label", "given"];

pub(super) fn read_npy(path: &Path, table: &Array, dataset: &Dataset) -> Result<Vec<u32>> {
    let (rows, columns) = table.label_table()?;
    if rows != dataset.len() || columns != 1 {
        let problem = format!("{rows} x {columns} labels for {} items: every item needs one", dataset.len());
        return Err(Error::format(path, None, problem));
    }
    table.label_column(0, dataset.classes().len())
}

/// Labels of a text, one for each item. `path` is for messages.
pub fn read_text(path: &Path, mut reader: impl BufRead, dataset: &Dataset) -> Result<Vec<u32>> {
    let items = dataset.len();
    let names: HashMap<&str, u32> =
        dataset.classes().iter().enumerate().map(|(c, name)| (name.as_str(), c as u32)).collect();
    let classes = dataset.classes().len();
    let label = |field: &str| match field.parse::<u32>() {
        Ok(number) => Some(number).filter(|&number| (number as usize) < classes),
        Err(_) => names.get(field).copied(),
    };
    let longest = dataset.classes().iter().map(String::len).max().unwrap_or(0);
    // The longest honest line is the whole list on one line.
    let line_limit = (1 << 20) + items as u64 * (longest as u64 + 16);

    let mut labels = Vec::new();
    let mut column = None;
    let mut line = String::new();
    let mut first = true;
    for number in 1.. {
        line.clear();
        let read = reader.by_ref().take(line_limit).read_line(&mut line).map_err(|e| Error::io(path, e))?;
        if read == 0 {
            break;
        }
        let broken = |problem: String| Error::format(path, format!("line {number}"), problem);
        if read as u64 == line_limit && !line.ends_with('\n') {
            return Err(broken("too long for a list of labels".into()));
        }
        let fields: Vec<&str> =
            line.trim_start_matches('\u{feff}').split(',').map(|f| f.trim().trim_matches('"')).collect();
        if fields == [""] {
            continue;
        }
        if std::mem::take(&mut first) {
            if let Some(at) = fields.iter().position(|field| COLUMNS.contains(field)) {
                column = Some(at);
                continue;
            }
            if fields.len() > 1 {
                labels = fields.iter().map_while(|field| label(field)).collect();
                if labels.len() < fields.len() {
                    let place = format!("line 1, entry {}", labels.len() + 1);
                    let problem = no_class(fields[labels.len()], classes);
                    return Err(Error::format(path, place, problem + "; a heading names a column `label`"));
                }
                continue;
            }
        }
        let field = match column {
            Some(at) => fields.get(at).ok_or_else(|| broken(format!("has no column {}", at + 1)))?,
            None if fields.len() == 1 => &fields[0],
            None => {
                return Err(broken(format!(
                    "{} columns without a heading: name the column of labels `label`",
                    fields.len()
                )));
            }
        };
        labels.push(label(field).ok_or_else(|| broken(no_class(field, classes)))?);
        if labels.len() > items {
            break;
        }
    }
    if labels.len() == items {
        return Ok(labels);
    }
    let more = if labels.len() > items { "more than " } else { "" };
    let problem =
        format!("`{}` has {more}{} labels for {items} items", path.display(), labels.len().min(items));
    Err(no_fit(dataset, problem + ": every item needs one"))
}

fn no_class(label: &str, classes: usize) -> String {
    let label: String = label.chars().take(60).collect();
    format!("`{label}` names no class: there are {classes}, numbered from 0")
}
