//! `.csv` with numbers: a table of features, with its labels in a column or in a file of their own.
//!
//! Which column is what, `columns.rs` says. The first line is a header if a column is asked for by name, if a usual name stands in
//! it, or if a field outside the label's is not a number; columns without a header go by their numbers, from 1. The
//! numbers are parsed once, line by line, into a spool of 32-bit numbers (on disk when large), so a table is never held as text.

use super::columns::{self, Counting, NO_ID, Roles};
use super::header::{self, ASK, Header, is_number};
use super::labels::Column;
use super::lines::{self, Records, line};
use super::side::SideColumns;
use crate::array::{Array, Element, Kind};
use crate::block::Spool;
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

pub use super::columns::Layout;

/// How a table is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// Which column is what.
    pub layout: Layout<'a>,
    /// Whether there is a header.
    pub header: Header,
    /// Folder for large tables under way.
    pub scratch: Option<&'a Path>,
}

/// A table in parts.
#[derive(Debug)]
pub struct Table {
    /// Numbers, one row per line.
    pub features: Array,
    /// Texts, where a column of them was asked for.
    pub texts: Option<Vec<String>>,
    /// Labels, unless they are elsewhere.
    pub given: Option<Column>,
    /// True labels, where there is a column of them.
    pub truth: Option<Column>,
    /// Sources and labels by several annotators, where they were asked for.
    pub side: SideColumns,
    /// Ids, where there is a column of them.
    pub ids: Option<Vec<String>>,
    /// Names of the features, where there is a header.
    pub names: Vec<String>,
    /// What a person should know of how it was read.
    pub notes: Vec<String>,
}

/// Reads a `.csv` file.
pub fn open(path: &Path, reading: Reading) -> Result<Table> {
    from_reader(path, lines::open(path)?, reading)
}

/// Whether the first line of a `.csv` file has this word.
pub fn has_column(path: &Path, name: &str) -> Result<bool> {
    let mut records = Records::new(path, lines::open(path)?)?;
    Ok(records.next()?.is_some_and(|(_, first)| first.iter().any(|field| field == name)))
}

/// What is known once the first line is seen.
struct Plan {
    has_header: bool,
    /// Names of columns, for messages.
    names: Vec<String>,
    roles: Roles,
    /// A first line that is a header because of this word only: no item may be labelled so.
    doubtful: Option<String>,
}

fn plan(path: &Path, first: &csv::StringRecord, reading: Reading) -> Result<Plan> {
    let layout = reading.layout;
    let wrong = |problem: String| Error::format(path, line(1), problem);
    let fields: Vec<&str> = first.iter().collect();
    let numbers: Vec<String> = (1..=fields.len()).map(|number| number.to_string()).collect();
    let by_number: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let last = fields.len().saturating_sub(1);
    let has_words =
        || fields.iter().enumerate().any(|(at, f)| (layout.unlabelled || at != last) && !is_number(f));
    let counts =
        || fields.len() > 3 && fields.iter().enumerate().take(last).all(|(at, f)| *f == at.to_string());
    let is_usual = header::has_usual_name(fields.iter().copied());
    let has_header = match reading.header {
        Header::Yes => true,
        // Said of the file of labels beside it, perhaps: numbers cannot be words.
        Header::No => layout.unlabelled && has_words(),
        Header::Auto if layout.is_named() || is_usual || has_words() => true,
        Header::Auto if counts() => {
            return Err(wrong(format!(
                "does the line 0, 1, 2, ... name the columns, or is it an item? {ASK}"
            )));
        }
        Header::Auto => false,
    };
    let names = if has_header { &fields } else { &by_number };
    let roles = layout.assign(names).map_err(wrong)?;
    let only_usual = is_usual && reading.header == Header::Auto && !layout.is_named() && !has_words();
    let doubtful = roles.given.filter(|_| only_usual).map(|at| fields[at].to_owned());
    Ok(Plan { has_header, names: names.iter().map(|&name| name.to_owned()).collect(), roles, doubtful })
}

/// Reads a table. `path` is for messages.
pub fn from_reader(path: &Path, reader: impl Read, reading: Reading) -> Result<Table> {
    let mut records = Records::new(path, reader)?;
    let Some((_, first)) = records.next()? else {
        return Err(Error::format(path, None, "the file is empty"));
    };
    let first = first.clone();
    let Plan { has_header, names, roles, doubtful } = plan(path, &first, reading)?;
    let (mut given, mut truth, mut ids) = (Column::new(false), Column::new(false), Vec::new());
    let mut texts = Vec::new();
    let mut side = SideColumns::new(roles.source.is_some(), roles.annotators.len());
    let mut spool = Spool::new(reading.scratch);
    let (mut row, mut bytes) = (Vec::with_capacity(roles.features.len()), Vec::new());
    let (mut rows, mut counting) = (0, Counting::new(roles.features.len()));
    let name = |at: usize| match has_header {
        true => format!("{} `{}`", at + 1, names[at].escape_debug()),
        false => (at + 1).to_string(),
    };
    let mut take = |number: u64, record: &csv::StringRecord| -> Result<()> {
        let wrong = |at: usize, problem: String| {
            Error::format(path, format!("line {number}, column {}", name(at)), problem)
        };
        for (place, column) in [(roles.given, &mut given), (roles.truth, &mut truth)] {
            let Some(at) = place else { continue };
            match record.get(at) {
                Some(word) if !word.is_empty() => column.push(word),
                _ => return Err(wrong(at, "the label is missing".into())),
            }
        }
        let source = roles.source.and_then(|at| record.get(at));
        let labels = roles.annotators.iter().map(|&at| &record[at]);
        let first = side.push(source, labels, reading.layout.annotators);
        if let Some(label) = first.map_err(|problem| Error::format(path, line(number), problem))? {
            given.push(label);
        }
        ids.extend(roles.id.and_then(|at| record.get(at)).map(str::to_owned));
        texts.extend(roles.text.and_then(|at| record.get(at)).map(str::to_owned));
        row.clear();
        for &at in &roles.features {
            let field = &record[at];
            let value = field.parse::<f32>().map_err(|_| {
                let shown: String = field.chars().take(40).collect();
                let hint = match field.replacen(',', ".", 1).parse::<f32>() {
                    Ok(_) => "write it with a decimal point",
                    Err(_) => "--ignore-columns leaves a column out",
                };
                wrong(at, format!("`{}` is not a number: features must be; {hint}", shown.escape_debug()))
            })?;
            if !value.is_finite() {
                return Err(wrong(at, format!("`{field}` is not a finite 32-bit number: fill or remove it")));
            }
            row.push(value);
        }
        counting.add(&row);
        bytes.clear();
        bytes.extend(row.iter().flat_map(|value: &f32| value.to_le_bytes()));
        rows += 1;
        spool.write(&bytes)
    };
    if !has_header {
        take(1, &first)?;
    }
    while let Some((number, record)) = records.next()? {
        take(number, record)?;
    }
    if rows == 0 {
        return Err(Error::format(path, None, "it has a header but no rows"));
    }
    if let Some(word) = doubtful.filter(|word| given.has(word)) {
        let problem =
            format!("is `{}` a header or the label of an item, as further down? {ASK}", word.escape_debug());
        return Err(Error::format(path, line(1), problem));
    }
    let layout = reading.layout;
    let is_asked = layout.id == Some(NO_ID) || !layout.features.is_empty();
    if let Some(at) = counting.found().filter(|_| !is_asked) {
        return Err(Error::format(path, None, columns::refuse_counting(&name(roles.features[at]))));
    }
    let notes =
        roles.guessed.iter().map(|&at| format!("{}: {}", path.display(), columns::note_of_id(&names[at])));
    let element = Element { kind: Kind::Float, size: 4, big_endian: false };
    let features = Array::new(path, None, spool.finish()?, element, vec![rows, roles.features.len()], false)?;
    Ok(Table {
        features,
        texts: roles.text.map(|_| texts),
        given: (roles.given.is_some() || !roles.annotators.is_empty()).then_some(given),
        side,
        truth: roles.truth.map(|_| truth),
        ids: roles.id.map(|_| ids),
        names: if has_header {
            roles.features.iter().map(|&at| names[at].clone()).collect()
        } else {
            Vec::new()
        },
        notes: notes.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeatureStore;
    use proptest::prelude::*;

    fn read(text: &str, layout: Layout) -> Result<Table> {
        from_reader(Path::new("t.csv"), text.as_bytes(), Reading { layout, ..Reading::default() })
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

    #[test]
    fn semicolons_and_tabs_separate_as_commas_do() {
        let expected = (vec![vec![1.0, 2.0], vec![3.0, 4.5]], vec!["cat, small".to_string(), "dog".into()]);
        for text in ["a;b;label\n1;2;cat, small\n3;4.5;dog\n", "a\tb\tlabel\n1\t2\tcat, small\n3\t4.5\tdog\n"]
        {
            assert_eq!(parts(text, Layout::default()), expected);
        }
        let said = error("a;b;label\n1,5;2,5;x\n");
        assert!(
            said.contains("line 2, column 1 `a`: `1,5` is not a number") && said.contains("decimal point"),
            "{said}"
        );
    }

    #[test]
    fn ids_are_no_features_unless_they_are_said_to_be() {
        let text = "id,a,label\n17,0.5,x\n4,0.25,y\n";
        let table = read(text, Layout::default()).unwrap();
        assert_eq!(table.ids.as_deref(), Some(&["17".to_string(), "4".into()][..]));
        assert!(table.notes[0].contains("`id` is used as ids"), "{:?}", table.notes);
        assert_eq!(parts(text, Layout::default()).0, [[0.5], [0.25]]);
        let none = Layout { id: Some("none"), ..Layout::default() };
        assert_eq!(parts(text, none).0, [[17.0, 0.5], [4.0, 0.25]]);
        let counting: String = (0..9).map(|i| format!("{},{},x\n", i + 1, i * i)).collect();
        let said = error(&counting);
        assert!(said.contains("column 1 only counts the rows"), "{said}");
        assert_eq!(parts(&counting, none).0[8], [9.0, 64.0]);
        let ignored = ["1".to_owned()];
        assert_eq!(parts(&counting, Layout { ignored: &ignored, ..Layout::default() }).0[8], [64.0]);
        let named = Layout { id: Some("1"), ..Layout::default() };
        assert_eq!(read(&counting, named).unwrap().ids.unwrap()[8], "9");
    }

    #[test]
    fn chosen_features_come_in_the_order_chosen() {
        let features = ["c".to_owned(), "a".into()];
        let layout = Layout { features: &features, ..Layout::default() };
        assert_eq!(parts("a,b,c,label\n1,x,3,k\n", layout), (vec![vec![3.0, 1.0]], vec!["k".to_string()]));
    }

    #[test]
    fn a_header_is_certain_or_asked_for() {
        let numbered = "0,1,2,label\n5,6,7,x\n";
        assert_eq!(parts(numbered, Layout::default()).0, [[5.0, 6.0, 7.0]]);
        for text in ["0,1,2,3\n5,6,7,1\n", "1,2,class\n3,4,class\n"] {
            let said = error(text);
            assert!(said.contains("line 1") && said.contains("--header yes"), "{said}");
            for (header, rows) in [(Header::Yes, 1), (Header::No, 2)] {
                let reading = Reading { header, ..Reading::default() };
                let table = from_reader(Path::new("t.csv"), text.as_bytes(), reading).unwrap();
                assert_eq!(table.features.len(), rows);
            }
        }
        assert!(error("a,label\n1,x\n\n2,y\n").contains("t.csv, line 3: a blank line"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[0-9a-c,.\"\n-]{0,80}", unlabelled: bool) {
            let layout = Layout { unlabelled, ..Layout::default() };
            for header in [Header::Auto, Header::Yes, Header::No] {
                let reading = Reading { layout, header, scratch: None };
                drop(from_reader(Path::new("p"), &bytes[..], reading));
                drop(from_reader(Path::new("p"), text.as_bytes(), reading));
            }
        }
    }
}
