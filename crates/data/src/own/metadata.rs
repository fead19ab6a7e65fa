//! A folder of pictures with `metadata.csv` or `metadata.jsonl`, as Hugging Face's ImageFolder has it: `file_name`, a label, and
//! optionally the true label.
//!
//! File names are taken relative to the folder and must stay in it, by their own words (no `..`, nothing absolute) and after
//! links are followed: a table from a stranger may not make the program read other files of the machine.

use super::labels::Column;
use super::lines::{self, Records, column, line, read_lines};
use super::side::SideColumns;
use crate::{Error, Result};
use serde_json::Value;
use std::io::{BufRead, Read};
use std::path::{Component, Path, PathBuf};

/// Names of the columns.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The label's, `label` by default.
    pub label: &'a str,
    /// The true label's: must be there if given, else `true_label` where it occurs.
    pub truth: Option<&'a str>,
    /// The source's, if there is one.
    pub source: Option<&'a str>,
    /// Those of labels by several annotators, in place of one label.
    pub annotators: &'a [String],
}

impl Default for Names<'_> {
    fn default() -> Self {
        Self { label: "label", truth: None, source: None, annotators: &[] }
    }
}

/// The table's rows.
#[derive(Debug, Default)]
pub struct MetadataRows {
    /// Line and file name.
    pub files: Vec<(u64, String)>,
    /// Labels.
    pub given: Column,
    /// True labels, where there is a column of them.
    pub truth: Option<Column>,
    /// Sources and labels by several annotators, where they were asked for.
    pub side: SideColumns,
}

const FILE: &str = "file_name";
const TRUTH: &str = "true_label";

/// The metadata file of a folder, if there is one.
pub fn find(folder: &Path) -> Result<Option<PathBuf>> {
    let there = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    match (there("metadata.csv"), there("metadata.jsonl")) {
        (Some(_), Some(_)) => {
            Err(Error::format(folder, None, "has both metadata.csv and metadata.jsonl: remove one of them"))
        }
        (csv, jsonl) => Ok(csv.or(jsonl)),
    }
}

/// Reads a metadata file, by its extension.
pub fn open(path: &Path, names: Names) -> Result<MetadataRows> {
    let reader = lines::open(path)?;
    let rows = match path.extension().and_then(|e| e.to_str()) {
        Some("jsonl") => from_jsonl(path, reader, names)?,
        _ => from_csv(path, reader, names)?,
    };
    if rows.files.is_empty() {
        return Err(Error::format(path, None, "it has no rows"));
    }
    Ok(rows)
}

/// Rows of a `metadata.csv`. `path` is for messages.
pub fn from_csv(path: &Path, reader: impl Read, names: Names) -> Result<MetadataRows> {
    let mut records = Records::new(path, reader)?;
    let Some((_, header)) = records.next()? else {
        return Err(Error::format(path, None, "the file is empty: it has no header"));
    };
    let header = header.clone();
    let find = |name: &str| header.iter().position(|field| field == name);
    let need = |name: &str| column(path, &header, name);
    let (file, source) = (need(FILE)?, names.source.map(need).transpose()?);
    let annotators = names.annotators.iter().map(|name| need(name)).collect::<Result<Vec<_>>>()?;
    let label = annotators.is_empty().then(|| need(names.label)).transpose()?;
    let truth = names.truth.map_or(Ok(find(TRUTH)), |name| need(name).map(Some))?;
    let mut rows = MetadataRows {
        given: Column::new(false),
        truth: truth.map(|_| Column::new(false)),
        side: SideColumns::new(source.is_some(), annotators.len()),
        ..MetadataRows::default()
    };
    while let Some((number, record)) = records.next()? {
        let field = |at: usize| {
            record.get(at).filter(|field| !field.is_empty()).ok_or_else(|| {
                let problem = format!("nothing in column `{}`: fill it or remove the line", &header[at]);
                Error::format(path, line(number), problem)
            })
        };
        rows.files.push((number, field(file)?.to_owned()));
        let labels = annotators.iter().map(|&at| &record[at]);
        let one = rows.side.push(source.and_then(|at| record.get(at)), labels, names.annotators);
        match (one.map_err(|problem| Error::format(path, line(number), problem))?, label) {
            (Some(word), _) => rows.given.push(word),
            (None, Some(at)) => rows.given.push(field(at)?),
            (None, None) => {}
        }
        if let (Some(at), Some(column)) = (truth, &mut rows.truth) {
            column.push(field(at)?);
        }
    }
    Ok(rows)
}

/// Rows of a `metadata.jsonl`: one JSON object a line. `path` is for messages.
pub fn from_jsonl(path: &Path, reader: impl BufRead, names: Names) -> Result<MetadataRows> {
    let side = SideColumns::new(names.source.is_some(), names.annotators.len());
    let mut rows = MetadataRows { given: Column::new(true), side, ..MetadataRows::default() };
    let truth_name = names.truth.unwrap_or(TRUTH);
    read_lines(path, reader, |number, text| {
        let wrong = |problem: String| Error::format(path, line(number), problem);
        let object: serde_json::Map<String, Value> =
            serde_json::from_str(text).map_err(|e| wrong(format!("not a JSON object: {e}")))?;
        let file = match object.get(FILE) {
            Some(Value::String(file)) if !file.is_empty() => file.clone(),
            _ => return Err(wrong(format!("`{FILE}` is missing or not a string"))),
        };
        let push = |name: &str, column: &mut Column| match object.get(name) {
            Some(Value::String(word)) if !word.is_empty() => {
                column.mark_text();
                column.push(word);
                Ok(())
            }
            Some(Value::Number(n)) if n.is_i64() => {
                column.push(&n.to_string());
                Ok(())
            }
            Some(other) => {
                Err(wrong(format!("`{name}` is {}: a label is a string or a whole number", kind(other))))
            }
            None => Err(wrong(format!("no `{name}`: every line needs one"))),
        };
        if rows.files.is_empty() && (names.truth.is_some() || object.contains_key(TRUTH)) {
            rows.truth = Some(Column::new(true));
        }
        // Whoever did not label it has null or nothing there.
        let cell = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(word)) => Ok(word.clone()),
            Some(Value::Number(n)) if n.is_i64() => Ok(n.to_string()),
            Some(other) => {
                Err(wrong(format!("`{name}` is {}: a string or a whole number is expected", kind(other))))
            }
        };
        let source = names.source.map(&cell).transpose()?;
        let labels = names.annotators.iter().map(|name| cell(name)).collect::<Result<Vec<_>>>()?;
        let one = rows.side.push(source.as_deref(), labels.iter().map(String::as_str), names.annotators);
        match one.map_err(wrong)? {
            Some(word) => {
                rows.given.mark_text();
                rows.given.push(word);
            }
            None => push(names.label, &mut rows.given)?,
        }
        match &mut rows.truth {
            Some(column) => push(truth_name, column)?,
            None if object.contains_key(truth_name) => {
                return Err(wrong(format!("`{truth_name}` begins here: give it in every line or in none")));
            }
            None => {}
        }
        rows.files.push((number, file));
        Ok(())
    })?;
    Ok(rows)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "not a whole number of 64 bits",
        Value::String(_) => "empty",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A folder that files must not leave.
pub(super) struct Fence {
    folder: PathBuf,
    real: PathBuf,
}

impl Fence {
    pub fn new(folder: &Path) -> Result<Self> {
        let real = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
        Ok(Self { folder: folder.to_owned(), real })
    }

    /// The file of a name, `Ok(None)` if there is none, or why the name is refused.
    pub fn resolve(&self, name: &str) -> Result<Option<PathBuf>, String> {
        let inside =
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let shown = name.escape_debug();
        if !inside || name.starts_with('\\') || name.split(['/', '\\']).any(|part| part == "..") {
            return Err(format!("`{shown}` leaves the folder: names must be relative and without `..`"));
        }
        let path = self.folder.join(name);
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("`{shown}` cannot be looked up: {error}")),
        };
        if !real.starts_with(&self.real) {
            return Err(format!(
                "`{shown}` is a link that leads out of the folder: put the file itself into the folder"
            ));
        }
        Ok(Some(path).filter(|_| real.is_file()))
    }
}

/// The files of all rows; those that leave the folder or are missing are errors with their lines.
pub(super) fn resolve(table: &Path, rows: &MetadataRows) -> Result<Vec<PathBuf>> {
    let fence = Fence::new(table.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
    let mut files = Vec::with_capacity(rows.files.len());
    let mut missing = Vec::new();
    for (number, name) in &rows.files {
        match fence.resolve(name) {
            Ok(Some(path)) => files.push(path),
            Ok(None) => missing.push((*number, name)),
            Err(problem) => return Err(Error::format(table, line(*number), problem)),
        }
    }
    let Some(&(first, _)) = missing.first() else { return Ok(files) };
    let some: Vec<String> =
        missing.iter().take(5).map(|(n, name)| format!("`{}` (line {n})", name.escape_debug())).collect();
    let more = if missing.len() > 5 { ", ..." } else { "" };
    let problem = format!(
        "{} of {} files are missing: {}{more}; add them or remove their lines",
        missing.len(),
        rows.files.len(),
        some.join(", ")
    );
    Err(Error::format(table, line(first), problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn csv(text: &str) -> Result<MetadataRows> {
        from_csv(Path::new("metadata.csv"), text.as_bytes(), Names::default())
    }

    fn jsonl(text: &str) -> Result<MetadataRows> {
        from_jsonl(Path::new("metadata.jsonl"), text.as_bytes(), Names::default())
    }

    #[test]
    fn both_forms_give_files_labels_and_truth() {
        let table = csv("label,file_name,true_label\ncat,\"a,b.png\",dog\ndog,c.png,dog\n").unwrap();
        let lines = "{\"file_name\":\"a,b.png\",\"label\":\"cat\",\"true_label\":\"dog\"}\n{\"file_name\":\"c.png\",\"label\":\"dog\",\"true_label\":\"dog\",\"more\":[1]}\n";
        let objects = jsonl(lines).unwrap();
        assert_eq!(table.files, [(2, "a,b.png".to_string()), (3, "c.png".into())]);
        assert_eq!(objects.files, [(1, "a,b.png".to_string()), (2, "c.png".into())]);
        for rows in [table, objects] {
            assert_eq!(rows.given.words().collect::<Vec<_>>(), ["cat", "dog"]);
            assert_eq!(rows.truth.unwrap().words().collect::<Vec<_>>(), ["dog", "dog"]);
        }
    }

    #[test]
    fn missing_columns_and_values_are_errors_that_name_line_and_column() {
        assert!(csv("file,label\nx,1\n").unwrap_err().to_string().contains("line 1: no column `file_name`"));
        assert!(
            csv("file_name,label\nx,\n")
                .unwrap_err()
                .to_string()
                .contains("line 2: nothing in column `label`")
        );
        assert!(csv("file_name,label\nx,1\ny\n").unwrap_err().to_string().contains("line 3: 1 fields"));
        for (text, part) in [
            ("{\"file_name\":\"a\",\"label\":1}\n{\"file_name\":\"b\"}", "line 2: no `label`"),
            ("{\"label\":1}", "line 1: `file_name` is missing"),
            ("[1]", "line 1: not a JSON object"),
            ("{\"file_name\":\"a\",\"label\":1.5}", "line 1: `label` is not a whole number"),
            ("{\"file_name\":\"a\",\"label\":null}", "line 1: `label` is null"),
            (
                "{\"file_name\":\"a\",\"label\":1}\n{\"file_name\":\"b\",\"label\":1,\"true_label\":2}",
                "line 2",
            ),
        ] {
            let error = jsonl(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(jsonl(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret.png"), b"x").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a.png"), b"x").unwrap();
        let absolute = outside.path().join("secret.png");
        let mut names =
            vec!["../secret.png", "x/../../secret.png", "..\\secret.png", absolute.to_str().unwrap()];
        if cfg!(unix) {
            #[cfg(unix)]
            std::os::unix::fs::symlink(&absolute, root.path().join("link.png")).unwrap();
            names.push("link.png");
        }
        let table = root.path().join("metadata.csv");
        for name in names {
            let rows = MetadataRows {
                files: vec![(2, "a.png".into()), (3, name.into())],
                ..MetadataRows::default()
            };
            let error = resolve(&table, &rows).unwrap_err().to_string();
            assert!(error.contains("metadata.csv, line 3"), "{error}");
        }
        let rows = MetadataRows { files: vec![(2, "./a.png".into())], ..MetadataRows::default() };
        assert_eq!(resolve(&table, &rows).unwrap().len(), 1);
    }

    #[test]
    fn missing_files_are_counted_and_their_lines_named() {
        let root = tempfile::tempdir().unwrap();
        let files = (2..9).map(|n| (n, format!("{n}.png"))).collect();
        let error =
            resolve(&root.path().join("metadata.csv"), &MetadataRows { files, ..MetadataRows::default() });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("7 of 7 files") && error.contains("`3.png` (line 3)"), "{error}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, text in "[a-c{}\"\\[\\]:,\n0-9]{0,80}", tail: Vec<u8>) {
            for input in [&bytes[..], text.as_bytes(), &[b"file_name,label\n", &tail[..]].concat()] {
                let _ = from_csv(Path::new("p"), input, Names::default());
                let _ = from_jsonl(Path::new("p"), input, Names::default());
            }
        }
    }
}
