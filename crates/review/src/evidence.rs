//! What an audit's folder says beside its list: likeliest classes, nearest neighbours (`evidence.csv`), and the class tree (`tree.tsv`).
//!
//! | column of `evidence.csv` | content |
//! |---|---|
//! | `index` | the row |
//! | `likeliest` | numbers of classes, the likeliest by the models first |
//! | `neighbours` | `row:class` of its nearest neighbours, nearest first, with their labels as given; of the most suspicious rows only |
//!
//! Audits of older versions and audits in parts have no such files: then less is shown.

use crate::samples::Samples;
use crate::{Error, Result};
use negscale::Taxonomy;
use serde::Serialize;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// The files.
const EVIDENCE: &str = "evidence.csv";
const TREE: &str = "tree.tsv";

/// A row near another, and its label as given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Its number.
    pub row: u64,
    /// Its class as given.
    pub class: u32,
}

/// Where two classes are in the class tree: names of nodes, from the root on.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Position {
    /// What both are below.
    pub shared: Vec<String>,
    /// From there to the class as given.
    pub given: Vec<String>,
    /// From there to the suggested class.
    pub suggested: Vec<String>,
}

/// Adds what the folder of an audit has.
///
/// # Errors
/// `evidence.csv` is damaged; those of the system.
pub fn add(samples: &mut Samples, folder: &Path) -> Result<()> {
    let tree = std::fs::read_to_string(folder.join(TREE)).ok();
    let tree = tree.and_then(|text| Taxonomy::from_tsv(TREE, &text).ok());
    // One of other classes would say wrong things.
    samples.tree = tree.filter(|tree| tree.class_names().eq(samples.classes.iter().map(String::as_str)));
    let path = folder.join(EVIDENCE);
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file.map_err(Error::file(&path))?,
    };
    let mut reader = csv::Reader::from_reader(file);
    let mut record = csv::StringRecord::new();
    let classes = samples.classes.len();
    loop {
        let is_there = reader.read_record(&mut record);
        if !is_there.map_err(|error| Error::format(&path, None, error.to_string()))? {
            return Ok(());
        }
        let line = record.position().map(csv::Position::line);
        let damaged = || Error::format(&path, line, "the file is damaged: audit the data again");
        let row = record.get(0).and_then(|cell| cell.parse().ok()).ok_or_else(damaged)?;
        let Some(place) = samples.place(row) else { continue };
        let class = |text: &str| text.parse().ok().filter(|class: &u32| (*class as usize) < classes);
        let words = |at: usize| record.get(at).unwrap_or_default().split_ascii_whitespace();
        let neighbour = |text: &str| {
            let (row, label) = text.split_once(':')?;
            Some(Neighbour { row: row.parse().ok()?, class: class(label)? })
        };
        let likeliest: Option<Vec<u32>> = words(1).map(class).collect();
        let near: Option<Vec<Neighbour>> = words(2).map(neighbour).collect();
        let sample = &mut samples.list[place];
        (sample.likeliest, sample.near) = (likeliest.ok_or_else(damaged)?, near.ok_or_else(damaged)?);
        samples.near.extend(samples.list[place].near.iter().map(|neighbour| neighbour.row));
    }
}

/// Where two classes are in a tree.
#[must_use]
pub fn position(tree: &Taxonomy, given: u32, suggested: u32) -> Position {
    let way = |class: u32| {
        let class = class as usize;
        let mut names: Vec<String> = tree.ancestors(class).map(str::to_owned).collect();
        names.reverse();
        names.push(tree.class_name(class).to_owned());
        names
    };
    let (mut given, mut suggested) = (way(given), way(suggested));
    let same = given.iter().zip(&suggested).take_while(|(one, other)| one == other).count();
    let shared = given.drain(..same).collect();
    suggested.drain(..same);
    Position { shared, given, suggested }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::tests::audit;

    #[test]
    fn likeliest_classes_and_neighbours_are_read_for_the_rows_that_are_shown() {
        let mut samples = audit(3, 0, 0.0);
        let folder = tempfile::tempdir().unwrap();
        add(&mut samples, folder.path()).unwrap();
        assert!(samples.list[0].near.is_empty() && samples.tree.is_none());
        let path = folder.path().join("evidence.csv");
        std::fs::write(&path, "index,likeliest,neighbours\n7,0,\n1,2 1 0,5:1 9:0\n").unwrap();
        std::fs::write(
            folder.path().join("tree.tsv"),
            "root\t\t\t\nx\troot\t\t\na\tx\t\t0\n=b\tx\t\t1\nc\troot\t\t2\n",
        )
        .unwrap();
        add(&mut samples, folder.path()).unwrap();
        assert_eq!(samples.list[1].likeliest, [2, 1, 0]);
        assert_eq!(samples.list[1].near, [Neighbour { row: 5, class: 1 }, Neighbour { row: 9, class: 0 }]);
        assert!(samples.near.contains(&9) && !samples.near.contains(&7));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let tree = samples.tree.as_ref().unwrap();
        let expected =
            Position { shared: names(&["root", "x"]), given: names(&["a"]), suggested: names(&["=b"]) };
        assert_eq!(position(tree, 0, 1), expected);
        assert_eq!(position(tree, 0, 2).given, names(&["x", "a"]));
        std::fs::write(&path, "index,likeliest,neighbours\n1,3,\n").unwrap();
        let error = add(&mut samples, folder.path()).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("damaged"), "{error}");
    }
}
