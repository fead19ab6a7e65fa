//! What nearly every method's file needs.

pub(crate) use crate::Result;
pub(crate) use crate::host::card::{keeps, settings};
pub(crate) use crate::host::{
    Batch, Beliefs, Card, Facts, Host, HostContext, HostState, ItemKind, KnownNoise, Objective, Phase, Plan,
    PredictedBy, Protocol, Provenance, Regime, Tap,
};
pub(crate) use crate::settings::{
    FEW_CLASSES, at_least_1, below_1, milestone, not_negative, positive, positive_share, read, require,
    share, table,
};
pub(crate) use negscale_audit::ledger;
pub(crate) use negscale_data::{Order, View};
pub(crate) use negscale_nets::optim::Sgd;
pub(crate) use negscale_nets::schedule::{Milestone, Shape};
pub(crate) use negscale_nets::{Heads, Output, Projection, Samples, values};
pub(crate) use negscale_records::statistics::argmax;
