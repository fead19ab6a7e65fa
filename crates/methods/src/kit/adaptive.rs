//! Selection of clean samples by class directions and adaptive neighbours (ANNE).
//!
//! With $z_i$ the features scaled to length 1, $p_i$ the probabilities and $s_i = \max_c p_{ic}$:
//!
//! 1. $y'_i = \arg\max_c p_{ic}$ if $s_i > \gamma_r$, else the given label $\tilde y_i$.
//! 2. Confidences $s$ fall into four groups, $G_1$ the most confident ([`otsu4`]).
//! 3. $G_1, G_2$: clean if the posterior of alignment with the direction of class $y'_i$ is above $\gamma_e$ ([`fine`](mod@super::fine)).
//! 4. $G_3, G_4$: clean if, among $K_i$ nearest samples, $y'_i$ has at least $\theta_s$ of the winner's vote, $K_i$ from the
//!    density around the sample and its group's least number ([`knn`]).
//!
//! In warm-up, step 4 judges everyone, with the largest $K$; so it does if nobody is clean otherwise. A vote has at most $N / C$
//! neighbours (but at least 5): more would be strangers.

use super::fine::fine;
use super::knn::{self, FEWEST, Voters, Votes};
use super::otsu::{Group, otsu4};
use super::{rows, target};
use crate::Result;
use crate::host::Meaning;
use crate::settings::require;
use negscale_nets::Scan;
use serde::{Deserialize, Serialize};

/// Who is clean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdaptiveSettings {
    /// Whether confident predictions replace labels.
    pub relabel: bool,
    /// Confidence above which they do.
    pub gamma_r: f64,
    /// Posterior above which a confident sample is clean.
    pub gamma_e: f64,
    /// Share of the winner's vote that the label of a clean sample has.
    pub theta_s: f64,
    /// Least number of neighbours asked, by group.
    pub fewest: [usize; 4],
    /// Most neighbours asked.
    pub ceiling: usize,
}

impl Default for AdaptiveSettings {
    fn default() -> Self {
        let fewest = [Group::G1, Group::G2, Group::G3, Group::G4].map(Group::fewest_neighbours);
        Self { relabel: true, gamma_r: 0.9, gamma_e: 0.5, theta_s: 1.0, fewest, ceiling: 200 }
    }
}

/// What is held of every sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// $y'$.
    pub labels: Vec<u32>,
    /// Whether $y'$ is clean.
    pub clean: Vec<bool>,
    /// Probability that the label as given is right.
    pub right: Vec<f32>,
    /// Whether nobody was clean but by the vote of everyone.
    pub fell_back: bool,
}

impl Selection {
    /// Clean samples, those of small classes several times; which of them once more often moves on with the epochs.
    pub fn balanced(&self, epoch: usize, classes: usize) -> Vec<u32> {
        let mut members = vec![Vec::new(); classes];
        for (i, &label) in self.labels.iter().enumerate().filter(|(i, _)| self.clean[*i]) {
            members[label as usize].push(i as u32);
        }
        let largest = members.iter().map(Vec::len).max().unwrap_or(0);
        let fill = |class: &Vec<u32>| -> Vec<u32> {
            class.iter().copied().cycle().skip(epoch % class.len().max(1)).take(largest).collect()
        };
        members.iter().flat_map(fill).collect()
    }
}

impl AdaptiveSettings {
    /// What each setting means.
    pub const MEANINGS: &'static [Meaning] = &[
        ("relabel", "whether confident predictions replace labels"),
        ("gamma_r", "confidence above which they do"),
        ("gamma_e", "posterior above which a confident sample is clean"),
        ("theta_s", "a sample is clean if its label has at least this share of the winner's vote"),
        ("fewest", "least number of neighbours that vote, by group, the most confident first"),
        ("ceiling", "largest number of neighbours that vote"),
    ];

    /// Refuses settings out of range.
    pub fn check(&self) -> Result<()> {
        let shares = [("gamma_r", self.gamma_r), ("gamma_e", self.gamma_e), ("theta_s", self.theta_s)];
        for (name, value) in shares {
            require(name, value, (0.0..=1.0).contains(&value), "must be from 0 to 1")?;
        }
        let most = self.ceiling;
        require("ceiling", most as f64, most >= FEWEST, "must be at least 5")?;
        for least in self.fewest {
            let wanted = "each must be at least 1 and at most the ceiling";
            require("fewest", least as f64, (1..=most).contains(&least), wanted)?;
        }
        Ok(())
    }

    /// Assesses all samples by what the network makes of them.
    pub fn select(&self, scan: &Scan, given: &[u32], warming_up: bool) -> Result<Selection> {
        let (samples, classes, dim) = (scan.len(), scan.classes, scan.dim);
        let p = scan.probabilities();
        let z = rows::normalise(&scan.features, dim)?;
        let labels =
            if self.relabel { target::relabel(given, &p, self.gamma_r as f32) } else { given.to_vec() };
        let voters = Voters { labels: &labels, classes };
        let ceiling = self.ceiling.min(samples / classes).max(FEWEST);
        // Whether the label is clean, and the probability that the given one is.
        let hear = |queries: &[usize], votes: Votes| -> Result<Vec<(bool, f32)>> {
            let own: Vec<u32> = queries.iter().map(|&i| labels[i]).collect();
            let agrees = votes.agree(&own, self.theta_s)?;
            let word = |(at, agrees): (usize, bool)| {
                let (row, given) = (votes.row(at), given[queries[at]]);
                (agrees, (row[given as usize] / row.iter().copied().fold(0.0, f64::max)) as f32)
            };
            Ok(agrees.into_iter().enumerate().map(word).collect())
        };
        let everyone: Vec<usize> = (0..samples).collect();
        let (mut held, mut fell_back) = (vec![(false, 0.0); samples], false);
        if warming_up {
            held = hear(&everyone, knn::vote(&z, dim, voters, &everyone, ceiling)?)?;
        } else {
            let confidences: Vec<f32> =
                p.chunks(classes).map(|p| p.iter().copied().fold(0.0, f32::max)).collect();
            let groups = otsu4(&confidences)?.groups;
            let ask = |queries: &[usize]| {
                let fewest = |&i: &usize| self.fewest[groups[i] as usize].min(ceiling);
                let fewest: Vec<usize> = queries.iter().map(fewest).collect();
                hear(queries, knn::adaptive_vote(&z, dim, voters, queries, &fewest, ceiling)?)
            };
            let (sure, unsure): (Vec<usize>, Vec<usize>) =
                everyone.iter().partition(|&&i| groups[i] <= Group::G2);
            let aligned = fine(&z, dim, &labels, classes, self.gamma_e)?;
            sure.iter().for_each(|&i| held[i] = (aligned.clean[i], aligned.posterior[i] as f32));
            unsure.iter().zip(ask(&unsure)?).for_each(|(&i, word)| held[i] = word);
            fell_back = !held.iter().any(|(clean, _)| *clean);
            if fell_back {
                held = ask(&everyone)?;
            }
        }
        let (clean, mut right): (Vec<bool>, Vec<f32>) = held.into_iter().unzip();
        for i in (0..samples).filter(|&i| labels[i] != given[i]) {
            right[i] = p[i * classes + given[i] as usize];
        }
        Ok(Selection { labels, clean, right, fell_back })
    }
}
