//! What is believed about every label; read by selection, audit, plots and checkpoints.
//!
//! For each of $N$ samples:
//!
//! | entry | meaning | at first |
//! |---|---|---|
//! | given label | as it came with the data; never changes | |
//! | believed target | probabilities $t_{i1} \dots t_{iC}$ of the classes | one-hot at the given label |
//! | clean probability | $w_i$, the host's own word on whether the given label is right | none |
//! | losses | one per epoch for the last $K$ epochs | missing |
//! | prediction | what networks in evaluation mode say of the sample, averaged over epochs | missing |
//!
//! Hosts write whole scans or batches ([`SampleIndices`]). An update is checked before anything is written: after an error the
//! ledger is as before. [`Ledger::verdicts`](Ledger::verdicts) answers for every host which labels are wrong and what they should be.

#[cfg(feature = "parquet")]
mod file;
mod rounded;

use crate::predictions::check_labels;
use crate::{Error, Result};
use std::collections::VecDeque;

/// How many epochs' losses are kept by default.
pub const RECENT_EPOCHS: usize = 10;

/// How far from 1 the sum of a believed target may be: what rounding leaves of a softmax over many classes.
const SUM_WITHIN: f64 = 1e-3;

/// Which samples an update is about.
#[derive(Debug, Clone, Copy)]
pub enum SampleIndices<'a> {
    /// Every sample in order: a scan of the whole set.
    All,
    /// These, by their numbers: a batch. If one occurs twice, its last entry counts.
    These(&'a [u32]),
}

/// The epochs whose losses are kept, and how many were looked at for predictions.
pub type Counts = (Vec<u64>, Option<u32>);

/// The losses of one epoch; NaN where a sample was not seen.
#[derive(Debug, Clone)]
struct EpochLosses {
    epoch: u64,
    losses: Vec<f32>,
}

/// Beliefs about every sample.
#[derive(Debug, Clone)]
pub struct Ledger {
    pub(crate) classes: usize,
    recent: usize,
    pub(crate) given: Vec<u32>,
    /// N x C.
    pub(crate) targets: Vec<f32>,
    /// NaN where the host has said nothing.
    pub(crate) clean: Vec<f32>,
    /// Oldest first, at most `recent`.
    epochs: VecDeque<EpochLosses>,
    /// N x C, the mean over `looks` epochs; empty while there are none.
    predictions: Vec<f32>,
    /// 0 for predictions that the next ones replace.
    looks: Option<u32>,
}

/// Two ledgers are equal if every bit is.
impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &[f32], b: &[f32]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        (self.classes, self.recent) == (other.classes, other.recent)
            && self.given == other.given
            && same(&self.targets, &other.targets)
            && same(&self.clean, &other.clean)
            && self.looks == other.looks
            && same(&self.predictions, &other.predictions)
            && self.epochs.len() == other.epochs.len()
            && self
                .epochs
                .iter()
                .zip(&other.epochs)
                .all(|(a, b)| a.epoch == b.epoch && same(&a.losses, &b.losses))
    }
}

impl Ledger {
    /// A new ledger, in which every given label is believed; it keeps the losses of `recent` epochs.
    pub fn new(given: &[u32], classes: usize, recent: usize) -> Result<Self> {
        if recent == 0 {
            return Err(Error::Range { setting: "recent", value: "0".into(), wanted: "must be at least 1" });
        }
        check_labels("given labels", given, classes)?;
        let count = given.len().checked_mul(classes).ok_or_else(|| Error::Samples {
            what: "believed targets",
            problem: format!("{} samples of {classes} classes do not fit into memory", given.len()),
        })?;
        let mut targets = vec![0.0; count];
        for (i, &label) in given.iter().enumerate() {
            targets[i * classes + label as usize] = 1.0;
        }
        let clean = vec![f32::NAN; given.len()];
        Ok(Self {
            classes,
            recent,
            given: given.to_vec(),
            targets,
            clean,
            epochs: VecDeque::new(),
            predictions: Vec::new(),
            looks: None,
        })
    }

    /// How many samples.
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Number of classes C.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How many epochs' losses are kept.
    pub fn recent(&self) -> usize {
        self.recent
    }

    /// Labels as given.
    pub fn given(&self) -> &[u32] {
        &self.given
    }

    /// Believed targets, N x C.
    pub fn targets(&self) -> &[f32] {
        &self.targets
    }

    /// The believed target of a sample, if there is such a sample.
    pub fn target(&self, sample: usize) -> Option<&[f32]> {
        (sample < self.len()).then(|| &self.targets[sample * self.classes..(sample + 1) * self.classes])
    }

    /// The clean probability that the host has set for a sample.
    pub fn clean(&self, sample: usize) -> Option<f32> {
        self.clean.get(sample).copied().filter(|w| !w.is_nan())
    }

    /// Predictions, N x C, the mean over the epochs looked at; nothing before the first.
    pub fn predictions(&self) -> Option<&[f32]> {
        self.looks.map(|_| self.predictions.as_slice())
    }

    /// The epochs whose losses are kept, oldest first.
    pub fn epochs(&self) -> impl ExactSizeIterator<Item = u64> {
        self.epochs.iter().map(|epoch| epoch.epoch)
    }

    /// The kept losses of a sample, oldest first; `None` for an epoch in which it was not seen.
    pub fn losses(&self, sample: usize) -> impl DoubleEndedIterator<Item = Option<f32>> {
        self.epochs.iter().map(move |epoch| epoch.losses.get(sample).copied().filter(|loss| !loss.is_nan()))
    }

    /// Opens an epoch, in which no sample has been seen yet, and lets go of the oldest one beyond `recent`. Epochs must come in
    /// order; opening the newest again (after resuming) forgets what it held.
    pub fn begin_epoch(&mut self, epoch: u64) -> Result<()> {
        let newest = self.epochs.back().map(|newest| newest.epoch);
        let mut losses = match newest {
            Some(newest) if newest > epoch => {
                let problem = format!("epoch {epoch} after epoch {newest}: epochs must come in order");
                return Err(Error::Samples { what: "losses", problem });
            }
            Some(newest) if newest == epoch => self.epochs.pop_back(),
            _ if self.epochs.len() == self.recent => self.epochs.pop_front(),
            _ => None,
        }
        .map_or_else(Vec::new, |old| old.losses);
        losses.clear();
        losses.resize(self.len(), f32::NAN);
        self.epochs.push_back(EpochLosses { epoch, losses });
        Ok(())
    }

    /// Writes losses of the epoch that is open.
    pub fn record_losses(&mut self, samples: SampleIndices, losses: &[f32]) -> Result<()> {
        self.check("losses", samples, losses, 1)?;
        check_losses(samples, losses)?;
        let Some(epoch) = self.epochs.back_mut() else {
            let problem = "no epoch is open: start one first".to_owned();
            return Err(Error::Samples { what: "losses", problem });
        };
        write(&mut epoch.losses, samples, losses, 1);
        Ok(())
    }

    /// Writes the host's own clean probabilities, in [0, 1].
    pub fn set_clean(&mut self, samples: SampleIndices, clean: &[f32]) -> Result<()> {
        self.check("clean probabilities", samples, clean, 1)?;
        check_clean(samples, clean)?;
        write(&mut self.clean, samples, clean, 1);
        Ok(())
    }

    /// Forgets all clean probabilities that were set.
    pub fn forget_clean(&mut self) {
        self.clean.fill(f32::NAN);
    }

    /// Writes believed targets: a row of C probabilities for each sample.
    pub fn set_targets(&mut self, samples: SampleIndices, targets: &[f32]) -> Result<()> {
        self.check("believed targets", samples, targets, self.classes)?;
        check_rows("believed targets", samples, targets, self.classes)?;
        write(&mut self.targets, samples, targets, self.classes);
        Ok(())
    }

    /// Takes what networks say of every sample (N x C probabilities) into the mean over epochs. What is `provisional`, as in a
    /// warm-up, holds until the next call.
    pub fn record_predictions(&mut self, predictions: &[f32], provisional: bool) -> Result<()> {
        self.check("predictions", SampleIndices::All, predictions, self.classes)?;
        check_rows("predictions", SampleIndices::All, predictions, self.classes)?;
        let looks = self.looks.filter(|_| !provisional).unwrap_or(0);
        self.looks = Some(if provisional { 0 } else { looks.saturating_add(1) });
        if looks == 0 {
            self.predictions = predictions.to_vec();
            return Ok(());
        }
        let share = 1.0 / (looks + 1) as f32;
        for (mean, &new) in self.predictions.iter_mut().zip(predictions) {
            // Between the two for any rounding, hence in [0, 1].
            *mean = (*mean * (1.0 - share) + new * share).clamp(mean.min(new), mean.max(new));
        }
        Ok(())
    }

    /// One ledger out of several parts, each with the numbers that its samples have in the whole. Parts know the same
    /// classes and epochs.
    pub fn merge(parts: &[(&Ledger, &[u32])]) -> Result<Self> {
        let count = parts.iter().map(|(ledger, _)| ledger.len()).sum();
        let Some((first, _)) = parts.first() else { return Self::new(&[], 0, 1) };
        let mut whole = Self::new(&vec![0; count], first.classes, first.recent)?;
        let missing = vec![f32::NAN; count];
        whole.epochs = first.epochs().map(|epoch| EpochLosses { epoch, losses: missing.clone() }).collect();
        whole.looks = first.looks;
        whole.predictions = vec![0.0; if first.looks.is_some() { whole.targets.len() } else { 0 }];
        for (ledger, numbers) in parts {
            if numbers.len() != ledger.len()
                || ledger.classes != whole.classes
                || !ledger.epochs().eq(whole.epochs())
                || ledger.looks != first.looks
            {
                let problem = "they differ in samples, classes or epochs".to_owned();
                return Err(Error::Samples { what: "parts of a ledger", problem });
            }
            let these = SampleIndices::These(numbers);
            whole.check("clean probabilities", these, &ledger.clean, 1)?;
            numbers.iter().zip(&ledger.given).for_each(|(&i, &label)| whole.given[i as usize] = label);
            write(&mut whole.targets, these, &ledger.targets, ledger.classes);
            write(&mut whole.clean, these, &ledger.clean, 1);
            if whole.looks.is_some() {
                write(&mut whole.predictions, these, &ledger.predictions, ledger.classes);
            }
            for (whole, part) in whole.epochs.iter_mut().zip(&ledger.epochs) {
                write(&mut whole.losses, these, &part.losses, 1);
            }
        }
        Ok(whole)
    }

    /// Everything but the given labels: epochs and looks; targets, clean probabilities, losses of all epochs kept, predictions.
    pub fn arrays(&self) -> (Counts, [Vec<f32>; 4]) {
        let losses = self.epochs.iter().flat_map(|epoch| &epoch.losses).copied().collect();
        let arrays = [self.targets.clone(), self.clean.clone(), losses, self.predictions.clone()];
        ((self.epochs().collect(), self.looks), arrays)
    }

    /// Takes over what [`arrays`](Self::arrays) gave, if it is of this size.
    pub fn restore(&mut self, (epochs, looks): (&[u64], Option<u32>), arrays: [Vec<f32>; 4]) -> Result<()> {
        let [targets, clean, losses, predictions] = arrays;
        let fits = targets.len() == self.targets.len()
            && clean.len() == self.len()
            && epochs.len() <= self.recent
            && losses.len() == epochs.len() * self.len()
            && predictions.len() == if looks.is_some() { self.targets.len() } else { 0 };
        if !fits {
            let problem = "its arrays are of another size".to_owned();
            return Err(Error::Samples { what: "saved ledger", problem });
        }
        (self.targets, self.clean) = (targets, clean);
        (self.looks, self.predictions) = (looks, predictions);
        let rows = losses.chunks(self.len().max(1));
        let rows = epochs.iter().zip(rows.chain(std::iter::repeat(&[][..])));
        self.epochs = rows.map(|(&epoch, losses)| EpochLosses { epoch, losses: losses.to_vec() }).collect();
        Ok(())
    }

    /// Checks that there are as many numbers as samples ask for, and that there are such samples.
    fn check(&self, what: &'static str, samples: SampleIndices, values: &[f32], width: usize) -> Result<()> {
        let count = match samples {
            SampleIndices::All => self.len(),
            SampleIndices::These(which) => which.len(),
        };
        let problem = if count.checked_mul(width) != Some(values.len()) {
            format!("{} numbers for {count} samples of {width} each", values.len())
        } else if let SampleIndices::These(which) = samples
            && let Some(outside) = which.iter().find(|&&i| i as usize >= self.len())
        {
            format!("there is no sample {outside}: there are {}", self.len())
        } else {
            return Ok(());
        };
        Err(Error::Samples { what, problem })
    }
}

/// The sample that row `at` of an update is about.
fn number(samples: SampleIndices, at: usize) -> usize {
    match samples {
        SampleIndices::All => at,
        SampleIndices::These(which) => which.get(at).map_or(at, |&sample| sample as usize),
    }
}

fn write(into: &mut [f32], samples: SampleIndices, rows: &[f32], width: usize) {
    match samples {
        SampleIndices::All => into.copy_from_slice(rows),
        SampleIndices::These(which) => {
            for (&sample, row) in which.iter().zip(rows.chunks_exact(width.max(1))) {
                let first = sample as usize * width;
                into[first..first + width].copy_from_slice(row);
            }
        }
    }
}

/// What a number that is none comes from in a training, and what helps.
fn diverged(value: f32) -> &'static str {
    if value.is_finite() {
        ""
    } else {
        ": training may have diverged, which a lower learning rate (`optimiser.lr`) prevents"
    }
}

fn check_losses(samples: SampleIndices, losses: &[f32]) -> Result<()> {
    let Some(at) = losses.iter().position(|loss| !loss.is_finite()) else { return Ok(()) };
    let problem = format!("sample {} has {}{}", number(samples, at), losses[at], diverged(losses[at]));
    Err(Error::Samples { what: "losses", problem })
}

fn check_clean(samples: SampleIndices, clean: &[f32]) -> Result<()> {
    let Some(at) = clean.iter().position(|w| !(0.0..=1.0).contains(w)) else { return Ok(()) };
    let said = diverged(clean[at]);
    let problem = format!("sample {} has {}, which is outside [0, 1]{said}", number(samples, at), clean[at]);
    Err(Error::Samples { what: "clean probabilities", problem })
}

fn check_rows(what: &'static str, samples: SampleIndices, rows: &[f32], classes: usize) -> Result<()> {
    for (at, row) in rows.chunks_exact(classes.max(1)).enumerate() {
        let sum: f64 = row.iter().map(|&t| f64::from(t)).sum();
        let problem = if let Some(class) = row.iter().position(|t| !(0.0..=1.0).contains(t)) {
            format!("{} for class {class}, which is outside [0, 1]{}", row[class], diverged(row[class]))
        } else if (sum - 1.0).abs() > SUM_WITHIN {
            format!("probabilities that sum to {sum}, not 1")
        } else {
            continue;
        };
        let problem = format!("sample {} has {problem}", number(samples, at));
        return Err(Error::Samples { what, problem });
    }
    Ok(())
}
