//! Good inputs that only the program itself makes: what an audit in parts leaves, and a ledger.

use negscale_audit::Ledger;
use negscale_data::own::OwnOptions;
use negscale_run::Stop;
use negscale_run::audit::parts::{FitOptions, ShardNumber, fit, score};
use std::error::Error;
use std::fs;
use std::path::Path;

const ROWS: usize = 90;

type Made = Result<Vec<Vec<u8>>, Box<dyn Error>>;

/// Three clouds of two numbers each as `.npy`.
fn rows() -> Vec<u8> {
    let mut head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({ROWS}, 2), }}");
    while !(10 + head.len() + 1).is_multiple_of(64) {
        head.push(' ');
    }
    head.push('\n');
    let value = |row: usize, column: usize| (row % 3 * (column + 1)) as f32 + (row * 7 % 11) as f32 / 8.0;
    let numbers = (0..ROWS).flat_map(|row| [value(row, 0), value(row, 1)]).flat_map(f32::to_le_bytes);
    [
        &b"\x93NUMPY\x01\x00"[..],
        &(head.len() as u16).to_le_bytes(),
        head.as_bytes(),
        &numbers.collect::<Vec<u8>>(),
    ]
    .concat()
}

/// Fits and scores in a folder: the models, and the manifest and the scores of the only shard.
fn audit(here: &Path) -> Made {
    let (data, labels, out) = (here.join("x.npy"), here.join("labels.csv"), here.join("out"));
    fs::write(&data, rows())?;
    let words = (0..ROWS).map(|row| format!("{}\n", ["a", "b", "c"][(row + usize::from(row % 10 == 0)) % 3]));
    fs::write(&labels, format!("label\n{}", words.collect::<String>()))?;
    let own = OwnOptions { labels: Some(labels), ..OwnOptions::default() };
    let stop = Stop::default();
    fit(&data, &own, &FitOptions { seed: 1, ..FitOptions::default() }, &out, &|_, _| (), &stop)?;
    score(&out, None, ShardNumber::new(1, 1)?, &|_, _| (), &stop)?;
    let names = ["audit.safetensors", "shards/shard-1-of-1.json", "shards/shard-1-of-1.scores"];
    Ok(names.iter().map(|name| fs::read(out.join(name))).collect::<Result<_, _>>()?)
}

fn in_a_folder(make: impl FnOnce(&Path) -> Made) -> Vec<Vec<u8>> {
    let made = tempfile::tempdir().map_err(Into::into).and_then(|folder| make(folder.path()));
    // Without a seed the target is refused, with what went wrong above.
    made.unwrap_or_else(|error| {
        eprintln!("a seed could not be made: {error}");
        Vec::new()
    })
}

/// Models of an audit in parts.
pub fn models() -> Vec<Vec<u8>> {
    in_a_folder(|here| Ok(vec![audit(here)?.swap_remove(0)]))
}

/// The manifest and the scores of a shard, in the form of the target.
pub fn shards() -> Vec<Vec<u8>> {
    in_a_folder(|here| {
        let files = audit(here)?;
        let manifest: serde_json::Value = serde_json::from_slice(&files[1])?;
        let hash = manifest["scores"].as_str().unwrap_or_default();
        let text = String::from_utf8_lossy(&files[1]).replace(hash, "SCORES");
        Ok(vec![[&(text.len() as u16).to_le_bytes()[..], text.as_bytes(), &files[2]].concat()])
    })
}

/// A ledger of three labels and two epochs.
pub fn ledgers() -> Vec<Vec<u8>> {
    in_a_folder(|here| {
        let mut ledger = Ledger::new(&[0, 1, 1], 2, 2)?;
        ledger.begin_epoch(0)?;
        ledger.begin_epoch(1)?;
        let path = here.join("ledger.parquet");
        ledger.save(&path)?;
        Ok(vec![fs::read(path)?])
    })
}
