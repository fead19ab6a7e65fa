//! A file of labels: `.npy`, `.csv`, or text with one label a line.
//!
//! A `.csv` may say which item each row belongs to, in columns `index` (items counted from 0), `path` (or `file_name`) or of ids; then
//! its rows may stand in any order ([`super::join`]). Without such a column, rows are in the order of the items.
//!
//! A `.csv` that `negscale review export` wrote also says what people decided (`reviewed.rs`).

use super::header::{self, ASK, Below, Header, INDEX, LABELS, PATHS, TRUTH};
use super::labels::Column;
use super::lines::{self, Records, column, line, read_lines};
use super::reviewed::{ReviewColumns, ReviewPlaces};
use super::side::SideColumns;
use super::words::Words;
use crate::npy;
use crate::{Error, Result};
use negscale_records::cells::unguard;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// What is asked for of a labels file. All may be left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Name of the label's column.
    pub label: Option<&'a str>,
    /// Name of the true label's column.
    pub truth: Option<&'a str>,
    /// Name of the column of ids, if it has one.
    pub id: Option<&'a str>,
    /// Name of the column of sources, if it has one.
    pub source: Option<&'a str>,
    /// Names of columns of labels by several annotators, in place of one column of labels.
    pub annotators: &'a [String],
    /// Whether there is a header.
    pub header: Header,
}

/// Labels as they stand in a file.
#[derive(Debug, Default)]
pub struct LabelFile {
    pub(crate) path: PathBuf,
    pub(crate) given: Column,
    pub(crate) truth: Option<Column>,
    pub(crate) side: SideColumns,
    /// The columns that say which item a row belongs to, and the line of every row.
    pub(crate) index: Option<Words>,
    pub(crate) paths: Option<Words>,
    pub(crate) ids: Option<Words>,
    pub(crate) lines: Vec<u64>,
}

impl LabelFile {
    /// Labels in the order of the file.
    pub fn given(&self) -> &Column {
        &self.given
    }
}

/// Reads a labels file, by its extension.
pub fn open(path: &Path, asked: Asked) -> Result<LabelFile> {
    let extension = super::extension(path);
    let named = asked.annotators.first().map(String::as_str).or(asked.label).or(asked.truth).or(asked.source);
    if let (Some(column), false) = (named, ["csv", "tsv"].contains(&extension.as_str())) {
        let problem = format!(
            "it has no columns, so there is no `{column}`: give labels as .csv or .tsv with a header, or name no columns"
        );
        return Err(Error::format(path, None, problem));
    }
    let file = match extension.as_str() {
        "npy" => {
            LabelFile { path: path.into(), given: npy::open(path)?.into_labels()?, ..LabelFile::default() }
        }
        "csv" | "tsv" => from_csv(path, lines::open(path)?, asked)?,
        "txt" | "" => from_text(path, lines::open(path)?, asked.header)?,
        _ => {
            let problem = "labels are read from .npy, .csv or .txt (one per line), or from an array inside .npz or .safetensors";
            return Err(Error::format(path, None, problem));
        }
    };
    if file.given.is_empty() {
        return Err(Error::format(path, None, "it has no labels"));
    }
    Ok(file)
}

/// Whether the first line is a header, or an error that asks.
fn decide(
    path: &Path,
    asked: Header,
    below: &Below,
    first: &csv::StringRecord,
    label: &str,
    again: bool,
) -> Result<bool> {
    match asked {
        Header::Yes => return Ok(true),
        Header::No => return Ok(false),
        Header::Auto => {}
    }
    below.is_header(first.iter(), again).ok_or_else(|| {
        let shown: String = label.chars().take(40).collect();
        let problem =
            format!("is `{}` a label or a header? No other line has it: {ASK}", shown.escape_debug());
        Error::format(path, line(1), problem)
    })
}

/// One label a line. `path` is for messages.
pub fn from_text(path: &Path, reader: impl BufRead, header: Header) -> Result<LabelFile> {
    let mut first: Option<String> = None;
    let mut file = LabelFile { path: path.into(), given: Column::new(false), ..LabelFile::default() };
    let mut below = Below::new(1);
    read_lines(path, reader, |number, word| {
        if first.is_none() {
            first = Some(word.to_owned());
        } else {
            below.add([word].into_iter());
            file.given.push(word);
            file.lines.push(number);
        }
        Ok(())
    })?;
    let Some(first) = first else { return Ok(file) };
    let record = csv::StringRecord::from(vec![first.as_str()]);
    if !decide(path, header, &below, &record, &first, file.given.has(&first))? {
        file.given.push_front(&first);
        file.lines.insert(0, 1);
    }
    Ok(file)
}

/// Where things are in a row.
struct Places {
    label: usize,
    truth: Option<usize>,
    source: Option<usize>,
    annotators: Vec<usize>,
    keys: [Option<usize>; 3],
    review: Option<ReviewPlaces>,
    /// Whether a column is known by its name, so that the first line must be a header.
    named: bool,
}

fn places(path: &Path, first: &csv::StringRecord, asked: Asked) -> Result<Places> {
    let find = |names: &[&str]| header::find(first.iter(), names);
    let need = |name: Option<&str>| name.map(|name| column(path, first, name)).transpose();
    let (label, truth, source) = (need(asked.label)?, need(asked.truth)?, need(asked.source)?);
    let annotators =
        asked.annotators.iter().map(|name| column(path, first, name)).collect::<Result<Vec<_>>>()?;
    // One of them stands for all where a single column of labels is asked about.
    let label = annotators.first().copied().or(label);
    // The data's column of ids; the file may have other means.
    let id = asked.id.and_then(|name| first.iter().position(|field| field == name));
    let named = label.is_some() || truth.is_some() || source.is_some();
    if named && asked.header == Header::No {
        let problem =
            "columns are named, but --header says that there is no header: leave one of the two out";
        return Err(Error::format(path, line(1), problem));
    }
    if asked.header == Header::No {
        let label = first.len().saturating_sub(1);
        return Ok(Places {
            label,
            truth: None,
            source: None,
            annotators,
            keys: [None; 3],
            review: None,
            named,
        });
    }
    let truth = truth.or_else(|| find(&[TRUTH]));
    let other_than = |at: &usize, taken: &[Option<usize>]| !taken.contains(&Some(*at));
    let is_no_key = |at: &usize| other_than(at, &[label, id, source]) && !annotators.contains(at);
    let index = find(&[INDEX]).filter(is_no_key);
    let place = find(&PATHS).filter(is_no_key);
    let taken = [label, truth, index, place];
    let looks = |at: &usize| {
        let is_named = !first[*at].is_empty() || *at == 0;
        first.len() > 1 && is_named && header::is_id(&first[*at]) && other_than(at, &taken) && is_no_key(at)
    };
    let id = id.or_else(|| (0..first.len()).find(looks));
    let taken = [truth, index, place, id, source];
    let label = match label.or_else(|| find(&LABELS)) {
        Some(at) => at,
        None => {
            let rest: Vec<usize> = (0..first.len()).filter(|at| other_than(at, &taken)).collect();
            // `y` is a usual name too, but of features as well.
            let by_letter = rest.iter().copied().find(|&at| first[at].eq_ignore_ascii_case("y"));
            match (by_letter, &rest[..]) {
                (Some(at), _) => at,
                (None, [.., last]) if rest.len() == 1 || taken.iter().all(Option::is_none) => *last,
                (None, []) => return Err(Error::format(path, line(1), "it has no column of labels")),
                (None, _) => {
                    let names: Vec<&str> = rest.iter().map(|&at| &first[at]).collect();
                    let problem = format!(
                        "which column holds the labels? It could be {}: name it with --label-column (`label_column`)",
                        names.join(", ")
                    );
                    return Err(Error::format(path, line(1), problem));
                }
            }
        }
    };
    let review = ReviewPlaces::find(&first.iter().collect::<Vec<_>>(), label);
    Ok(Places { label, truth, source, annotators, keys: [index, place, id], review, named })
}

/// Labels in a column: the one asked for, else one with a usual header, else the last. `path` is for messages.
pub fn from_csv(path: &Path, reader: impl Read, asked: Asked) -> Result<LabelFile> {
    let mut records = Records::new(path, reader)?;
    let Some((_, first)) = records.next()? else {
        return Err(Error::format(path, None, "the file is empty"));
    };
    let first = first.clone();
    let Places { label, truth, source, annotators, keys, review, named } = places(path, &first, asked)?;
    let mut side = SideColumns::new(source.is_some(), annotators.len());
    side.review = review.as_ref().map(|_| ReviewColumns::default());
    let label_place = Some(label).filter(|_| annotators.is_empty());
    let (mut given, mut truths) = (Column::new(false), Column::new(false));
    let mut columns: [Words; 3] = Default::default();
    let (mut lines, mut below) = (Vec::new(), Below::new(first.len()));
    while let Some((number, record)) = records.next()? {
        below.add(record.iter());
        let labels = annotators.iter().map(|&at| unguard(&record[at]));
        let one = side.push(source.and_then(|at| record.get(at)).map(unguard), labels, asked.annotators);
        if let Some(word) = one.map_err(|problem| Error::format(path, line(number), problem))? {
            given.push(word);
        }
        let mut is_dropped = false;
        if let (Some(places), Some(review)) = (&review, &mut side.review) {
            let cell = |at: usize| unguard(record.get(at).unwrap_or_default());
            let pushed = review.push(cell(places.word), cell(places.before), cell(label));
            is_dropped = pushed.map_err(|problem| Error::format(path, line(number), problem))?;
        }
        for (place, column) in [(label_place, &mut given), (truth, &mut truths)] {
            let Some(place) = place else { continue };
            match record.get(place) {
                // A label that nobody is to use.
                _ if is_dropped && place == label => column.push(""),
                Some(word) if !word.is_empty() => column.push(unguard(word)),
                _ => return Err(Error::format(path, line(number), "the label is missing")),
            }
        }
        for (place, column) in keys.iter().zip(&mut columns) {
            if let Some(cell) = place.and_then(|at| record.get(at)) {
                column.push(unguard(cell));
            }
        }
        lines.push(number);
    }
    let own = unguard(&first[label]);
    let header =
        named || review.is_some() || decide(path, asked.header, &below, &first, own, given.has(own))?;
    if !header {
        // Names that looked like those of columns are items after all.
        if truth.is_some() || keys.iter().any(Option::is_some) || label + 1 != first.len() {
            let problem = format!("the first line may be a header or not: {ASK}");
            return Err(Error::format(path, line(1), problem));
        }
        if first[label].is_empty() {
            return Err(Error::format(path, line(1), "the label is missing"));
        }
        given.push_front(own);
        lines.insert(0, 1);
    }
    let [index, paths, ids] = columns;
    let kept = |place: Option<usize>, column| place.map(|_| column);
    Ok(LabelFile {
        path: path.into(),
        given,
        truth: truth.map(|_| truths),
        side,
        index: kept(keys[0], index),
        paths: kept(keys[1], paths),
        ids: kept(keys[2], ids),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, asked: Asked) -> Result<LabelFile> {
        from_csv(Path::new("l.csv"), text.as_bytes(), asked)
    }

    fn csv(text: &str, label: Option<&str>) -> Vec<String> {
        let file = read(text, Asked { label, ..Asked::default() }).unwrap();
        file.given.words().map(str::to_owned).collect()
    }

    fn error(text: &str, asked: Asked) -> String {
        read(text, asked).unwrap_err().to_string()
    }

    #[test]
    fn text_and_columns_give_the_same_labels() {
        let text = from_text(Path::new("l.txt"), "3\n1\n\n".as_bytes(), Header::Auto).unwrap();
        assert_eq!(text.given.words().collect::<Vec<_>>(), ["3", "1"]);
        for table in
            ["3\n1\n", "label\n3\n1\n", "whatever\n3\n1\n", "id,y\n0,3\n1,1\n", "0,3\n1,1\n", "0;3\n1;1\n"]
        {
            assert_eq!(csv(table, None), ["3", "1"], "{table}");
        }
        assert_eq!(csv("cat\ndog\ncat\n", None), ["cat", "dog", "cat"]);
        assert_eq!(csv("a,kind,b\n0,3,9\n0,1,9\n", Some("kind")), ["3", "1"]);
        assert_eq!(csv("index,path,label,given,changed\n0,,3,1,true\n1,,1,1,false\n", None), ["3", "1"]);
    }

    #[test]
    fn a_first_line_that_could_be_a_label_or_a_header_is_asked_about() {
        for text in ["species\nrose\ntulip\nrose\n", "y\nrose\ntulip\n", "a.png,rose\nb.png,tulip\n"] {
            let said = error(text, Asked::default());
            assert!(said.contains("line 1") && said.contains("--header yes"), "{said}");
        }
        let with = |header| {
            let file = read("species\nrose\ntulip\n", Asked { header, ..Asked::default() }).unwrap();
            file.given.words().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(with(Header::Yes), ["rose", "tulip"]);
        assert_eq!(with(Header::No), ["species", "rose", "tulip"]);
        let text = |header| from_text(Path::new("l.txt"), "species\nrose\ntulip\n".as_bytes(), header);
        assert!(text(Header::Auto).unwrap_err().to_string().contains("--header"));
        assert_eq!(text(Header::Yes).unwrap().given.len(), 2);
        assert_eq!(text(Header::No).unwrap().given.words().next(), Some("species"));
        let asked = Asked { label: Some("kind"), header: Header::No, ..Asked::default() };
        assert!(error("kind\na\n", asked).contains("leave one of the two out"));
        // A class that goes by the usual name of a column is known by a second item of it.
        assert_eq!(csv("class\nboat\nclass\n", None), ["class", "boat", "class"]);
    }

    #[test]
    fn the_column_of_labels_is_asked_for_where_several_could_hold_them() {
        let said = error("index,given_by,suggested\n0,a,b\n", Asked::default());
        assert!(said.contains("given_by, suggested") && said.contains("--label-column"), "{said}");
        assert_eq!(csv("index,kind\n0,a\n1,b\n", None), ["a", "b"]);
    }

    #[test]
    fn missing_labels_and_columns_and_blank_lines_are_errors_with_their_line() {
        let named = |label| Asked { label: Some(label), ..Asked::default() };
        assert!(error("label,b\n1,2\n,3\n", Asked::default()).contains("l.csv, line 3"));
        assert!(error("a,b\n1,2\n", named("kind")).contains("`kind`"));
        assert!(error("", Asked::default()).contains("empty"));
        assert!(error("label\n1\n\n2\n", Asked::default()).contains("l.csv, line 3: a blank line"));
        let unknown = open(Path::new("labels.pkl"), Asked::default()).unwrap_err().to_string();
        assert!(unknown.contains(".npy, .csv or .txt"));
    }

    #[test]
    fn cells_that_were_guarded_against_formulas_are_as_they_were() {
        assert_eq!(csv("index,label\n0,'=lorry\n1,''s\n", None), ["=lorry", "''s"]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[a-c,0-9\"\n]{0,60}", named in "(index|path|id|label|,|;|\n|a|0){0,20}") {
            for input in [&bytes[..], text.as_bytes(), named.as_bytes()] {
                for header in [Header::Auto, Header::Yes, Header::No] {
                    drop(from_csv(Path::new("p"), input, Asked { header, ..Asked::default() }));
                    drop(from_text(Path::new("p"), input, header));
                }
            }
        }
    }
}
