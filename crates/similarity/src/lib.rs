//! Is dissimilarity invariant under label noise? What can be said about it from features, labels and a class tree.
//!
//! The paper's observation (Table 1, Figures 1 to 3): under label noise the similarity of samples of related classes moves
//! far from that of a clean run, the similarity of samples of unrelated classes hardly does. This crate measures it on any
//! features, **exactly over all pairs of samples**, in time linear in their number:
//!
//! | quantity | module | in the paper |
//! |---|---|---|
//! | mean and spread of similarity by relation and by pair category | [`similarity`](mod@similarity) | Table 1, Figures 2 and 3 |
//! | what noise changed against a clean run, in the mean and pair by pair | [`change`](mod@change) | Table 1, last row; "Small Clean", "Large Clean" |
//! | mean similarity of every two classes | [`similarity::class_means`] | Figure 1 |
//! | Kendall tau distance and overlap of logits | [`kendall`] | "Why Negative-Pair Similarity Remains Invariant" |
//! | change of similarity in a step of training | [`steps`] | the same, $\lvert\Delta s_{ij}\rvert$ |
//! | change of similarity that one gradient step would make, to first order | [`drift`](mod@drift) | the same, with nothing dropped |
//! | perturbation of features, and both bounds | [`perturbation`] | feature perturbation lemma, error bound theorem |
//! | wrong labels by relation, precision of the pair sets | [`label_noise`] | not in the paper: what its sets are worth |
//!
//! [`Analysis`] holds all of it, as `negscale analyse` writes it.
//!
//! # How all pairs are had in linear time
//!
//! With unit features $u_i$, for two sets of samples $A$, $B$ that do not meet,
//! $$\sum_{i \in A, j \in B} u_i^\top u_j = \langle m_A, m_B\rangle, \qquad
//! \sum_{i \in A, j \in B} (u_i^\top u_j)^2 = \langle M_A, M_B\rangle_F,$$
//! with $m_A = \sum_{i \in A} u_i$ and $M_A = \sum_{i \in A} u_i u_i^\top$. Where a set meets itself, the terms $i = j$ are
//! subtracted and the rest halved. Every question here is about pairs of classes, each divided by whether its labels are
//! right, so a few sums per class answer it: $O(N d^2)$ instead of $O(N^2 d)$.
//!
//! Results do not depend on the number of threads.

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod analysis;
pub mod change;
pub mod drift;
mod error;
mod groups;
pub mod kendall;
pub mod label_noise;
mod labels;
mod moments;
mod pairs;
pub mod perturbation;
mod rotation;
pub mod similarity;
pub mod steps;
mod units;

pub use analysis::{Analysis, Subject, Target};
pub use change::{Change, change};
pub use drift::{Drift, drift};
pub use error::{Error, Result};
pub use label_noise::LabelNoise;
pub use labels::Labels;
pub use pairs::{ByRelation, Categories, Known, Mean, Pairs, RELATIONS, Spread, normalised};
pub use similarity::similarity;
pub use units::Units;
