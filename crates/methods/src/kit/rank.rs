//! Samples whose strongest features are the same ones.
//!
//! $S_i$ is the set of the $k$ places where features $f_i$ are largest (by value, not by magnitude; of equals the smaller place).
//! Samples of equal sets, whatever the order inside, are taken as alike whatever their labels. For a batch of $B$ samples in
//! two views, rows $i$ and $i + B$, the positives of a row are
//!
//! $$ P(i) = \{ j \ne i : S_j = S_i \} \cup \{ \text{the other view of } i \}. $$

use super::rows::count;
use crate::{Error, Result};

/// $S_i$ of every row: `k` places each, in ascending order.
pub fn top_sets(features: &[f32], dim: usize, k: usize) -> Result<Vec<u32>> {
    count("features", features, dim)?;
    if k == 0 || k > dim {
        let wanted = "must be at least 1 and at most the number of features";
        return Err(Error::Range { setting: "k", value: k.to_string(), wanted });
    }
    let mut sets = Vec::with_capacity(features.len() / dim * k);
    let mut places: Vec<u32> = Vec::with_capacity(dim);
    for row in features.chunks_exact(dim) {
        places.clear();
        places.extend(0..dim as u32);
        // Adding 0 makes -0 the 0 that it equals.
        let value = |place: u32| row[place as usize] + 0.0;
        places.select_nth_unstable_by(k - 1, |&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
        places[..k].sort_unstable();
        sets.extend_from_slice(&places[..k]);
    }
    Ok(sets)
}

/// Which rows are alike: rows x rows, row after row, false on the diagonal. The second half of the rows are the other views
/// of the first half.
pub fn positives(features: &[f32], dim: usize, k: usize) -> Result<Vec<bool>> {
    let sets = top_sets(features, dim, k)?;
    let rows = sets.len() / k;
    if !rows.is_multiple_of(2) {
        let problem = format!("{rows} rows cannot be two views of a batch: hand over both views");
        return Err(Error::Samples { what: "features", problem });
    }
    let batch = rows / 2;
    let mut alike = Vec::with_capacity(rows * rows);
    for (i, set) in sets.chunks_exact(k).enumerate() {
        let is_alike = |(j, other): (usize, &[u32])| i != j && (set == other || i.abs_diff(j) == batch);
        alike.extend(sets.chunks_exact(k).enumerate().map(is_alike));
    }
    Ok(alike)
}
