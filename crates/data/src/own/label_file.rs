//! A file of labels: `.npy`, `.csv`, or text with one label a line.

use super::labels::Column;
use super::lines::{self, Records, column, line, read_lines};
use crate::npy;
use crate::{Error, Result};
use std::io::{BufRead, Read};
use std::path::Path;

/// Headers by which a label's column is known.
const HEADERS: [&str; 6] = ["label", "labels", "target", "targets", "class", "y"];

/// Labels, and true labels where there is a column of them.
pub type Columns = (Column, Option<Column>);

/// Reads a labels file, by its extension.
pub fn open(path: &Path, label: Option<&str>, truth: Option<&str>) -> Result<Columns> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let (given, truth) = match extension.as_str() {
        "npy" => (npy::open(path)?.into_labels()?, None),
        "csv" => from_csv(path, lines::open(path)?, label, truth)?,
        "txt" | "" => (from_text(path, lines::open(path)?)?, None),
        _ => {
            let problem = "labels are read from .npy, .csv or .txt (one a line), or from an array inside .npz or .safetensors";
            return Err(Error::format(path, None, problem));
        }
    };
    if given.is_empty() {
        return Err(Error::format(path, None, "no label in it"));
    }
    Ok((given, truth))
}

/// One label a line. `path` is for messages.
pub fn from_text(path: &Path, reader: impl BufRead) -> Result<Column> {
    let mut column = Column::new(false);
    read_lines(path, reader, |_, word| {
        column.push(word);
        Ok(())
    })?;
    Ok(column)
}

/// Labels in a column: the one asked for, else one with a usual header, else the last. Without either, the first line is a
/// header only if it is the one line that is not a number. `path` is for messages.
pub fn from_csv(path: &Path, reader: impl Read, label: Option<&str>, truth: Option<&str>) -> Result<Columns> {
    let mut records = Records::new(path, reader);
    let Some((_, first)) = records.next()? else {
        return Err(Error::format(path, None, "the file is empty: no line in it"));
    };
    let first = first.clone();
    let find = |name: &str| first.iter().position(|field| field == name);
    let need = |name: &str| column(path, &first, name);
    let usual = first.iter().position(|field| HEADERS.contains(&field.to_ascii_lowercase().as_str()));
    let truth_at = truth.map_or(Ok(find("true_label")), |name| need(name).map(Some))?;
    let header = label.is_some() || usual.is_some() || truth_at.is_some();
    let at = match label {
        Some(name) => need(name)?,
        None => usual.unwrap_or(first.len().saturating_sub(1)),
    };
    let (mut given, mut truths) = (Column::new(false), Column::new(false));
    let mut take = |number: u64, record: &csv::StringRecord| {
        for (place, column) in [(Some(at), &mut given), (truth_at, &mut truths)] {
            let Some(place) = place else { continue };
            match record.get(place) {
                Some(word) if !word.is_empty() => column.push(word),
                _ => return Err(Error::format(path, line(number), "the label is missing")),
            }
        }
        Ok(())
    };
    let is_number =
        |record: &csv::StringRecord| record.get(at).is_some_and(|field| field.parse::<f64>().is_ok());
    let mut second = None;
    if !header {
        second = records.next()?.map(|(number, record)| (number, record.clone()));
        let lone = second.as_ref().is_some_and(|(_, record)| is_number(record)) && !is_number(&first);
        if !lone {
            take(1, &first)?;
        }
    }
    if let Some((number, record)) = second {
        take(number, &record)?;
    }
    while let Some((number, record)) = records.next()? {
        take(number, record)?;
    }
    Ok((given, truth_at.map(|_| truths)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn csv(text: &str, label: Option<&str>) -> Vec<String> {
        let (given, _) = from_csv(Path::new("l.csv"), text.as_bytes(), label, None).unwrap();
        given.words().map(str::to_owned).collect()
    }

    #[test]
    fn text_and_columns_give_the_same_labels() {
        let text = from_text(Path::new("l.txt"), "3\n1\n\n".as_bytes()).unwrap();
        assert_eq!(text.words().collect::<Vec<_>>(), ["3", "1"]);
        for table in ["3\n1\n", "label\n3\n1\n", "whatever\n3\n1\n", "id,y\n0,3\n1,1\n", "0,3\n1,1\n"] {
            assert_eq!(csv(table, None), ["3", "1"], "{table}");
        }
        assert_eq!(csv("cat\ndog\n", None), ["cat", "dog"]);
        assert_eq!(csv("a,kind,b\n0,3,9\n0,1,9\n", Some("kind")), ["3", "1"]);
    }

    #[test]
    fn missing_labels_and_columns_are_errors_with_their_line() {
        let error = |text: &str, label| {
            from_csv(Path::new("l.csv"), text.as_bytes(), label, None).unwrap_err().to_string()
        };
        assert!(error("label,b\n1,2\n,3\n", None).contains("l.csv, line 3"));
        assert!(error("a,b\n1,2\n", Some("kind")).contains("`kind`"));
        assert!(error("", None).contains("empty"));
        assert!(
            open(Path::new("labels.pkl"), None, None).unwrap_err().to_string().contains(".npy, .csv or .txt")
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[a-c,0-9\"\n]{0,60}") {
            for input in [&bytes[..], text.as_bytes()] {
                let _ = from_csv(Path::new("p"), input, None, None);
                let _ = from_text(Path::new("p"), input);
            }
        }
    }
}
