//! Nearest neighbours of doubted labels, and `evidence.csv`: what a review shows beside a label.

use super::account::Account;
use crate::Result;
use crate::csv_rows::write_row;
use anyhow::Context;
use negscale_audit::crossfit::Rows;
use negscale_audit::neighbours::{GoOn, NeighbourSettings, Neighbours, nearest_in_while};
use std::collections::BTreeMap;

/// The file.
pub const FILE: &str = "evidence.csv";
/// Neighbours that are counted as evidence.
pub const NEAR: usize = 10;
/// Flagged labels whose neighbours are counted.
const WITH_NEIGHBOURS: usize = 2_000;
/// Classes that are told of each row.
const LIKELIEST: usize = 9;

/// A row's nearest neighbours, nearest first.
#[derive(Debug, Clone, Default)]
pub struct Near {
    /// Their numbers.
    pub rows: Vec<u32>,
    /// Their labels as given.
    pub labels: Vec<u32>,
}

impl Near {
    /// What was found at a place, for the row `own`.
    pub fn of(near: &Neighbours, at: usize, own: usize, given: &[u32]) -> Self {
        let others = near.indices(at).iter().copied().filter(|&other| other as usize != own);
        let rows: Vec<u32> = others.take(NEAR).collect();
        Self { labels: rows.iter().map(|&row| given[row as usize]).collect(), rows }
    }
}

/// The most suspicious flagged rows.
pub fn doubted(findings: &[negscale_audit::Finding]) -> Vec<usize> {
    findings.iter().filter(|f| f.flag).take(WITH_NEIGHBOURS).map(|f| f.index).collect()
}

/// Neighbours of these rows among all.
pub fn around(
    doubted: &[usize],
    rows: &Rows,
    given: &[u32],
    go_on: GoOn,
) -> negscale_audit::Result<BTreeMap<usize, Near>> {
    if doubted.is_empty() || rows.len() < 3 {
        return Ok(BTreeMap::new());
    }
    let chosen: Vec<f32> = doubted.iter().flat_map(|&row| rows.row(row)).copied().collect();
    // One more: a row is its own nearest.
    let settings = NeighbourSettings { count: NEAR + 1, ..NeighbourSettings::default() };
    let near = nearest_in_while(&Rows::new(&chosen, rows.dim())?, rows, &settings, go_on)?;
    Ok(doubted.iter().enumerate().map(|(at, &row)| (row, Near::of(&near, at, row, given))).collect())
}

/// Classes of every row, likeliest first, and neighbours of doubted ones with their labels, as numbers; nothing if neither is known.
pub fn table(account: &Account) -> Result<Option<Vec<u8>>> {
    let (near, predictions) = (&account.evidence.near, account.evidence.predictions);
    if near.is_empty() && predictions.is_none() {
        return Ok(None);
    }
    let likeliest = |row: usize| {
        let mut entries = predictions.map_or_else(Vec::new, |predictions| predictions.row(row).to_vec());
        // Equals in the order of classes.
        entries.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let classes: Vec<String> =
            entries.iter().take(LIKELIEST).map(|entry| entry.class.to_string()).collect();
        classes.join(" ")
    };
    let mut table = csv::Writer::from_writer(Vec::new());
    write_row(&mut table, ["index", "likeliest", "neighbours"])?;
    for row in 0..account.material.train.len() {
        let of_near = |near: &Near| {
            let pairs = near.rows.iter().zip(&near.labels).map(|(row, label)| format!("{row}:{label}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        let near = near.get(&row).map_or_else(String::new, of_near);
        write_row(&mut table, [&row.to_string(), &likeliest(row), &near])?;
    }
    Ok(Some(table.into_inner().context("cannot write down the evidence")?))
}
