//! What nearly every method's file needs.

pub(super) use super::card::{keeps, settings};
pub(super) use super::{
    Batch, Beliefs, Card, Facts, Host, Judges, Kind, KnownNoise, Objective, Plan, Protocol, Provenance,
    Regime, State, Tap, Turn,
};
pub(super) use crate::Result;
pub(super) use crate::ledger;
pub(super) use crate::nets::{Heads, Output, Projection, Samples};
pub(super) use crate::optim::Sgd;
pub(super) use crate::schedule::{Milestone, Shape};
pub(super) use crate::settings::{
    FEW_CLASSES, at_least_1, below_1, milestone, not_negative, positive, positive_share, read, require,
    share, table,
};
pub(super) use crate::trainer::{Scene, first_largest, values};
pub(super) use negscale_data::{Order, View};
