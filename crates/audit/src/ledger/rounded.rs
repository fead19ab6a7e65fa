//! Probabilities in few digits, for the ledger that a finished run leaves: with many classes nearly all of a row is next to
//! nothing, and what is rounded to 0 packs to nothing.
//!
//! A row becomes multiples of $1/16384$ that still sum to exactly 1 (largest remainders): every entry is first rounded down,
//! then those that lost most get one unit each until the sum is right. So every entry is less than one unit from what it was.

use super::Ledger;

/// Units in 1; their multiples are exact in `f32`.
const UNITS: f64 = 16_384.0;

impl Ledger {
    /// The same ledger with believed targets and predictions rounded as above. Not for resuming, which wants every bit.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let classes = self.classes.max(1);
        let mut remainders = Vec::with_capacity(classes);
        for row in [&mut self.targets, &mut self.predictions] {
            row.chunks_exact_mut(classes).for_each(|row| round(row, &mut remainders));
        }
        self
    }
}

fn round(row: &mut [f32], remainders: &mut Vec<(f64, usize)>) {
    let sum: f64 = row.iter().map(|&p| f64::from(p)).sum();
    remainders.clear();
    let mut left = UNITS as i64;
    for (class, p) in row.iter_mut().enumerate() {
        let exact = f64::from(*p) / sum * UNITS;
        left -= exact.floor() as i64;
        remainders.push((exact - exact.floor(), class));
        *p = (exact.floor() / UNITS) as f32;
    }
    let left = usize::try_from(left).unwrap_or(0).min(row.len());
    if left == 0 {
        return;
    }
    // Of equal remainders the earlier class comes first, so that the result is one.
    remainders.select_nth_unstable_by(left - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for &(_, class) in &remainders[..left] {
        row[class] += (1.0 / UNITS) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::SampleIndices;
    use proptest::prelude::*;

    #[test]
    fn a_certain_row_stays_as_it_is() {
        let ledger = Ledger::new(&[2, 0], 3, 1).unwrap();
        assert_eq!(ledger.clone().rounded(), ledger);
    }

    proptest! {
        #[test]
        fn rows_still_sum_to_one_and_no_entry_moves_by_a_unit(weights in prop::collection::vec(0.0f32..1.0, 2..300), power in 1i32..9) {
            let powers: Vec<f64> = weights.iter().map(|&w| f64::from(w).powi(power) + 1e-12).collect();
            let sum: f64 = powers.iter().sum();
            let row: Vec<f32> = powers.iter().map(|w| (w / sum) as f32).collect();
            let mut ledger = Ledger::new(&[0], row.len(), 1).unwrap();
            ledger.set_targets(SampleIndices::All, &row).unwrap();
            let rounded = ledger.rounded();
            let total: f64 = rounded.targets().iter().map(|&p| f64::from(p)).sum();
            prop_assert_eq!(total, 1.0);
            for (&now, &before) in rounded.targets().iter().zip(&row) {
                prop_assert!((f64::from(now) - f64::from(before)).abs() < 1.001 / UNITS, "{} from {}", now, before);
            }
        }
    }
}
