//! What a review leaves for others, in a folder of its own: `corrected.csv` to train on, the same as Parquet, and tasks for Label Studio.
//!
//! `corrected.csv` has the rows and columns of the audit's, with `review` behind them: `kept`, `changed`, `dropped`, `unsure`, or nothing for rows
//! that nobody looked at. The label is the reviewed one; unsure rows have the label as given, rows that nobody looked at what the
//! audit's file has. Dropped rows have a blank label, since no label is right for them: whoever reads the file leaves them out or stops,
//! and nobody learns from them unawares. Of several reviewers the last word counts.

use crate::decision::Decision;
use crate::parquet::{Row, Table};
use crate::samples::Samples;
use crate::session::{Decisions, Held};
use crate::{EXPORTED, Error, Result};
use negscale_atomic_file::{OwnFolder, write_atomic};
use negscale_records::cells::{guard, unguard};
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Labels to train on.
    pub corrected: PathBuf,
    /// The same as Parquet.
    pub parquet: PathBuf,
    /// Tasks with predictions.
    pub tasks: PathBuf,
    /// Reviewed rows whose label stays.
    pub kept: usize,
    /// Whose label is another.
    pub changed: usize,
    /// That are no samples.
    pub dropped: usize,
    /// About which the last word was that nobody can tell.
    pub unsure: usize,
    /// On which reviewers differ.
    pub disputed: usize,
}

/// The last word on every row, by one reviewer or by all; and on how many rows they differ.
#[must_use]
pub fn last_words<'a>(decisions: &'a Decisions, reviewer: Option<&str>) -> (HashMap<u64, &'a Held>, usize) {
    let mut words: HashMap<u64, &Held> = HashMap::new();
    let mut disputed = std::collections::HashSet::new();
    for (name, all) in decisions.reviewers() {
        if reviewer.is_some_and(|wanted| wanted != name) {
            continue;
        }
        for (row, held) in all.all() {
            if let Some(other) = words.get(&row) {
                if other.decision != held.decision {
                    disputed.insert(row);
                }
                if other.time >= held.time {
                    continue;
                }
            }
            words.insert(row, held);
        }
    }
    (words, disputed.len())
}

/// Writes the folder `review` in an audit's folder.
///
/// # Errors
/// The reviewer has decided nothing; the folder is somebody else's; the audit's file is damaged; those of the system.
pub fn export(
    run: &Path,
    samples: &Samples,
    decisions: &Decisions,
    reviewer: Option<&str>,
) -> Result<Exported> {
    let (words, disputed) = last_words(decisions, reviewer);
    if words.is_empty() {
        let known: Vec<&str> = decisions.reviewers().keys().map(String::as_str).collect();
        return Err(Error::Refused(match reviewer {
            Some(name) if !known.is_empty() => {
                format!("{name} has decided nothing in {}; these have: {}", run.display(), known.join(", "))
            }
            _ => format!("nothing is decided in {}: run `negscale review` on it first", run.display()),
        }));
    }
    let place = run.join(EXPORTED);
    let folder = OwnFolder::open(&place).map_err(Error::file(&place))?;
    folder.remove_parts().map_err(Error::file(&place))?;
    let file = |name: &str| folder.file(name).map_err(Error::file(&place.join(name)));
    let mut done = Exported {
        corrected: file("corrected.csv")?,
        parquet: file("corrected.parquet")?,
        tasks: file("label-studio.json")?,
        disputed,
        ..Exported::default()
    };
    correct(&run.join("corrected.csv"), &words, &mut done)?;
    write_tasks(samples, &words, &done.tasks)?;
    Ok(done)
}

fn correct(from: &Path, words: &HashMap<u64, &Held>, done: &mut Exported) -> Result<()> {
    let mut reader =
        csv::Reader::from_path(from).map_err(|error| Error::format(from, None, error.to_string()))?;
    let header = reader.headers().map_err(|error| Error::format(from, Some(1), error.to_string()))?.clone();
    let column = |name: &str| {
        let at = header.iter().position(|column| column == name);
        at.ok_or_else(|| {
            Error::format(from, Some(1), format!("it has no column `{name}`: audit the data again"))
        })
    };
    let (index, label, given, changed) =
        (column("index")?, column("label")?, column("given")?, column("changed")?);
    let path = column("path")?;
    let (to, beside) = (done.corrected.clone(), done.parquet.clone());
    let mut found = 0;
    let mut fault = None;
    // Both at once, so that both say the same.
    let written = write_atomic(&beside, |parquet| {
        write_atomic(&to, |file| {
            let mut rows = Table::new(parquet)?;
            let mut table = csv::Writer::from_writer(file);
            table.write_record(header.iter().chain(["review"]))?;
            for record in reader.records() {
                let record = match record {
                    Ok(record) => record,
                    Err(error) => {
                        fault = Some(Error::format(from, None, error.to_string()));
                        return Err(io::Error::other("stopped"));
                    }
                };
                let mut cells: Vec<String> = record.iter().map(str::to_owned).collect();
                let Ok(row) = cells[index].parse::<u64>() else {
                    let line = record.position().map(csv::Position::line);
                    let problem =
                        format!("`{}` is no row number: audit the data again", cells[index].escape_debug());
                    fault = Some(Error::format(from, line, problem));
                    return Err(io::Error::other("stopped"));
                };
                let held = words.get(&row);
                found += usize::from(held.is_some());
                let word = match held.map(|held| &held.decision) {
                    None => "",
                    Some(Decision::Label(name)) if name == unguard(&cells[given]) => {
                        count(&mut done.kept, "kept")
                    }
                    Some(Decision::Label(_)) => count(&mut done.changed, "changed"),
                    Some(Decision::Drop) => count(&mut done.dropped, "dropped"),
                    Some(Decision::Unsure) => count(&mut done.unsure, "unsure"),
                };
                if let Some(held) = held {
                    cells[label] = match &held.decision {
                        Decision::Label(name) => guard(name).into_owned(),
                        Decision::Drop => String::new(),
                        Decision::Unsure => cells[given].clone(),
                    };
                    cells[changed] = (!cells[label].is_empty() && cells[label] != cells[given]).to_string();
                }
                table.write_record(cells.iter().map(String::as_str).chain([word]))?;
                rows.push(Row {
                    index: i64::try_from(row).map_err(io::Error::other)?,
                    path: unguard(&cells[path]),
                    label: Some(unguard(&cells[label])).filter(|label| !label.is_empty()),
                    given: unguard(&cells[given]),
                    changed: cells[changed] == "true",
                    review: word,
                })?;
            }
            table.flush()?;
            rows.finish()
        })
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    written.map_err(Error::file(&to))?;
    if found != words.len() {
        let problem = format!(
            "{} of {} reviewed rows are not in it: audit the data again",
            words.len() - found,
            words.len()
        );
        return Err(Error::format(from, None, problem));
    }
    Ok(())
}

fn count(number: &mut usize, word: &'static str) -> &'static str {
    *number += 1;
    word
}

/// A task for every row to look at, but for dropped ones: the reviewed label with certainty 1, or the suggestion with the models'.
fn write_tasks(samples: &Samples, words: &HashMap<u64, &Held>, to: &Path) -> Result<()> {
    let written = write_atomic(to, |file| {
        let mut is_first = true;
        file.write_all(b"[")?;
        for sample in samples.list.iter().filter(|sample| sample.flagged || words.contains_key(&sample.row)) {
            let suggestion =
                || (samples.name(sample.suggested), f64::from(sample.probabilities[0].unwrap_or_default()));
            let (choice, score) = match words.get(&sample.row).map(|held| &held.decision) {
                Some(Decision::Drop) => continue,
                Some(Decision::Label(name)) => (name.as_str(), 1.0),
                Some(Decision::Unsure) | None => suggestion(),
            };
            let task = json!({
                "data": { "item": sample.path, "row": sample.row, "given": samples.name(sample.given), "reasons": sample.reasons },
                "predictions": [{
                    "model_version": "negscale",
                    "score": score,
                    "result": [{ "from_name": "label", "to_name": "item", "type": "choices", "value": { "choices": [choice] } }],
                }],
            });
            file.write_all(if is_first { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *file, &task)?;
            is_first = false;
        }
        file.write_all(b"\n]\n")
    });
    written.map_err(Error::file(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::{session, wish};

    #[test]
    fn reviewed_labels_replace_those_of_the_audit_and_the_last_word_counts() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let mut text = String::from("index,path,label,given,changed\n");
        for row in 0..14 {
            let (label, given) = if row < 8 { ("'=b", "a") } else { ("c", "c") };
            text += &format!("{row},,{label},{given},{}\n", label != given);
        }
        std::fs::write(run.join("corrected.csv"), &text).unwrap();
        let mut session = session(run, 8, 6);
        let error = export(run, &session.samples, &session.decisions, None).unwrap_err().to_string();
        assert!(error.contains("nothing is decided"), "{error}");
        let label = |name: &str| Decision::Label(name.into());
        session.decide("ann", &wish(&[0], label("a"))).unwrap();
        session.decide("ann", &wish(&[1], label("=b"))).unwrap();
        session.decide("ann", &wish(&[2], Decision::Drop)).unwrap();
        session.decide("ann", &wish(&[3], Decision::Unsure)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        session.decide("bob", &wish(&[0], label("c"))).unwrap();
        std::fs::write(run.join("corrected.csv"), text.replace("\n5,", "\n5.0,")).unwrap();
        let error = export(run, &session.samples, &session.decisions, None).unwrap_err().to_string();
        assert!(error.contains("line 7") && error.contains("`5.0` is no row number"), "{error}");
        std::fs::write(run.join("corrected.csv"), &text).unwrap();
        let done = export(run, &session.samples, &session.decisions, None).unwrap();
        assert_eq!((done.kept, done.changed, done.dropped, done.unsure, done.disputed), (0, 2, 1, 1, 1));
        let lines = std::fs::read_to_string(&done.corrected).unwrap();
        let lines: Vec<&str> = lines.lines().take(6).collect();
        assert_eq!(
            lines,
            [
                "index,path,label,given,changed,review",
                "0,,c,a,true,changed",
                "1,,'=b,a,true,changed",
                "2,,,a,false,dropped",
                "3,,a,a,false,unsure",
                "4,,'=b,a,true,"
            ]
        );
        let tasks: serde_json::Value = serde_json::from_slice(&std::fs::read(&done.tasks).unwrap()).unwrap();
        assert_eq!(tasks.as_array().unwrap().len(), 7);
        assert_eq!(tasks[1]["predictions"][0]["result"][0]["value"]["choices"][0], "=b");
        let by_ann = export(run, &session.samples, &session.decisions, Some("ann")).unwrap();
        assert_eq!((by_ann.kept, by_ann.disputed), (1, 0));
        let error = export(run, &session.samples, &session.decisions, Some("cy")).unwrap_err().to_string();
        assert!(error.contains("cy has decided nothing") && error.contains("ann, bob"), "{error}");
        assert_eq!(std::fs::read_to_string(run.join("corrected.csv")).unwrap(), text);
    }
}
