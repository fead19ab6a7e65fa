//! Mean and standard deviation of the cosine over all pairs of samples, by relation and by category (Table 1, Figures 2, 3).

use crate::Result;
use crate::groups::Division;
use crate::labels::Labels;
use crate::moments::{dot, first_of_units, second};
use crate::pairs::{Pairs, Spread, Sums, normalised};
use crate::units::Units;
use rayon::prelude::*;

/// Similarity of all pairs of samples whose features are not zero.
pub fn similarity(units: &Units, labels: &Labels) -> Result<Pairs<Spread>> {
    labels.fit("rows of features", units.len())?;
    let division = Division::new(labels, |sample| units.has_direction(sample));
    let groupings = division.groupings();
    Ok(division.pairs([first_of_units(&groupings, units), second(&groupings, units, units)], spread))
}

/// From the sums of cosines and of their squares.
pub(crate) fn spread(sums: &Sums<2>) -> Spread {
    let n = sums.pairs as f64;
    let mean = sums.sums[0] / n;
    // Rounding can make a variance of 0 negative.
    let std = (sums.sums[1] / n - mean * mean).max(0.0).sqrt();
    Spread { pairs: sums.pairs, mean, std, normalised: normalised(mean), normalised_std: std / 2.0 }
}

/// Mean cosine of every two classes, C x C, by the labels handed over (Figure 1); pairs of a sample with itself are left out.
/// Absent where there is no pair.
pub fn class_means(units: &Units, labels: &[u32], classes: usize) -> Result<Vec<Vec<Option<f64>>>> {
    if labels.len() != units.len() {
        let (got, need) =
            (format!("there are {}", units.len()), format!("there are {} labels", labels.len()));
        return Err(crate::Error::size("rows of features", got, need));
    }
    let mut members = vec![Vec::new(); classes];
    for (sample, &label) in labels.iter().enumerate().filter(|(sample, _)| units.has_direction(*sample)) {
        if let Some(members) = members.get_mut(label as usize) {
            members.push(sample);
        }
    }
    let sum_of = |members: &Vec<usize>| {
        let mut sum = vec![0.0; units.dim()];
        for &sample in members {
            sum.iter_mut().zip(units.unit(sample)).for_each(|(sum, x)| *sum += x);
        }
        sum
    };
    let sums: Vec<Vec<f64>> = members.par_iter().map(sum_of).collect();
    let mean = |a: usize, b: usize| {
        let (n, m) = (members[a].len() as f64, members[b].len() as f64);
        let (sum, pairs) = if a == b {
            (dot(&sums[a], &sums[a]) - n, n * (n - 1.0))
        } else {
            (dot(&sums[a], &sums[b]), n * m)
        };
        (pairs > 0.0).then(|| sum / pairs)
    };
    Ok((0..classes).map(|a| (0..classes).map(|b| mean(a, b)).collect()).collect())
}
