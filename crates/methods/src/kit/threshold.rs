//! A threshold of its own for every sample: the running mean of how sure the network was of it (DISC).
//!
//! Two views $v \in \{w, s\}$ of every sample are predicted in training. With $p_v$ the last predictions, $\tilde y$ the given label and
//! $t_v$ the thresholds, a label is trusted in a view if $p_v(\tilde y) > t_v$. Then
//!
//! - clean $C$: trusted in both views; hard $H$: in one;
//! - corrected $P$: in none, but $\max_c \bar p_c > \min(\bar t + m, c)$, bars being means over the views; its label is the $\arg\max$;
//! - left out: the rest.
//!
//! After that $t_v \leftarrow k\, t_v + (1 - k) \max_c p_v$.

use super::loss::{cross_entropy_rows, generalised_cross_entropy_rows};
use super::rows::largest;
use crate::host::HostState;
use crate::{Error, Result};
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

/// Where thresholds begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// At one by the number of samples.
    Samples,
    /// At one by the number of classes.
    Classes,
}

impl Start {
    /// The first threshold.
    pub fn threshold(self, samples: usize, classes: usize) -> f32 {
        let among = if self == Self::Samples { samples } else { classes };
        1.0 / among.max(1) as f32
    }
}

/// What is made of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Trusted in both views.
    Clean,
    /// Trusted in one.
    Hard,
    /// Surely something else.
    Corrected,
    /// Nobody knows.
    Left,
}

impl Set {
    /// Back from `set as u32`.
    fn of(number: u32) -> Result<Self> {
        let set = [Self::Clean, Self::Hard, Self::Corrected, Self::Left].get(number as usize).copied();
        set.ok_or_else(|| Error::Checkpoint {
            origin: "of the training method".into(),
            problem: format!(
                "there is no set of samples number {number}: it was saved by another version; start over"
            ),
        })
    }
}

/// When labels are corrected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrectionRule {
    /// $m$: how far above its threshold a corrected sample lies.
    pub margin: f32,
    /// $c$: confidence that is enough for any sample.
    pub cap: f32,
}

/// What is known of every sample in one view.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ViewRecord {
    /// $p_v(\tilde y)$.
    pub own: Vec<f32>,
    /// $\max_c p_v$.
    pub most: Vec<f32>,
    /// $t_v$.
    pub threshold: Vec<f32>,
}

impl ViewRecord {
    fn trusts(&self, i: usize) -> bool {
        self.own[i] > self.threshold[i]
    }

    /// $p_v(\tilde y) / (p_v(\tilde y) + t_v)$: above one half where the label is trusted.
    fn trust(&self, i: usize) -> f32 {
        let both = self.own[i] + self.threshold[i];
        if both > 0.0 { self.own[i] / both } else { 0.5 }
    }
}

/// What is known of every sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds {
    /// In the weak and in the strong view.
    pub seen: [ViewRecord; 2],
    /// $\max_c \bar p_c$.
    pub most: Vec<f32>,
    /// $\arg\max_c \bar p_c$, the first of equals.
    pub guess: Vec<u32>,
    /// What is made of every sample.
    pub sets: Vec<Set>,
    /// $\hat y$: the guess when that was decided, whatever is seen of a sample since.
    pub corrected: Vec<u32>,
}

impl Thresholds {
    /// For samples of which nothing was seen; `start` is every $t_v$.
    pub fn new(samples: usize, start: f32) -> Self {
        let zeros = vec![0.0; samples];
        let seen = ViewRecord { own: zeros.clone(), most: zeros.clone(), threshold: vec![start; samples] };
        let sets = vec![Set::Left; samples];
        let guess = vec![0; samples];
        Self { seen: [seen.clone(), seen], most: zeros, corrected: guess.clone(), guess, sets }
    }

    /// Takes in the predictions (a row of probabilities for each sample) of both views; gives their mean.
    pub fn record(&mut self, samples: &[u32], given: &[u32], views: [&[f32]; 2]) -> Vec<f32> {
        let classes = views[0].len() / samples.len().max(1);
        let mean: Vec<f32> = views[0].iter().zip(views[1]).map(|(w, s)| (w + s) / 2.0).collect();
        for (at, (&i, &label)) in samples.iter().zip(given).enumerate() {
            let (i, row) = (i as usize, at * classes..(at + 1) * classes);
            for (seen, view) in self.seen.iter_mut().zip(views) {
                let p = &view[row.clone()];
                (seen.own[i], seen.most[i]) = (p[label as usize], p[largest(p)]);
            }
            let p = &mean[row];
            (self.guess[i], self.most[i]) = (largest(p) as u32, p[largest(p)]);
        }
        mean
    }

    /// Sorts samples by what was seen of them.
    pub fn judge(&mut self, rule: CorrectionRule) {
        self.corrected.clone_from(&self.guess);
        for i in 0..self.sets.len() {
            let threshold = self.seen.iter().map(|seen| seen.threshold[i]).sum::<f32>() / 2.0;
            let is_sure = self.most[i] > (threshold + rule.margin).min(rule.cap);
            self.sets[i] = match self.seen.each_ref().map(|seen| seen.trusts(i)) {
                [true, true] => Set::Clean,
                [false, false] if is_sure => Set::Corrected,
                [false, false] => Set::Left,
                _ => Set::Hard,
            };
        }
    }

    /// Moves the thresholds, of which `keep` $= k$ stays; after [`judge`](Self::judge).
    pub fn advance(&mut self, keep: f32) {
        for ViewRecord { most, threshold, .. } in &mut self.seen {
            super::target::blend(threshold, most, keep);
        }
    }

    /// How much every given label is trusted: the mean of $p_v(\tilde y) / (p_v(\tilde y) + t_v)$ over the views.
    pub fn clean_probabilities(&self) -> Vec<f32> {
        let trust = |i| self.seen.iter().map(|seen| seen.trust(i)).sum::<f32>() / 2.0;
        (0..self.sets.len()).map(trust).collect()
    }

    /// Places of the samples in $C$, $H$ and $P$ in a batch, and the labels they are learnt with.
    pub fn choose(&self, samples: &[u32], given: &[u32]) -> Vec<(usize, u32)> {
        let label = |(at, (&i, &given)): (usize, (&u32, &u32))| match self.sets[i as usize] {
            Set::Clean | Set::Hard => Some((at, given)),
            Set::Corrected => Some((at, self.corrected[i as usize])),
            Set::Left => None,
        };
        samples.iter().zip(given).enumerate().filter_map(label).collect()
    }

    /// Share of the samples of which this is made.
    pub fn share(&self, set: Set) -> f64 {
        let count = self.sets.iter().filter(|&&of| of == set).count();
        count as f64 / self.sets.len().max(1) as f64
    }

    /// $\frac1B \sum_v \sum_{i \in C} \mathrm{CE}(z_{vi}, \tilde y_i)$ and $\frac1B \sum_v \sum_{i \in H} \mathrm{GCE}_q(z_{vi}, \tilde y_i)$ of
    /// the logits of both views of $B$ samples, one view after the other.
    pub fn costs(&self, samples: &[u32], given: &[u32], logits: Tensor<2>, q: f64) -> [Tensor<1>; 2] {
        let (device, given) = (logits.device(), given.repeat(2));
        let among = |set: Set| {
            let weigh =
                |&i: &u32| if self.sets[i as usize] == set { 1.0 / samples.len() as f32 } else { 0.0 };
            let weights = samples.iter().map(weigh).collect::<Vec<f32>>().repeat(2);
            Tensor::<1>::from_data(TensorData::new(weights, [given.len()]), &device)
        };
        let clean = cross_entropy_rows(logits.clone(), &given) * among(Set::Clean);
        let hard = generalised_cross_entropy_rows(logits, &given, q) * among(Set::Hard);
        [clean.sum(), hard.sum()]
    }

    /// Everything, in a form that can be saved.
    pub fn save(&self) -> HostState {
        let mut state = HostState::default();
        for (v, ViewRecord { own, most, threshold }) in self.seen.iter().enumerate() {
            for (name, values) in [("own", own), ("most", most), ("threshold", threshold)] {
                state.floats.insert(format!("{name}{v}"), values.clone());
            }
        }
        state.floats.insert("most".into(), self.most.clone());
        state.whole.insert("guess".into(), self.guess.clone());
        state.whole.insert("corrected".into(), self.corrected.clone());
        state.whole.insert("sets".into(), self.sets.iter().map(|&set| set as u32).collect());
        state
    }

    /// What was saved.
    pub fn restore(mut state: HostState) -> Result<Self> {
        let mut seen = |v: usize| -> Result<ViewRecord> {
            Ok(ViewRecord {
                own: state.take_floats(&format!("own{v}"))?,
                most: state.take_floats(&format!("most{v}"))?,
                threshold: state.take_floats(&format!("threshold{v}"))?,
            })
        };
        Ok(Self {
            seen: [seen(0)?, seen(1)?],
            most: state.take_floats("most")?,
            guess: state.take_whole("guess")?,
            sets: state.take_whole("sets")?.into_iter().map(Set::of).collect::<Result<_>>()?,
            corrected: state.take_whole("corrected")?,
        })
    }
}
