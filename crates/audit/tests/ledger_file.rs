//! The ledger as a file: nothing is lost, and nothing damaged is believed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_audit::ledger::Ledger;
use negscale_audit::ledger::SampleIndices::{All, These};
use proptest::prelude::*;
use std::path::PathBuf;

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ledger-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn ledger() -> Ledger {
    let mut ledger = Ledger::new(&[0, 2, 1, 1], 3, 4).unwrap();
    for epoch in [5, 6, 9] {
        ledger.begin_epoch(epoch).unwrap();
        ledger.record_losses(These(&[0, 3]), &[0.1 * epoch as f32, -0.0]).unwrap();
    }
    ledger.record_losses(These(&[1]), &[f32::MIN_POSITIVE / 4.0]).unwrap();
    ledger.set_clean(These(&[3, 1]), &[1.0 / 3.0, 0.0]).unwrap();
    ledger.set_targets(These(&[2]), &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]).unwrap();
    ledger
}

#[test]
fn what_is_saved_comes_back_bit_for_bit() {
    let folder = folder("round");
    let path = folder.join("ledger.parquet");
    let untouched = Ledger::new(&[1, 0], 2, 3).unwrap();
    let empty = Ledger::new(&[], 5, 1).unwrap();
    let mut empty_with_epochs = empty.clone();
    empty_with_epochs.begin_epoch(u64::MAX).unwrap();
    let mut looked_at = ledger();
    let third = 1.0 / 3.0;
    looked_at.record_predictions(&[third; 12], true).unwrap();
    let provisional = looked_at.clone();
    looked_at.record_predictions(&[1.0, 0.0, 0.0].repeat(4), false).unwrap();
    for ledger in [ledger(), untouched, empty, empty_with_epochs, looked_at, provisional] {
        ledger.save(&path).unwrap();
        assert!(Ledger::load(&path).unwrap() == ledger);
        let first = std::fs::read(&path).unwrap();
        ledger.save(&path).unwrap();
        assert!(std::fs::read(&path).unwrap() == first, "the same ledger gives the same file");
    }
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["ledger.parquet"], "no part is left behind");
}

#[test]
fn a_ledger_of_several_row_groups_comes_back() {
    let path = folder("groups").join("ledger.parquet");
    let given: Vec<u32> = (0..3000).map(|i| i * 7 % 2000).collect();
    let mut ledger = Ledger::new(&given, 2000, 2).unwrap();
    ledger.begin_epoch(0).unwrap();
    let losses: Vec<f32> = (0..3000u16).map(|i| f32::from(i).sqrt()).collect();
    ledger.record_losses(All, &losses).unwrap();
    ledger.save(&path).unwrap();
    assert!(Ledger::load(&path).unwrap() == ledger);
}

#[test]
fn no_damaged_byte_and_no_cut_is_believed() {
    let path = folder("damage").join("ledger.parquet");
    let ledger = ledger();
    ledger.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::panic::set_hook(Box::new(|_| ())); // panics inside are caught; their messages only clutter
    let (mut refused, mut harmless) = (0, 0);
    for at in 0..whole.len() {
        for change in [1 << (at % 8), 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            std::fs::write(&path, &bytes).unwrap();
            match Ledger::load(&path) {
                Ok(found) => {
                    // A byte that carries no meaning, such as one of the name of the program that wrote the file.
                    assert!(found == ledger, "byte {at} changed by {change:#x} was believed");
                    harmless += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("ledger.parquet"), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > harmless, "{refused} refused, {harmless} harmless");
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(Ledger::load(&path).is_err(), "{length} bytes of {}", whole.len());
    }
}

#[test]
fn other_files_are_told_from_ledgers() {
    let folder = folder("other");
    let path = folder.join("ledger.parquet");
    assert!(Ledger::load(&path).unwrap_err().to_string().contains("ledger.parquet"));
    std::fs::write(&path, "index,given\n0,1\n").unwrap();
    assert!(Ledger::load(&path).unwrap_err().to_string().contains("not a Parquet file"));
    ledger().save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for (from, to, told) in [
        ("negscale.ledger.version", "negscale.ledger.versiom", "has no `negscale.ledger.version`"),
        ("clean_probability", "cleen_probability", "columns"),
        ("5,6,9", "5,6,x", "not a list of numbers"),
        ("5,6,9", "5,9,6", "in order"),
        ("5,6,9", "5,6,8", "checksum"),
    ] {
        std::fs::write(&path, replace(&bytes, from, to)).unwrap();
        let error = Ledger::load(&path).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

/// Replaces every occurrence of a text by one of equal length.
fn replace(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let (mut out, mut count) = (bytes.to_vec(), 0);
    for at in 0..=bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from.as_bytes() {
            out[at..at + from.len()].copy_from_slice(to.as_bytes());
            count += 1;
        }
    }
    assert!(count > 0, "`{from}` is not in the file");
    out
}

#[test]
fn a_place_that_cannot_be_written_is_named_and_the_old_file_stays() {
    let folder = folder("place");
    let error = ledger().save(folder.join("missing").join("ledger.parquet")).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    // A folder in the way: the rename fails, and the part goes away.
    let path = folder.join("ledger.parquet");
    std::fs::create_dir_all(path.join("inside")).unwrap();
    assert!(ledger().save(&path).is_err());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_ledger_comes_back(
        given in prop::collection::vec(0..4u32, 0..40), epochs in 0..6u64, recent in 1..4usize,
        seen in prop::collection::vec((0..40u32, -1e30..1e30f32), 0..60), clean in prop::collection::vec((0..40u32, 0.0..=1.0f32), 0..30)
    ) {
        let mut ledger = Ledger::new(&given, 4, recent).unwrap();
        for epoch in 0..epochs {
            ledger.begin_epoch(epoch).unwrap();
            for (sample, loss) in seen.iter().filter(|(sample, _)| u64::from(*sample) % 3 != epoch % 3) {
                let _ = ledger.record_losses(These(&[*sample]), &[*loss]); // some name no sample
            }
        }
        for (sample, w) in clean {
            let _ = ledger.set_clean(These(&[sample]), &[w]);
        }
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ledger-any.parquet");
        ledger.save(&path).unwrap();
        prop_assert!(Ledger::load(&path).unwrap() == ledger);
    }
}
