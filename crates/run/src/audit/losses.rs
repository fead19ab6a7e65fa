//! How the losses of samples went over the epochs of a training.

use negscale_audit::Ledger;

/// A fit still improves if half of all samples have a loss that fell by more than this share of it in the last epoch, ...
const LEAST_FALL: f64 = 0.05;
/// ... and by more than this: what is nearly 0 may fall by half and nothing changes.
const LEAST_STEP: f64 = 0.01;

/// The losses that a ledger keeps: those of the last epochs.
pub struct LossHistory {
    /// The epochs, oldest first.
    pub epochs: Vec<u64>,
    /// By sample, the loss in each of these epochs in which it was seen.
    of: Vec<Vec<Option<f32>>>,
    /// The median over samples in each epoch; none where no sample was seen.
    pub medians: Vec<Option<f64>>,
}

impl LossHistory {
    /// What a ledger has; nothing if it has no loss.
    pub fn of(ledger: &Ledger) -> Option<Self> {
        // For people epochs count from 1.
        let epochs: Vec<u64> = ledger.epochs().map(|epoch| epoch + 1).collect();
        let of: Vec<Vec<Option<f32>>> =
            (0..ledger.len()).map(|sample| ledger.losses(sample).collect()).collect();
        let median = |epoch: usize| {
            let mut seen: Vec<f32> = of.iter().filter_map(|losses| losses[epoch]).collect();
            let middle = seen.len() / 2;
            (!seen.is_empty()).then(|| f64::from(*seen.select_nth_unstable_by(middle, f32::total_cmp).1))
        };
        let medians: Vec<Option<f64>> = (0..epochs.len()).map(median).collect();
        medians.iter().any(Option::is_some).then_some(Self { epochs, of, medians })
    }

    /// The losses of a sample with their epochs, oldest first; epochs in which it was not seen are left out.
    pub fn sample(&self, sample: usize) -> impl DoubleEndedIterator<Item = (u64, f64, Option<f64>)> {
        let losses = self.epochs.iter().zip(&self.medians).zip(&self.of[sample]);
        losses.filter_map(|((&epoch, &median), loss)| Some((epoch, f64::from((*loss)?), median)))
    }

    /// The history of a sample in words.
    pub fn words(&self, sample: usize) -> Option<String> {
        let mut all = self.sample(sample);
        let (first, last) = (all.next()?, all.next_back());
        let typical = |median: Option<f64>| {
            median.map_or(String::new(), |m| format!(", half of all are below {m:.2} there"))
        };
        Some(match last {
            Some((epoch, loss, median)) => format!(
                "its loss went from {:.2} in epoch {} to {loss:.2} in epoch {epoch}{}",
                first.1,
                first.0,
                typical(median)
            ),
            None => format!("its loss is {:.2} in epoch {}{}", first.1, first.0, typical(first.2)),
        })
    }

    /// The median of the last epoch but one and of the last, if the fit was still improving between them.
    pub fn still_improving(&self) -> Option<(f64, f64)> {
        let mut seen = self.medians.iter().rev().flatten();
        let (last, before) = (*seen.next()?, *seen.next()?);
        (before - last > LEAST_STEP.max(LEAST_FALL * before)).then_some((before, last))
    }

    /// What is said of a fit that was still improving after so many epochs.
    pub fn advice(&self, epochs: usize) -> Option<String> {
        let (before, last) = self.still_improving()?;
        Some(format!(
            "the fit was still improving (in the last epoch the median loss fell from {before:.2} to {last:.2}): more epochs (--epochs {}) may \
             change the result",
            2 * epochs
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use negscale_audit::ledger::SampleIndices::{All, These};

    fn history(epochs: &[[f32; 3]]) -> LossHistory {
        let mut ledger = Ledger::new(&[0, 1, 0], 2, 10).unwrap();
        for (epoch, losses) in epochs.iter().enumerate() {
            ledger.begin_epoch(epoch as u64).unwrap();
            ledger.record_losses(All, losses).unwrap();
        }
        LossHistory::of(&ledger).unwrap()
    }

    #[test]
    fn a_fit_improves_if_the_median_loss_falls_clearly() {
        let falling = history(&[[2.0, 2.0, 2.0], [1.0, 1.5, 2.5]]);
        assert_eq!(falling.still_improving(), Some((2.0, 1.5)));
        let words = falling.advice(4).unwrap();
        assert!(words.contains("from 2.00 to 1.50") && words.contains("--epochs 8"), "{words}");
        for settled in [
            &[[2.0, 2.0, 2.0], [1.0, 1.95, 2.5]][..],
            &[[0.012, 0.012, 0.012], [0.006, 0.006, 0.006]],
            &[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]],
            &[[1.0, 1.0, 1.0]],
        ] {
            assert!(history(settled).advice(4).is_none(), "{settled:?}");
        }
    }

    #[test]
    fn a_sample_has_the_losses_of_the_epochs_in_which_it_was_seen() {
        let mut ledger = Ledger::new(&[0, 1], 2, 2).unwrap();
        assert!(LossHistory::of(&ledger).is_none());
        for (epoch, loss) in [(0, 4.0), (1, 3.0), (2, 1.0)] {
            ledger.begin_epoch(epoch).unwrap();
            ledger.record_losses(These(&[0]), &[loss]).unwrap();
        }
        ledger.record_losses(These(&[1]), &[0.5]).unwrap();
        let history = LossHistory::of(&ledger).unwrap();
        assert_eq!(history.epochs, [2, 3]);
        let losses =
            |sample| history.sample(sample).map(|(epoch, loss, _)| (epoch, loss)).collect::<Vec<_>>();
        assert_eq!((losses(0), losses(1)), (vec![(2, 3.0), (3, 1.0)], vec![(3, 0.5)]));
        assert!(
            history.words(0).unwrap().starts_with("its loss went from 3.00 in epoch 2 to 1.00 in epoch 3")
        );
        assert!(history.words(1).unwrap().starts_with("its loss is 0.50 in epoch 3"));
    }
}
