//! `metrics.jsonl` on disk: it survives crashes, resumes and numbers that JSON does not have.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use negscale_report::{EpochRecord, Error, Journal, read_metrics};
use proptest::prelude::*;
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("metrics.jsonl");
    (folder, path)
}

fn record(epoch: u64) -> EpochRecord {
    let mut record = EpochRecord::new(epoch, 1.0 / 3.0, 0.1);
    record.losses.insert("cross-entropy".into(), 2.0 / (epoch as f64 + 1.0));
    record.test_accuracy = Some(0.1 + epoch as f64 / 7.0);
    record
}

#[test]
fn records_come_back_as_they_were_written() {
    let (_folder, path) = place();
    let (mut journal, before) = Journal::open(&path).unwrap();
    assert!(before.records.is_empty() && before.note.is_none());
    for epoch in 0..3 {
        journal.append(&record(epoch)).unwrap();
    }
    let reading = read_metrics(&path).unwrap();
    assert_eq!(reading.records, [record(0), record(1), record(2)]);
    assert_eq!(reading.note, None);
}

#[test]
fn a_file_torn_at_any_byte_is_read_and_continued() {
    let (_folder, path) = place();
    let (mut journal, _) = Journal::open(&path).unwrap();
    journal.append(&record(0)).unwrap();
    let first = fs::metadata(&path).unwrap().len() as usize;
    journal.append(&record(1)).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in first..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        // The second record counts once its closing brace is there, with or without the end of its line.
        let survives = length + 1 >= whole.len();
        let (mut journal, reading) = Journal::open(&path).unwrap();
        assert_eq!(reading.records.len(), 1 + usize::from(survives), "cut at {length}");
        assert_eq!(reading.note.is_some(), !survives && length > first, "cut at {length}");
        journal.append(&record(2)).unwrap();
        let after = read_metrics(&path).unwrap();
        assert_eq!(after.note, None, "cut at {length}");
        assert_eq!(after.records.last(), Some(&record(2)), "cut at {length}");
        assert_eq!(after.records.len(), 2 + usize::from(survives), "cut at {length}");
    }
}

#[test]
fn zeros_that_a_lost_write_leaves_at_the_end_are_dropped_with_a_note() {
    let (_folder, path) = place();
    Journal::open(&path).unwrap().0.append(&record(0)).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 100]);
    fs::write(&path, &bytes).unwrap();
    let reading = read_metrics(&path).unwrap();
    assert_eq!(reading.records, [record(0)]);
    assert!(reading.note.unwrap().contains("line 2"));
}

#[test]
fn a_broken_line_before_the_last_is_an_error_that_names_it() {
    let (_folder, path) = place();
    fs::write(&path, "{\"epoch\":0,\"seconds\":1,\"learning_rate\":1}\n{\"epo\n{}\n").unwrap();
    let error = read_metrics(&path).unwrap_err();
    assert!(matches!(error, Error::Line { line: 2, .. }), "{error}");
    assert!(error.to_string().contains("line 2"));
}

#[test]
fn rewinding_keeps_the_epochs_before_and_goes_on_from_there() {
    let (_folder, path) = place();
    let (mut journal, _) = Journal::open(&path).unwrap();
    for epoch in 1..=5 {
        journal.append(&record(epoch)).unwrap();
    }
    let uninterrupted = fs::read(&path).unwrap();
    journal.rewind(2).unwrap();
    assert_eq!(read_metrics(&path).unwrap().records, [record(1), record(2)]);
    for epoch in 3..=5 {
        journal.append(&record(epoch)).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), uninterrupted);
}

#[test]
fn a_missing_folder_is_an_error_that_names_the_file() {
    let (folder, _) = place();
    let path = folder.path().join("absent").join("metrics.jsonl");
    let error = Journal::open(&path).unwrap_err();
    assert!(error.to_string().contains("metrics.jsonl"));
    assert!(std::error::Error::source(&error).is_none(), "what is in the message is no source as well");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_number_comes_back_with_the_same_bits(bits in any::<u64>(), name in "\\PC{0,12}") {
        let number = f64::from_bits(bits);
        let mut record = EpochRecord::new(bits, number, 0.5);
        record.losses.insert(name.clone(), number);
        record.noise_estimate = Some(number);
        let (_folder, path) = place();
        Journal::open(&path).unwrap().0.append(&record).unwrap();
        let back = read_metrics(&path).unwrap().records.remove(0);
        prop_assert_eq!(back.epoch, bits);
        for got in [back.seconds, back.losses[&name], back.noise_estimate.unwrap()] {
            if number.is_finite() { prop_assert_eq!(got.to_bits(), bits) } else { prop_assert!(got.is_nan()) }
        }
    }
}
