//! What label noise changed: the same pairs in a run and in a clean run.
//!
//! For a kind of pairs with cosines $\tilde s_{ij}$ in the run and $s_{ij}$ in the clean run (the paper's "Small Clean" and "Large Clean"):
//! the difference of the means (Table 1, last row, there of $(1+s)/2$), and, pair by pair, $\sqrt{\mathrm{mean}(\tilde s_{ij} - s_{ij})^2}$ and
//! the correlation of $\tilde s$ with $s$. A mean can stay while every pair moves, so the latter is the harder test of invariance.
//! Cosines do not change when features are rotated, so two networks can be compared like this as they are.

use crate::Result;
use crate::groups::Division;
use crate::labels::Labels;
use crate::moments::{first_of_units, second};
use crate::pairs::{Pairs, Spread, Sums};
use crate::similarity::spread;
use crate::units::Units;
use serde::{Deserialize, Serialize};

/// Change of similarity of a set of pairs against a clean run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Number of unordered pairs.
    pub pairs: u64,
    /// Difference of the mean cosines.
    pub difference: f64,
    /// Difference of the means of (1 + cosine)/2, as in Table 1.
    pub normalised: f64,
    /// The same as a share of the clean value.
    pub relative: f64,
    /// Root of the mean squared change of a pair's cosine.
    pub rms: f64,
    /// Correlation of the pairs' cosines in the two runs; absent where they do not vary.
    pub correlation: Option<f64>,
}

/// Similarity in a run, in a clean run, and what changed; over the samples whose features are zero in neither.
pub fn change(
    run: &Units,
    clean: &Units,
    labels: &Labels,
) -> Result<(Pairs<Spread>, Pairs<Spread>, Pairs<Change>)> {
    labels.fit("rows of features", run.len())?;
    labels.fit("rows of features of the clean run", clean.len())?;
    let division = Division::new(labels, |sample| run.has_direction(sample) && clean.has_direction(sample));
    let groupings = division.groupings();
    let measures = [
        first_of_units(&groupings, run),
        second(&groupings, run, run),
        first_of_units(&groupings, clean),
        second(&groupings, clean, clean),
        second(&groupings, run, clean),
    ];
    let all: Pairs<Sums<5>> = division.pairs(measures, |sums| *sums);
    let part =
        |sums: &Sums<5>, at: usize| Sums { pairs: sums.pairs, sums: [sums.sums[at], sums.sums[at + 1]] };
    let (of_run, of_clean) =
        (all.map(|sums| Some(spread(&part(sums, 0)))), all.map(|sums| Some(spread(&part(sums, 2)))));
    Ok((of_run, of_clean, all.map(|sums| Some(compare(sums)))))
}

fn compare(sums: &Sums<5>) -> Change {
    let n = sums.pairs as f64;
    let [s, ss, c, cc, sc] = sums.sums.map(|sum| sum / n);
    let difference = s - c;
    let spread = ((ss - s * s).max(0.0) * (cc - c * c).max(0.0)).sqrt();
    // Below this the variances are rounding errors.
    let correlation = (spread > 1e-13).then(|| ((sc - s * c) / spread).clamp(-1.0, 1.0));
    Change {
        pairs: sums.pairs,
        difference,
        normalised: difference / 2.0,
        relative: difference / (1.0 + c),
        rms: (ss + cc - 2.0 * sc).max(0.0).sqrt(),
        correlation,
    }
}
