//! `.csv` with numbers: a table of features, with its labels in a column or in a file of their own.
//!
//! The first line is a header if any field outside the label's is not a number. The label's column is the one asked for, else
//! `label` where the header has it, else the last one; with a labels file there is none unless asked for. The numbers are
//! parsed once, line by line, into a spool of 32-bit numbers (on disk when large), so a table is never held as text.

use super::labels::Column;
use super::lines::{self, Records, column, line};
use crate::array::{Array, Element, Kind};
use crate::block::Spool;
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

/// Which columns are labels, and where the numbers go.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout<'a> {
    /// Name of the label's column.
    pub label: Option<&'a str>,
    /// Name of the true label's column; `true_label` is found without being asked for.
    pub truth: Option<&'a str>,
    /// All columns are features (the labels are elsewhere), but for those named here.
    pub unlabelled: bool,
    /// Folder for large tables under way.
    pub scratch: Option<&'a Path>,
}

/// A table in parts.
#[derive(Debug)]
pub struct Table {
    /// Numbers, one row per line.
    pub features: Array,
    /// Labels, unless they are elsewhere.
    pub given: Option<Column>,
    /// True labels, where there is a column of them.
    pub truth: Option<Column>,
}

/// Reads a `.csv` file.
pub fn open(path: &Path, layout: Layout) -> Result<Table> {
    from_reader(path, lines::open(path)?, layout)
}

/// Whether the first line of a `.csv` file has this word.
pub(super) fn has_column(path: &Path, name: &str) -> Result<bool> {
    let mut records = Records::new(path, lines::open(path)?);
    Ok(records.next()?.is_some_and(|(_, first)| first.iter().any(|field| field == name)))
}

/// Places of label and truth among the columns.
struct Places {
    header: bool,
    given: Option<usize>,
    truth: Option<usize>,
}

fn places(path: &Path, first: &csv::StringRecord, layout: Layout) -> Result<Places> {
    let find = |name: &str| first.iter().position(|field| field == name);
    let asked = |name: Option<&str>| name.map(|name| column(path, first, name)).transpose();
    let truth = asked(layout.truth)?.or_else(|| find("true_label"));
    let given = asked(layout.label)?;
    let given = if layout.unlabelled {
        given
    } else {
        let others = (0..first.len()).rev().find(|&at| Some(at) != truth);
        given.or_else(|| find("label")).or(others)
    };
    let words = |at: usize| first.get(at).is_some_and(|field| field.parse::<f64>().is_err());
    let header = layout.label.is_some()
        || layout.truth.is_some()
        || (0..first.len()).any(|at| Some(at) != given && words(at));
    Ok(Places { header, given, truth })
}

/// Reads a table. `path` is for messages.
pub fn from_reader(path: &Path, reader: impl Read, layout: Layout) -> Result<Table> {
    let mut records = Records::new(path, reader);
    let Some((_, first)) = records.next()? else {
        return Err(Error::format(path, None, "the file is empty: no line in it"));
    };
    let first = first.clone();
    let places = places(path, &first, layout)?;
    let is_label = |at: usize| Some(at) == places.given || Some(at) == places.truth;
    let columns: Vec<usize> = (0..first.len()).filter(|&at| !is_label(at)).collect();
    if columns.is_empty() {
        return Err(Error::format(path, line(1), "no column of features beside the labels"));
    }
    let (mut given, mut truth) = (Column::new(false), Column::new(false));
    let mut spool = Spool::new(layout.scratch);
    let mut row = Vec::with_capacity(4 * columns.len());
    let mut rows = 0;
    let mut take = |number: u64, record: &csv::StringRecord| -> Result<()> {
        let wrong = |at: usize, problem: String| {
            let name =
                first.get(at).filter(|_| places.header).map_or(String::new(), |name| format!(" `{name}`"));
            Error::format(path, format!("line {number}, column {}{name}", at + 1), problem)
        };
        for (place, column) in [(places.given, &mut given), (places.truth, &mut truth)] {
            let Some(at) = place else { continue };
            match record.get(at) {
                Some(word) if !word.is_empty() => column.push(word),
                _ => return Err(wrong(at, "the label is missing".into())),
            }
        }
        row.clear();
        for &at in &columns {
            let field = record.get(at).unwrap_or_default();
            let value = field.parse::<f32>().map_err(|_| {
                let shown: String = field.chars().take(40).collect();
                wrong(at, format!("`{}` is not a number: features must be", shown.escape_debug()))
            })?;
            if !value.is_finite() {
                return Err(wrong(at, format!("`{field}` is not a finite 32-bit number: fill or remove it")));
            }
            row.extend_from_slice(&value.to_le_bytes());
        }
        rows += 1;
        spool.write(&row)
    };
    if !places.header {
        take(1, &first)?;
    }
    while let Some((number, record)) = records.next()? {
        take(number, record)?;
    }
    if rows == 0 {
        return Err(Error::format(path, None, "only a header: no row in it"));
    }
    let element = Element { kind: Kind::Float, size: 4, big_endian: false };
    let features = Array::new(path, None, spool.finish()?, element, vec![rows, columns.len()], false)?;
    Ok(Table { features, given: places.given.map(|_| given), truth: places.truth.map(|_| truth) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeatureStore;
    use proptest::prelude::*;

    fn read(text: &str, layout: Layout) -> Result<Table> {
        from_reader(Path::new("t.csv"), text.as_bytes(), layout)
    }

    fn parts(text: &str, layout: Layout) -> (Vec<Vec<f32>>, Vec<String>) {
        let table = read(text, layout).unwrap();
        let rows = (0..table.features.len())
            .map(|i| {
                let mut row = vec![0.0; table.features.dim()];
                table.features.read(i, &mut row).unwrap();
                row
            })
            .collect();
        (rows, table.given.iter().flat_map(|given| given.words()).map(str::to_owned).collect())
    }

    fn error(text: &str) -> String {
        read(text, Layout::default()).unwrap_err().to_string()
    }

    #[test]
    fn headers_are_noticed_and_the_label_is_found_by_name_or_last() {
        let plain = Layout::default();
        let expected = (vec![vec![1.0, 2.0], vec![3.0, 4.5]], vec!["cat".to_string(), "dog".into()]);
        assert_eq!(parts("1,2,cat\n3,4.5,dog\n", plain), expected);
        assert_eq!(parts("a,b,kind\n1,2,cat\n3,4.5,dog\n", plain), expected);
        assert_eq!(parts("label,a,b\ncat,1,2\ndog,3,4.5\n", plain), expected);
        let named = Layout { label: Some("kind"), ..plain };
        assert_eq!(parts("a,kind,b\n1,cat,2\n3,dog,4.5\n", named), expected);
        let bare = Layout { unlabelled: true, ..plain };
        assert_eq!(parts("1,2\n3,4.5\n", bare), (expected.0, vec![]));
    }

    #[test]
    fn a_column_of_true_labels_is_set_apart() {
        let table = read("a,true_label,label\n1,x,y\n2,x,x\n", Layout::default()).unwrap();
        assert_eq!(table.truth.unwrap().words().collect::<Vec<_>>(), ["x", "x"]);
        assert_eq!(table.given.unwrap().words().collect::<Vec<_>>(), ["y", "x"]);
        assert_eq!(table.features.dim(), 1);
    }

    #[test]
    fn ragged_rows_text_nan_and_missing_labels_are_errors_with_line_and_column() {
        assert!(error("1,2,0\n3,4\n").contains("t.csv, line 2: 2 fields"));
        assert!(error("a,b,label\n1,2,0\n3,x,1\n").contains("line 3, column 2 `b`: `x` is not a number"));
        assert!(error("1,2,0\n3,NaN,1\n").contains("line 2, column 2"));
        assert!(error("1,2,0\n3,1e99,1\n").contains("finite"));
        assert!(error("1,2,0\n3,4,\n").contains("line 2, column 3: the label is missing"));
    }

    #[test]
    fn empty_tables_and_unknown_columns_are_errors() {
        assert!(error("").contains("empty"));
        assert!(error("a,b,label\n").contains("no row"));
        assert!(error("label\nx\n").contains("no column of features"));
        let named = Layout { label: Some("kind"), ..Layout::default() };
        assert!(read("a,b\n1,2\n", named).unwrap_err().to_string().contains("the header has a, b"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[0-9a-c,.\"\n-]{0,80}", unlabelled: bool) {
            let layout = Layout { unlabelled, ..Layout::default() };
            let _ = from_reader(Path::new("p"), &bytes[..], layout);
            let _ = from_reader(Path::new("p"), text.as_bytes(), layout);
        }
    }
}
