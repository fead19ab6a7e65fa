//! An audit in shards is the same for any number of them, and what does not belong together is noticed.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use negscale_audit::shards::{
    Counts, MadeBy, RowScore, RowScorer, RowSource, Sample, SampleSettings, ScoredShard, ShardNumber, Shards,
    Work, block_rows, hash_file, score_shard, text_id,
};
use negscale_audit::{Cells, Error, Result};
use std::ops::Range;
use std::path::Path;
use tempfile::TempDir;

const DIM: usize = 3;
const CLASSES: usize = 4;

/// Rows that are a function of their numbers; `salt` makes others.
struct Rows {
    given: Vec<u32>,
    salt: u64,
    fails_at: Option<u64>,
}

impl Rows {
    fn new(rows: u64) -> Self {
        let given = (0..rows).map(|row| (row * row % 7 % CLASSES as u64) as u32).collect();
        Self { given, salt: 0, fails_at: None }
    }
}

impl RowSource for Rows {
    fn rows(&self) -> u64 {
        self.given.len() as u64
    }
    fn dim(&self) -> usize {
        DIM
    }
    fn given(&self) -> &[u32] {
        &self.given
    }
    fn id(&self, row: u64) -> u64 {
        text_id(&format!("row {row}"))
    }
    fn read_rows(&self, rows: Range<u64>, out: &mut Vec<f32>) -> Result<()> {
        if let Some(row) = self.fails_at.filter(|row| rows.contains(row)) {
            return Err(Error::Rows { problem: format!("x.npy, row {row}, column 1: NaN") });
        }
        out.clear();
        out.extend(
            rows.flat_map(|row| (0..DIM as u64).map(move |column| (row * 31 + column + self.salt) % 1009))
                .map(|n| n as f32 / 1009.0),
        );
        Ok(())
    }
}

/// Scores that depend on the whole block, as the last bits of a matrix product may.
struct Scorer {
    sample: Sample,
    fails_on: Option<u64>,
    nonsense: Option<f32>,
}

impl Scorer {
    fn new(rows: &Rows) -> Self {
        let settings = SampleSettings { rows: 500, at_least: 10, folds: 3, seed: 7 };
        Self { sample: Sample::new(&rows.given, CLASSES, settings).unwrap(), fails_on: None, nonsense: None }
    }
}

impl RowScorer for Scorer {
    fn classes(&self) -> usize {
        CLASSES
    }
    fn score(&self, rows: &[f32], ids: &[u64], given: &[u32], out: &mut Vec<RowScore>) -> Result<()> {
        let sum: f32 = rows.iter().sum();
        for (row, (&id, &given)) in rows.chunks(DIM).zip(ids.iter().zip(given)) {
            if self.fails_on == Some(id) {
                return Err(Error::Samples { what: "model", problem: "does not know this row".into() });
            }
            let fold = if self.sample.contains(id, given) { self.sample.fold(id) } else { 9 };
            // Coarse, so that many are equal.
            let score = ((row[0] + row[1] * 0.5 + sum * 1e-6 + fold as f32 * 0.01) * 16.0).floor() / 32.0;
            let score = self.nonsense.unwrap_or(score.clamp(-0.0, 1.0));
            let suggested = (given + 1 + (row[2] * 2.9) as u32) % CLASSES as u32;
            out.push(RowScore { score, suggested, suggested_probability: row[1], flag: score > 0.5 });
        }
        Ok(())
    }
}

fn made_by() -> MadeBy {
    MadeBy { model: "m".into(), version: "1".into(), instructions: "none".into() }
}

fn shard(number: u32, of: u32) -> ShardNumber {
    ShardNumber::new(number, of).unwrap()
}

fn score(rows: &Rows, number: u32, of: u32, folder: &Path) -> Result<ScoredShard> {
    score_shard(rows, &Scorer::new(rows), shard(number, of), &made_by(), folder)
}

fn names() -> Vec<String> {
    ["cat", "=dog", "hen, small", "owl"].map(str::to_owned).to_vec()
}

/// Everything that a merge gives.
fn merged(folder: &Path) -> (Vec<Vec<u8>>, Counts) {
    let shards = Shards::open(folder).unwrap();
    let out = TempDir::new().unwrap();
    let path_of = |row: u64| row.is_multiple_of(2).then(|| format!("row {row}"));
    let path = |name: &str| out.path().join(name);
    shards.save_top(&path("a"), 300, &names(), path_of, Cells::Guarded).unwrap();
    shards.save_rows(&path("b"), &names(), path_of, Cells::Exact).unwrap();
    shards.save_corrected(&path("c"), &names(), path_of).unwrap();
    std::fs::write(path("d"), serde_json::to_vec(shards.counts()).unwrap()).unwrap();
    (["a", "b", "c", "d"].map(|name| std::fs::read(path(name)).unwrap()).to_vec(), shards.counts().clone())
}

fn said<T>(result: Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn any_number_of_shards_in_any_order_on_any_threads_gives_the_same_bytes() {
    // Not a whole number of blocks.
    let rows = Rows::new(block_rows(DIM) * 9 + 77);
    let whole = TempDir::new().unwrap();
    score(&rows, 1, 1, whole.path()).unwrap();
    let expected = merged(whole.path());
    assert!(expected.0[1].len() > 1_000_000);
    for (of, order) in [(3, vec![3, 1, 2]), (7, vec![4, 1, 7, 2, 6, 3, 5]), (25, (1..=25).rev().collect())] {
        for threads in [1, 3] {
            let folder = TempDir::new().unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                order.iter().for_each(|&number| drop(score(&rows, number, of, folder.path()).unwrap()))
            });
            assert!(merged(folder.path()) == expected, "{of} shards, {threads} threads");
        }
    }
}

#[test]
fn counts_and_the_top_list_are_those_of_all_rows() {
    let rows = Rows::new(block_rows(DIM) * 2 + 5);
    let folder = TempDir::new().unwrap();
    score(&rows, 1, 2, folder.path()).unwrap();
    score(&rows, 2, 2, folder.path()).unwrap();
    let shards = Shards::open(folder.path()).unwrap();
    let all = shards.top(usize::MAX).unwrap();
    assert_eq!(all.len(), rows.given.len());
    let is_before = |pair: &[negscale_audit::shards::TopRow]| {
        pair[0].score.score > pair[1].score.score
            || (pair[0].score.score == pair[1].score.score && pair[0].row < pair[1].row)
    };
    assert!(all.windows(2).all(is_before));
    for count in [0, 1, 10, 1000] {
        assert_eq!(shards.top(count).unwrap(), all[..count]);
    }
    let counts = shards.counts();
    let flagged: Vec<_> = all.iter().filter(|row| row.score.flag).collect();
    assert!(!flagged.is_empty() && flagged.len() < all.len());
    assert_eq!((counts.all().rows, counts.all().flagged), (all.len() as u64, flagged.len() as u64));
    let sum: f64 = all.iter().map(|row| f64::from(row.score.score)).sum();
    assert!((counts.all().score_sum() - sum).abs() < 1e-3);
    for (class, group) in (0..).zip(counts.classes()) {
        let of_class = || all.iter().filter(|row| row.given == class);
        assert_eq!(group.rows, of_class().count() as u64);
        assert_eq!(group.flagged, of_class().filter(|row| row.score.flag).count() as u64);
    }
    for ((given, suggested), cell) in counts.cells() {
        let like =
            |row: &&&negscale_audit::shards::TopRow| row.given == given && row.score.suggested == suggested;
        assert_eq!(cell.flagged, flagged.iter().filter(like).count() as u64);
    }
    assert_eq!(counts.cells().map(|(_, cell)| cell.flagged).sum::<u64>(), flagged.len() as u64);
}

#[test]
fn true_labels_and_sources_are_compared_as_by_hand_for_any_number_of_shards() {
    let rows = Rows::new(5000);
    let truth: Vec<u32> =
        (0..5000).map(|row| if row % 5 == 0 { (row % 4) as u32 } else { rows.given[row] }).collect();
    let sources: Vec<u32> = (0..5000).map(|row| u32::from(row % 3 == 0)).collect();
    let mut first = None;
    for of in [1, 3] {
        let folder = TempDir::new().unwrap();
        (1..=of).for_each(|number| drop(score(&rows, number, of, folder.path()).unwrap()));
        let shards = Shards::open(folder.path()).unwrap();
        let found = (shards.compare(&truth).unwrap(), shards.by_group(2, &sources).unwrap());
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found);
        let all = shards.top(5000).unwrap();
        let is_wrong: Vec<bool> = all.iter().map(|row| row.given != truth[row.row as usize]).collect();
        let scores: Vec<f64> = all.iter().map(|row| row.score.score.into()).collect();
        let (compared, groups) = &found;
        let by_hand = negscale_audit::average_precision(&scores, &is_wrong).unwrap();
        assert!((compared.average_precision.unwrap() - by_hand).abs() < 1e-12);
        let count = |is: &dyn Fn(usize) -> bool| (0..all.len()).filter(|&at| is(at)).count() as u64;
        let flag = |at: usize| all[at].score.flag;
        assert_eq!(compared.wrong, count(&|at| is_wrong[at]));
        let (flagged, hits) = (count(&flag), count(&|at| flag(at) && is_wrong[at]));
        assert_eq!(compared.flag_precision, Some(hits as f64 / flagged as f64));
        let named = count(&|at| is_wrong[at] && all[at].score.suggested == truth[all[at].row as usize]);
        assert_eq!(compared.suggestion_accuracy, Some(named as f64 / compared.wrong as f64));
        let changed = |at: usize| flag(at) && all[at].score.suggested_probability > 0.7;
        let kept = count(&|at| !is_wrong[at] && !changed(at));
        assert_eq!(compared.right_kept, Some(kept as f64 / compared.right_before as f64));
        for (source, group) in (0..).zip(groups) {
            let here = |at: usize| sources[all[at].row as usize] == source;
            assert_eq!(*group, (count(&here), count(&|at| here(at) && flag(at))));
        }
        assert!(said(shards.compare(&truth[1..])).contains("4999 true labels for 5000 rows"));
        assert!(shards.by_group(2, &sources[1..]).is_err());
    }
}

#[test]
fn tables_have_the_columns_of_an_audit_and_rows_in_their_order() {
    let rows = Rows::new(100);
    let folder = TempDir::new().unwrap();
    score(&rows, 1, 1, folder.path()).unwrap();
    let (files, _) = merged(folder.path());
    let text = |at: usize| String::from_utf8(files[at].clone()).unwrap();
    let header =
        "index,path,given,suggested,score,clean_probability,suggested_probability,tree_distance,flag";
    assert_eq!((text(0).lines().next(), text(1).lines().next()), (Some(header), Some(header)));
    assert_eq!((text(1).lines().count(), text(2).lines().count()), (101, 101));
    assert!(text(1).lines().nth(1).unwrap().starts_with("0,row 0,cat,"), "{}", text(1));
    assert!(text(2).starts_with("index,path,label,given,changed\n0,row 0,cat,cat,false\n1,,"), "{}", text(2));
    assert!(text(0).contains("'=dog") && !text(1).contains("'=dog") && text(1).contains("\"hen, small\""));
    let shards = Shards::open(folder.path()).unwrap();
    let to = folder.path().join("x.csv");
    assert!(
        said(shards.save_rows(&to, &names()[1..], |_| None, Cells::Exact)).contains("3 names for 4 classes")
    );
    assert!(!to.exists());
}

#[test]
fn a_shard_is_kept_if_nothing_changed_and_done_again_if_its_files_are_cut_off() {
    let rows = Rows::new(block_rows(DIM) * 4);
    let folder = TempDir::new().unwrap();
    assert_eq!(score(&rows, 2, 3, folder.path()).unwrap().work, Work::Scored("it was not there"));
    let first = score(&rows, 2, 3, folder.path()).unwrap();
    assert_eq!(first.work, Work::Kept);
    let (scores, manifest) =
        (folder.path().join("shard-2-of-3.scores"), folder.path().join("shard-2-of-3.json"));
    let whole = (std::fs::read(&scores).unwrap(), std::fs::read(&manifest).unwrap());
    assert_eq!(hash_file(&scores).unwrap(), first.manifest.scores);
    // Killed while scores were written, between the two files, or damaged later.
    let cut_scores = |keep: usize| std::fs::write(&scores, &whole.0[..keep]).unwrap();
    let mends: [(&dyn Fn(), &str); 5] = [
        (&|| cut_scores(1000), "scores were missing or damaged"),
        (&|| std::fs::remove_file(&scores).unwrap(), "scores were missing or damaged"),
        (&|| std::fs::remove_file(&manifest).unwrap(), "not there"),
        (&|| std::fs::write(&manifest, &whole.1[..99]).unwrap(), "manifest was damaged"),
        (&|| std::fs::write(folder.path().join(".shard-2-of-3.scores.1-0.part"), b"half").unwrap(), ""),
    ];
    for (harm, part) in mends {
        harm();
        let again = score(&rows, 2, 3, folder.path()).unwrap();
        match again.work {
            Work::Scored(why) => assert!(!part.is_empty() && why.contains(part), "{why}"),
            Work::Kept => assert!(part.is_empty()),
        }
        assert_eq!((std::fs::read(&scores).unwrap(), std::fs::read(&manifest).unwrap()), whole);
    }
    score(&rows, 1, 3, folder.path()).unwrap();
    score(&rows, 3, 3, folder.path()).unwrap();
    Shards::open(folder.path()).unwrap().remove_leftovers().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 6);
}

#[test]
fn changed_rows_labels_models_and_instructions_are_noticed() {
    let rows = Rows::new(block_rows(DIM) * 3);
    let folder = TempDir::new().unwrap();
    score(&rows, 1, 2, folder.path()).unwrap();
    let work = |rows: &Rows, made_by: &MadeBy| {
        let work = score_shard(rows, &Scorer::new(rows), shard(1, 2), made_by, folder.path()).unwrap().work;
        score(&Rows::new(rows.rows()), 1, 2, folder.path()).unwrap();
        work
    };
    let plain = made_by();
    assert_eq!(work(&rows, &plain), Work::Kept);
    let other = Rows { salt: 1, ..Rows::new(rows.rows()) };
    assert_eq!(work(&other, &plain), Work::Scored("the rows are others now"));
    let mut other = Rows::new(rows.rows());
    // In the other shard.
    *other.given.last_mut().unwrap() ^= 1;
    assert_eq!(work(&other, &plain), Work::Scored("the labels are others now"));
    for (other, part) in [
        (MadeBy { model: "n".into(), ..made_by() }, "another model"),
        (MadeBy { version: "2".into(), ..made_by() }, "another version"),
        (MadeBy { instructions: "avx".into(), ..made_by() }, "other instructions"),
    ] {
        let Work::Scored(why) = work(&rows, &other) else { panic!("kept") };
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn missing_and_overlapping_shards_and_those_of_other_models_are_named() {
    let rows = Rows::new(block_rows(DIM) * 8);
    let folder = TempDir::new().unwrap();
    let open = || said(Shards::open(folder.path()));
    assert!(open().contains("no shard in it"));
    for number in [1, 3, 5] {
        score(&rows, number, 5, folder.path()).unwrap();
    }
    assert!(open().contains("shards 2, 4 of 5 are missing"), "{}", open());
    score(&rows, 4, 5, folder.path()).unwrap();
    assert!(open().contains("shard 2 of 5 is missing"), "{}", open());
    let other = MadeBy { model: "n".into(), ..made_by() };
    score_shard(&rows, &Scorer::new(&rows), shard(2, 5), &other, folder.path()).unwrap();
    assert!(open().contains("shards 1 of 5 and 2 of 5") && open().contains("different models"), "{}", open());
    let other = MadeBy { instructions: "avx".into(), ..made_by() };
    score_shard(&rows, &Scorer::new(&rows), shard(2, 5), &other, folder.path()).unwrap();
    let notes = Shards::open(folder.path()).unwrap().notes().to_vec();
    assert!(notes[0].contains("shard 2 of 5 with avx"), "{notes:?}");
    score(&rows, 2, 3, folder.path()).unwrap();
    assert!(open().contains("both have row") && open().contains("2 of 3"), "{}", open());
    for name in ["shard-2-of-3.json", "shard-3-of-5.json"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    std::fs::copy(folder.path().join("shard-4-of-5.json"), folder.path().join("shard-3-of-5.json")).unwrap();
    assert!(open().contains("that of shard 4 of 5"), "{}", open());
    std::fs::write(folder.path().join("shard-3-of-5.json"), b"{}").unwrap();
    assert!(open().contains("shard-3-of-5.json") && open().contains("score the shard again"), "{}", open());
}

#[test]
fn scores_that_are_not_those_of_the_manifest_are_not_merged() {
    let rows = Rows::new(block_rows(DIM) + 9);
    let folder = TempDir::new().unwrap();
    score(&rows, 1, 1, folder.path()).unwrap();
    let path = folder.path().join("shard-1-of-1.scores");
    let whole = std::fs::read(&path).unwrap();
    let out = TempDir::new().unwrap();
    let shards = Shards::open(folder.path()).unwrap();
    for at in [0, 5, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let told = said(shards.save_rows(&out.path().join("x.csv"), &names(), |_| None, Cells::Exact));
        assert!(told.contains("shard-1-of-1.scores") && told.contains("score the shard again"), "{told}");
    }
    std::fs::write(&path, &whole[1..]).unwrap();
    assert!(said(shards.top(3)).contains("damaged"));
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn an_error_of_scorer_or_rows_leaves_files_as_they_were() {
    let block = block_rows(DIM);
    let rows = Rows::new(block * 6);
    let folder = TempDir::new().unwrap();
    let fails = Scorer { fails_on: Some(rows.id(block * 4 + 1)), ..Scorer::new(&rows) };
    let told = said(score_shard(&rows, &fails, shard(1, 1), &made_by(), folder.path()));
    assert!(told.contains("does not know this row"), "{told}");
    let unreadable = Rows { fails_at: Some(block * 5), ..Rows::new(block * 6) };
    assert!(said(score(&unreadable, 1, 1, folder.path())).contains("x.npy, row"));
    for nonsense in [f32::NAN, -0.5, 1.5] {
        let scorer = Scorer { nonsense: Some(nonsense), ..Scorer::new(&rows) };
        let told = said(score_shard(&rows, &scorer, shard(1, 1), &made_by(), folder.path()));
        assert!(told.contains("that of row 0 is"), "{told}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    score(&rows, 1, 1, folder.path()).unwrap();
    let before = merged(folder.path());
    let other = MadeBy { model: "n".into(), ..made_by() };
    assert!(score_shard(&rows, &fails, shard(1, 1), &other, folder.path()).is_err());
    assert!(merged(folder.path()) == before);
    let mut wrong = Rows::new(10);
    wrong.given[3] = 9;
    let scorer = Scorer::new(&rows);
    assert!(
        said(score_shard(&wrong, &scorer, shard(1, 1), &made_by(), folder.path())).contains("row 3 is 9")
    );
}

#[test]
fn no_rows_and_more_shards_than_blocks_are_shards_too() {
    let folder = TempDir::new().unwrap();
    let none = Rows::new(0);
    for number in 1..=2 {
        score(&none, number, 2, folder.path()).unwrap();
        assert_eq!(score(&none, number, 2, folder.path()).unwrap().work, Work::Kept);
    }
    let (files, counts) = merged(folder.path());
    assert_eq!(
        (counts, files[2].as_slice()),
        (Counts::new(CLASSES), &b"index,path,label,given,changed\n"[..])
    );
    let folder = TempDir::new().unwrap();
    let few = Rows::new(10);
    (1..=4).for_each(|number| drop(score(&few, number, 4, folder.path()).unwrap()));
    assert_eq!(merged(folder.path()).1.all().rows, 10);
}
