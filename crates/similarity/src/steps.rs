//! Change of similarity in one step of training, $\lvert\Delta s_{ij}\rvert = \lvert s_{ij}(t+1) - s_{ij}(t)\rvert$, over the pairs of a small set of samples.

use crate::labels::Labels;
use crate::moments::dot;
use crate::pairs::Mean;
use crate::units::Units;
use crate::{ByRelation, Result};
use rayon::prelude::*;

/// Mean change of the cosine by the relation of the given labels, over all pairs that have a direction before and after.
/// Takes time in the square of the number of samples: meant for some hundreds.
pub fn step_change(before: &Units, after: &Units, labels: &Labels) -> Result<ByRelation<Mean>> {
    labels.fit("rows of features before the step", before.len())?;
    labels.fit("rows of features after the step", after.len())?;
    let rows =
        |units: &Units| -> Vec<Vec<f64>> { (0..units.len()).map(|i| units.unit(i).collect()).collect() };
    let (old, new) = (rows(before), rows(after));
    let usable = |i: usize| before.has_direction(i) && after.has_direction(i);
    let given = labels.given();
    let of_row = |i: usize| {
        let mut sums = [(0.0, 0_u64); 4];
        for j in (i + 1..old.len()).filter(|&j| usable(i) && usable(j)) {
            let (sum, count) = &mut sums[labels.relation(given[i], given[j])];
            *sum += (dot(&new[i], &new[j]) - dot(&old[i], &old[j])).abs();
            *count += 1;
        }
        sums
    };
    let parts: Vec<[(f64, u64); 4]> = (0..old.len()).into_par_iter().map(of_row).collect();
    Ok(ByRelation::of(|relation| {
        let sum: f64 = parts.iter().map(|part| part[relation].0).sum();
        let pairs: u64 = parts.iter().map(|part| part[relation].1).sum();
        (pairs > 0).then(|| Mean { pairs, mean: sum / pairs as f64 })
    }))
}
