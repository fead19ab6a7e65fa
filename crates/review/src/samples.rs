//! The doubted labels of an audit's folder, most suspicious first, with a few that it does not doubt mixed in. Of very many the most suspicious
//! ones are kept.
//!
//! Those few are drawn from all labels without a flag, each as likely as any other, by a hash of the row: the same ones after every start, and
//! a larger share holds those of a smaller one. They are spread evenly among the flagged ones and shown like them, so that what is decided about
//! them says what the flags miss.

use crate::evidence::Neighbour;
use crate::{Error, Result};
use negscale::Taxonomy;
use negscale_records::cells::unguard;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::fs::File;
use std::path::Path;

/// Further classes that are offered for a row.
const OTHERS: usize = 7;
/// So many flagged rows are kept: more than anybody looks through.
const MOST: usize = 250_000;

/// A row to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its number in the audited data.
    pub row: u64,
    /// Where it is from, if it has a place.
    pub path: String,
    /// Class as given.
    pub given: u32,
    /// Class that is suggested; of a row without a flag the likeliest other one that is known.
    pub suggested: u32,
    /// How suspicious the label is, from 0 to 1.
    pub score: f32,
    /// The models' probability of the suggested class, and of the given one.
    pub probabilities: [Option<f32>; 2],
    /// The models' likeliest class.
    pub predicted: Option<u32>,
    /// Distance of the two classes in the class tree.
    pub tree_distance: Option<u32>,
    /// Whether the audit flagged it.
    pub flagged: bool,
    /// What speaks against the label.
    pub reasons: String,
    /// Classes by the models, likeliest first, where that is known.
    pub likeliest: Vec<u32>,
    /// Its nearest neighbours, nearest first, where they are known.
    pub near: Vec<Neighbour>,
}

/// All rows to look at.
#[derive(Debug)]
pub struct Samples {
    /// Names of classes.
    pub classes: Vec<String>,
    /// In the order in which they are shown.
    pub list: Vec<Sample>,
    /// Rows of the audit that are not flagged.
    pub unflagged: u64,
    /// Flagged rows that are too many to be shown.
    pub left_out: u64,
    /// Neighbours of rows to look at.
    pub near: HashSet<u64>,
    /// The class tree, where it is known.
    pub tree: Option<Taxonomy>,
    place_of: HashMap<u64, usize>,
    /// For every given class what its flagged labels are suggested to be, most frequent first.
    confused: HashMap<u32, Vec<u32>>,
}

impl Samples {
    /// Reads `audit.csv`; `blind` is the share of rows without a flag among those shown.
    ///
    /// # Errors
    /// It cannot be read, is no list of an audit or names an unknown class; the share is not in [0, 0.5].
    pub fn read(path: &Path, classes: &[String], blind: f64) -> Result<Self> {
        Self::read_most(path, classes, blind, MOST)
    }

    fn read_most(path: &Path, classes: &[String], blind: f64, most: usize) -> Result<Self> {
        if !(0.0..=0.5).contains(&blind) {
            return Err(Error::Refused(format!("--blind {blind}: it must be from 0 to 0.5")));
        }
        let (mut flagged, mut unflagged, mut left_out) = (Vec::new(), 0, 0);
        let keep = |flagged: &mut Vec<Sample>, left_out: &mut u64| {
            // Audits in parts list rows in their order.
            flagged.sort_by(|a: &Sample, b| b.score.total_cmp(&a.score));
            *left_out += flagged.len().saturating_sub(most) as u64;
            flagged.truncate(most);
        };
        for sample in Rows::open(path, classes)? {
            match sample? {
                sample if sample.flagged => flagged.push(sample),
                _ => unflagged += 1,
            }
            if flagged.len() >= 2 * most {
                keep(&mut flagged, &mut left_out);
            }
        }
        keep(&mut flagged, &mut left_out);
        let wanted = (blind / (1.0 - blind) * flagged.len() as f64).ceil().min(unflagged as f64) as usize;
        let confused = confusions(&flagged);
        let mut drawn = if wanted > 0 { draw(Rows::open(path, classes)?, wanted)? } else { Vec::new() };
        for sample in &mut drawn {
            suggest(sample, &confused, classes.len());
        }
        let list = mix(flagged, drawn);
        let place_of = list.iter().enumerate().map(|(place, sample)| (sample.row, place)).collect();
        let (classes, near, tree) = (classes.to_vec(), HashSet::new(), None);
        Ok(Self { classes, list, unflagged, left_out, near, tree, place_of, confused })
    }

    /// The place of a row in the list.
    #[must_use]
    pub fn place(&self, row: u64) -> Option<usize> {
        self.place_of.get(&row).copied()
    }

    /// The class of this name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<u32> {
        self.classes.iter().position(|class| class == name).map(|class| class as u32)
    }

    /// The name of a class.
    #[must_use]
    pub fn name(&self, class: u32) -> &str {
        &self.classes[class as usize]
    }

    /// The next likeliest classes beside the given and the suggested one: those of the models, and where these are not known what labels of
    /// this class are most often suggested to be, then the same for the suggested class.
    #[must_use]
    pub fn others(&self, sample: &Sample) -> Vec<u32> {
        let mut others = Vec::new();
        let of = |class| self.confused.get(&class).into_iter().flatten().copied();
        let likeliest = sample.likeliest.iter().copied().chain(sample.predicted);
        for class in likeliest.chain(of(sample.given)).chain(of(sample.suggested)) {
            if others.len() < OTHERS
                && ![sample.given, sample.suggested].contains(&class)
                && !others.contains(&class)
            {
                others.push(class);
            }
        }
        others
    }
}

fn confusions(flagged: &[Sample]) -> HashMap<u32, Vec<u32>> {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    flagged.iter().for_each(|sample| *counts.entry((sample.given, sample.suggested)).or_default() += 1);
    let mut pairs: Vec<_> = counts.into_iter().collect();
    pairs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut confused: HashMap<u32, Vec<u32>> = HashMap::new();
    for ((given, suggested), _) in pairs {
        confused.entry(given).or_default().push(suggested);
    }
    confused
}

/// Rows without a flag with the smallest hashes, in the order of these.
fn draw(rows: Rows, wanted: usize) -> Result<Vec<Sample>> {
    let mut heap: BinaryHeap<(u64, u64)> = BinaryHeap::with_capacity(wanted + 1);
    let mut kept: HashMap<u64, Sample> = HashMap::new();
    for sample in rows {
        let sample = sample?;
        let key = (hash(sample.row), sample.row);
        if sample.flagged || (heap.len() == wanted && heap.peek().is_some_and(|largest| *largest <= key)) {
            continue;
        }
        heap.push(key);
        kept.insert(sample.row, sample);
        if heap.len() > wanted
            && let Some((_, row)) = heap.pop()
        {
            kept.remove(&row);
        }
    }
    Ok(heap.into_sorted_vec().into_iter().filter_map(|(_, row)| kept.remove(&row)).collect())
}

/// A row whose label is its own suggestion is shown with another class, like all others.
fn suggest(sample: &mut Sample, confused: &HashMap<u32, Vec<u32>>, classes: usize) {
    if sample.suggested != sample.given {
        return;
    }
    let known = sample.predicted.filter(|class| *class != sample.given);
    let usual = || confused.get(&sample.given).and_then(|all| all.first().copied());
    let any = (sample.given + 1) % (classes.max(1) as u32);
    sample.suggested = known.or_else(usual).unwrap_or(any);
    sample.probabilities[0] = None;
    sample.tree_distance = None;
}

/// One of the drawn ones, at a place that cannot be foreseen, in every so many of the flagged ones.
fn mix(flagged: Vec<Sample>, drawn: Vec<Sample>) -> Vec<Sample> {
    let (all, some) = (flagged.len(), drawn.len());
    let mut list = Vec::with_capacity(all + some);
    let mut flagged = flagged.into_iter();
    for (at, sample) in drawn.into_iter().enumerate() {
        let (begin, end) = (at * all / some, (at + 1) * all / some);
        let before = hash(sample.row ^ 0x5eed) as usize % (end - begin + 1);
        list.extend(flagged.by_ref().take(before));
        list.push(sample);
        list.extend(flagged.by_ref().take(end - begin - before));
    }
    list.extend(flagged);
    list
}

/// Splitmix64: every bit depends on every bit.
fn hash(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Lines of `audit.csv`.
struct Rows {
    path: std::path::PathBuf,
    records: csv::StringRecordsIntoIter<File>,
    columns: HashMap<String, usize>,
    classes: HashMap<String, u32>,
}

impl Rows {
    fn open(path: &Path, classes: &[String]) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        let mut reader = csv::Reader::from_reader(file);
        let header = reader.headers().map_err(|error| Error::format(path, Some(1), error.to_string()))?;
        let columns: HashMap<String, usize> =
            header.iter().enumerate().map(|(at, name)| (name.to_owned(), at)).collect();
        for needed in ["index", "given", "suggested", "score", "flag"] {
            if !columns.contains_key(needed) {
                let problem = format!(
                    "it has no column `{needed}`, so it is not the list of an audit: audit the data again"
                );
                return Err(Error::format(path, Some(1), problem));
            }
        }
        let classes = classes.iter().zip(0..).map(|(name, class)| (name.clone(), class)).collect();
        Ok(Self { path: path.to_owned(), records: reader.into_records(), columns, classes })
    }

    fn sample(&self, record: &csv::StringRecord) -> Result<Sample> {
        let line = record.position().map(csv::Position::line);
        let wrong = |problem: String| Error::format(&self.path, line, problem);
        let cell = |name: &str| {
            self.columns.get(name).and_then(|&at| record.get(at)).filter(|text| !text.is_empty())
        };
        let needed = |name: &str| {
            cell(name).ok_or_else(|| wrong(format!("`{name}` is missing: audit the data again")))
        };
        let class = |name: &str| {
            let found = self.classes.get(unguard(name)).copied();
            found.ok_or_else(|| {
                wrong(format!("`{}` is no class of the data: audit them again", name.escape_debug()))
            })
        };
        let number = |name: &str| -> Result<Option<f32>> {
            let parse =
                |text: &str| text.parse().map_err(|_| wrong(format!("`{name}` is not a number: {text}")));
            cell(name).map(parse).transpose()
        };
        let row = needed("index")?;
        Ok(Sample {
            row: row.parse().map_err(|_| wrong(format!("`index` is not a whole number: {row}")))?,
            path: cell("path").map(unguard).unwrap_or_default().to_owned(),
            given: class(needed("given")?)?,
            suggested: class(needed("suggested")?)?,
            score: number("score")?.unwrap_or_default(),
            probabilities: [number("suggested_probability")?, number("given_probability")?],
            predicted: cell("predicted").map(class).transpose()?,
            tree_distance: cell("tree_distance").and_then(|text| text.parse().ok()),
            flagged: needed("flag")? == "true",
            reasons: cell("reasons").map(unguard).unwrap_or_default().to_owned(),
            likeliest: Vec::new(),
            near: Vec::new(),
        })
    }
}

impl Iterator for Rows {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.records.next()? {
            Ok(record) => self.sample(&record),
            Err(error) => Err(Error::format(&self.path, None, error.to_string())),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fmt::Write;

    /// So many flagged rows a -> b and a -> c by turns, and so many others, with hostile names.
    pub fn audit(flagged: u64, others: u64, blind: f64) -> Samples {
        let mut text = String::from("index,path,given,suggested,score,flag,predicted,reasons\n");
        for row in 0..flagged {
            let suggested = ["'=b", "c"][usize::from(row % 3 == 2)];
            writeln!(text, "{row},,a,{suggested},0.9,true,{suggested},\"x, y\"").unwrap();
        }
        for row in flagged..flagged + others {
            writeln!(text, "{row},,c,c,0.1,false,c,").unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.csv");
        std::fs::write(&path, text).unwrap();
        Samples::read(&path, &["a", "=b", "c"].map(str::to_owned), blind).unwrap()
    }

    #[test]
    fn flagged_rows_keep_their_order_and_others_are_spread_among_them() {
        let samples = audit(95, 1000, 0.05);
        let rows = |flagged| samples.list.iter().filter(move |s| s.flagged == flagged).map(|s| s.row);
        assert_eq!(rows(true).collect::<Vec<_>>(), (0..95).collect::<Vec<_>>());
        assert_eq!((rows(false).count(), samples.unflagged, samples.list.len()), (5, 1000, 100));
        let places: Vec<usize> = (0..100).filter(|&at| !samples.list[at].flagged).collect();
        assert!(places.iter().enumerate().all(|(i, place)| place / 20 == i), "{places:?}");
        assert!(samples.list.iter().all(|sample| sample.given != sample.suggested));
        let (again, more) = (audit(95, 1000, 0.05), audit(95, 1000, 0.2));
        assert_eq!(samples.list, again.list);
        assert!(rows(false).all(|row| more.place(row).is_some()));
    }

    #[test]
    fn of_many_flagged_rows_the_most_suspicious_are_kept_in_that_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.csv");
        let mut text = String::from("index,given,suggested,score,flag\n");
        (0..50).for_each(|row| writeln!(text, "{row},a,c,0.{:02},true", 10 + (row * 7) % 50).unwrap());
        std::fs::write(&path, text).unwrap();
        let samples = Samples::read_most(&path, &["a", "c"].map(str::to_owned), 0.0, 8).unwrap();
        let scores: Vec<f32> = samples.list.iter().map(|sample| sample.score).collect();
        assert_eq!(scores, [0.59, 0.58, 0.57, 0.56, 0.55, 0.54, 0.53, 0.52]);
        assert_eq!(samples.left_out, 42);
    }

    #[test]
    fn further_classes_are_those_it_is_confused_with() {
        let samples = audit(9, 0, 0.05);
        assert_eq!(samples.list[0].suggested, 1);
        assert_eq!(samples.others(&samples.list[0]), [2]);
        assert_eq!(samples.class("=b"), Some(1));
    }

    #[test]
    fn what_is_no_audit_is_an_error_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.csv");
        let error = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Samples::read(&path, &["a".into()], 0.0).unwrap_err().to_string()
        };
        assert!(error("index,label\n").contains("no column `given`"));
        assert!(
            error("index,given,suggested,score,flag\n0,a,z,1,true\n").contains("line 2: `z` is no class")
        );
        assert!(error("index,given,suggested,score,flag\n0,a,a,much,true\n").contains("not a number"));
    }
}
