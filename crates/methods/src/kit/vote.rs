//! Clean labels by a vote of confident representations (RankMatch).
//!
//! A sample is confident for class $c$ if both its given label and its prediction are $c$; the $m_c$ of largest $p_i(c)$ represent
//! the class, $m_c = \min(\text{available}, \lceil \rho N / C \rceil)$. The $K$ representations nearest by cosine vote with their
//! classes, balanced by how many a class has ([`super::knn`]). A label is clean if it wins, and its weight is
//! $w_i = v_i(\tilde y_i)$.
//!
//! # Where this differs from the paper
//! The paper's text was out of reach: the numbers, and the balance, are our reading of its abstract. Of equal votes, as of equal
//! probabilities, the smaller class wins. If no class has a representation there is no vote: $v$ and $w$ are 0, nobody is clean.

use super::knn::{Search, Voters, Votes};
use super::rows::{check_labels, count, largest};
use crate::{Error, Result};

const WHAT: &str = "confidence vote";

/// What the representations say of every sample.
#[derive(Debug, Clone, PartialEq)]
pub struct VoteResult {
    /// $v$.
    pub votes: Votes,
    /// Whether each given label wins its vote.
    pub clean: Vec<bool>,
    /// $w$: the vote for each given label.
    pub weights: Vec<f64>,
}

/// Samples that represent each class, in ascending order. `probabilities` are N x C, `rho` is the share of the samples that
/// would represent classes of equal size.
pub fn confident_pool(
    probabilities: &[f32],
    labels: &[u32],
    classes: usize,
    rho: f64,
) -> Result<Vec<Vec<usize>>> {
    let samples = count("probabilities", probabilities, classes)?;
    check_labels(WHAT, labels, samples, classes)?;
    if !(rho > 0.0 && rho <= 1.0) {
        let wanted = "must be above 0 and at most 1";
        return Err(Error::Range { setting: "rho", value: rho.to_string(), wanted });
    }
    let most = (rho * samples as f64 / classes as f64 - 1e-9).ceil() as usize;
    let mut pool = vec![Vec::new(); classes];
    for (sample, (row, &label)) in probabilities.chunks_exact(classes).zip(labels).enumerate() {
        if largest(row) == label as usize {
            pool[label as usize].push(sample);
        }
    }
    for (class, members) in pool.iter_mut().enumerate() {
        let p = |sample: usize| probabilities[sample * classes + class];
        // Stable: of equals the smaller index comes first.
        members.sort_by(|&a, &b| p(b).total_cmp(&p(a)));
        members.truncate(most);
        members.sort_unstable();
    }
    Ok(pool)
}

/// How many vote: in a small set not so many that every class votes with all it has.
pub fn voters(pool: &[Vec<usize>], votes: usize) -> usize {
    let members: usize = pool.iter().map(Vec::len).sum();
    votes.min(members.div_ceil(2 * pool.len().max(1))).max(1)
}

/// The vote of the `k` representations nearest to each sample; rows of `z` have length 1, `pool` is [`confident_pool`]'s.
pub fn confidence_vote(
    z: &[f32],
    dim: usize,
    labels: &[u32],
    pool: &[Vec<usize>],
    k: usize,
) -> Result<VoteResult> {
    let (samples, classes) = (count(WHAT, z, dim)?, pool.len());
    check_labels(WHAT, labels, samples, classes)?;
    let mut members: Vec<(usize, u32)> =
        (0u32..).zip(pool).flat_map(|(class, of)| of.iter().map(move |&sample| (sample, class))).collect();
    members.sort_unstable();
    if let Some((sample, _)) = members.iter().find(|(sample, _)| *sample >= samples) {
        let problem = format!("sample {sample} represents a class: there are {samples}");
        return Err(Error::Samples { what: WHAT, problem });
    }
    if members.is_empty() {
        let votes = Votes { classes, values: vec![0.0; samples * classes], neighbours: vec![0; samples] };
        return Ok(VoteResult { votes, clean: vec![false; samples], weights: vec![0.0; samples] });
    }
    let bank: Vec<f32> =
        members.iter().flat_map(|&(sample, _)| &z[sample * dim..(sample + 1) * dim]).copied().collect();
    let voters: Vec<u32> = members.iter().map(|&(_, class)| class).collect();
    let everyone: Vec<usize> = (0..samples).collect();
    let voters = Voters { labels: &voters, classes };
    let votes = Search::among(&bank, z, dim, k)?.vote(voters, &everyone, |_, near| near.len())?;
    let of_label = |(sample, &label): (usize, &u32)| {
        let row = votes.row(sample);
        (largest(row) == label as usize, row[label as usize])
    };
    let (clean, weights) = labels.iter().enumerate().map(of_label).unzip();
    Ok(VoteResult { votes, clean, weights })
}
