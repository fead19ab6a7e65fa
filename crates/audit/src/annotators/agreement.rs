//! Agreement of labels with one another, and of each annotator with all others.
//!
//! **Krippendorff's alpha** for nominal labels, with $m_i$ labels of sample $i$ ($m_i \ge 2$; others are left out), $m_{ic}$ of them of class
//! $c$, $n = \sum_i m_i$ and $n_c = \sum_i m_{ic}$:
//!
//! $$ \alpha = 1 - \frac{D_o}{D_e}, \qquad D_o = \frac1n \sum_i \frac{m_i^2 - \sum_c m_{ic}^2}{m_i - 1}, \qquad
//!    D_e = \frac{n^2 - \sum_c n_c^2}{n (n - 1)}. $$
//!
//! **Consensus of the others** about a label by annotator $a$: the class of largest $r_i(y) / \Theta^a_{y l_{ia}}$, which is the posterior
//! without that label. The annotator has had a part in fitting the matrices of the others, but none in this sample's vote.

use super::Sample;
use super::labels::Labels;
use super::model::Model;
use negscale_records::statistics::argmax;
use rayon::prelude::*;

/// How many of a sample's labels name each class.
fn votes(labels: &Labels, sample: usize, into: &mut [u32]) {
    into.fill(0);
    labels.of_sample(sample).for_each(|(_, class)| into[class as usize] += 1);
}

/// Pairs of labels that agree, each counted in both orders.
fn agreeing(votes: &[u32]) -> u64 {
    votes.iter().map(|&count| u64::from(count) * u64::from(count.saturating_sub(1))).sum()
}

/// Every sample's consensus.
pub(super) fn samples(labels: &Labels, posteriors: &[f32]) -> Vec<Sample> {
    let mut counts = vec![0; labels.classes()];
    let sample = |(sample, row): (usize, &[f32])| {
        votes(labels, sample, &mut counts);
        let (class, count) = (argmax(row), labels.slots_of(sample).len() as u64);
        let pairs = count * count.saturating_sub(1);
        let agreement = (pairs > 0).then(|| (agreeing(&counts) as f64 / pairs as f64) as f32);
        Sample { class, certainty: row[class as usize], labels: count as u32, agreement }
    };
    posteriors.chunks(labels.classes()).enumerate().map(sample).collect()
}

/// Krippendorff's alpha.
pub(super) fn alpha(labels: &Labels) -> Option<f64> {
    let (mut counts, mut totals) = (vec![0; labels.classes()], vec![0u64; labels.classes()]);
    let mut differ = 0.0;
    for sample in 0..labels.samples() {
        let count = labels.slots_of(sample).len() as u64;
        if count < 2 {
            continue;
        }
        votes(labels, sample, &mut counts);
        totals.iter_mut().zip(&counts).for_each(|(total, &count)| *total += u64::from(count));
        differ += (count * (count - 1) - agreeing(&counts)) as f64 / (count - 1) as f64;
    }
    let all: u64 = totals.iter().sum();
    let squares: f64 = totals.iter().map(|&total| (total as f64).powi(2)).sum();
    let by_chance = (all as f64).powi(2) - squares;
    (by_chance > 0.0).then(|| 1.0 - differ * (all - 1) as f64 / by_chance)
}

/// An annotator's labels against the consensus of the others.
pub(super) struct Against {
    /// Labels that others have a say about.
    pub compared: usize,
    agreed: usize,
    /// Of these, by class: labels of the annotator, and of the others' consensus.
    own: Vec<u32>,
    others: Vec<u32>,
}

impl Against {
    pub fn agreement(&self) -> Option<f64> {
        (self.compared > 0).then(|| self.agreed as f64 / self.compared as f64)
    }

    pub fn chance(&self) -> Option<f64> {
        let both = self.own.iter().zip(&self.others).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        (self.compared > 0).then(|| both / (self.compared as f64).powi(2))
    }

    pub fn kappa(&self) -> Option<f64> {
        let (agreement, chance) = (self.agreement()?, self.chance()?);
        (chance < 1.0).then(|| (agreement - chance) / (1.0 - chance))
    }
}

/// Every annotator against the others.
pub(super) fn against_others(labels: &Labels, model: &Model) -> Vec<Against> {
    let classes = labels.classes();
    // The others' consensus for every label of a sample, where there is one.
    let without = |sample: usize| -> Vec<u32> {
        let slots = labels.slots_of(sample);
        if slots.len() < 2 && !model.has_predictions() {
            return Vec::new();
        }
        let mut joint = vec![0.0; classes];
        model.joint(sample, &mut joint);
        let best = |&slot: &u32| {
            let left = joint.iter().zip(model.row(slot)).map(|(all, own)| all - own).enumerate();
            let most =
                left.fold((0, f64::NEG_INFINITY), |best, next| if next.1 > best.1 { next } else { best });
            most.0 as u32
        };
        slots.iter().map(best).collect()
    };
    let consensus: Vec<Vec<u32>> =
        (0..labels.samples()).into_par_iter().with_min_len(256).map(without).collect();
    let none = || Against { compared: 0, agreed: 0, own: vec![0; classes], others: vec![0; classes] };
    let mut all: Vec<Against> = (0..labels.annotators()).map(|_| none()).collect();
    for (sample, others) in consensus.iter().enumerate() {
        for ((annotator, class), &other) in labels.of_sample(sample).zip(others) {
            let against = &mut all[annotator];
            against.compared += 1;
            against.agreed += usize::from(class == other);
            against.own[class as usize] += 1;
            against.others[other as usize] += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_that_of_krippendorffs_own_example() {
        // K. Krippendorff, Computing Krippendorff's alpha-reliability (2011), example C: four observers, twelve units.
        let observers = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."];
        let column = |text: &str| -> Vec<Option<u32>> {
            text.chars().map(|sign| sign.to_digit(10).map(|d| d - 1)).collect()
        };
        let labels = Labels::from_columns(&observers.map(column), 5).unwrap();
        let alpha = alpha(&labels).unwrap();
        assert!((alpha - 0.743).abs() < 5e-4, "{alpha}");
    }

    #[test]
    fn alpha_needs_two_labels_that_meet_and_two_classes() {
        let of = |rows: &[Option<u32>]| alpha(&Labels::from_rows(rows, 2, 2).unwrap());
        assert_eq!(of(&[Some(0), None, None, Some(1)]), None);
        assert_eq!(of(&[Some(0), Some(0), Some(0), Some(0)]), None);
        assert_eq!(of(&[Some(0), Some(0), Some(1), Some(1)]), Some(1.0));
    }
}
