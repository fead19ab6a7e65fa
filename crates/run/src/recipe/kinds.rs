//! Optimisers and schedules by the word `kind`: what each kind has by default, and which keys it knows.

use negscale_methods::settings::table;
use negscale_nets::optim::{Adam, OptimiserSettings, Sgd};
use negscale_nets::schedule::{Milestone, Schedule, Shape};
use toml::Table;

/// A table whose keys depend on its `kind`.
pub(super) struct Kinds {
    /// Its name.
    pub table: &'static str,
    /// Every kind: its name, its defaults, and keys without a default.
    pub all: Vec<Kind>,
}

/// One of them.
pub(super) struct Kind {
    pub name: &'static str,
    pub defaults: Table,
    pub optional: &'static [&'static str],
}

impl Kind {
    /// Keys it knows, `kind` among them.
    pub fn keys(&self) -> Vec<&str> {
        self.defaults.keys().map(String::as_str).chain(self.optional.iter().copied()).collect()
    }
}

/// Kinds of optimisers.
pub(super) fn optimisers() -> Kinds {
    let rules = [
        OptimiserSettings::Sgd(Sgd::default()),
        OptimiserSettings::Adam(Adam::default()),
        OptimiserSettings::AdamW(Adam::default()),
    ];
    let all =
        rules.iter().map(|rule| Kind { name: rule.name(), defaults: table(rule), optional: &[] }).collect();
    Kinds { table: "optimiser", all }
}

/// Kinds of schedules. Where a shape has no default, the milestones are those of published training code: steps
/// as for CIFAR-N, the line as in Co-teaching.
pub(super) fn schedules() -> Kinds {
    let shapes: [(_, Shape, &[&str]); 6] = [
        ("constant", Shape::Constant, &[]),
        ("steps", Shape::Steps { at: vec![Milestone::Share(0.6)], factor: 0.1 }, &[]),
        ("last", Shape::Last { epochs: Milestone::Share(0.2), factor: 0.1 }, &[]),
        ("cosine", Shape::Cosine { period: None, floor: 0.0, per_step: false }, &["period"]),
        ("linear", Shape::Linear { start: Milestone::Share(0.4), momentum: None }, &["momentum"]),
        (
            "one-cycle",
            Shape::OneCycle { rise: 0.3, start_divisor: 25.0, end_divisor: 1e4, momentum: None },
            &["momentum"],
        ),
    ];
    let all = shapes.into_iter().map(|(name, shape, optional)| {
        let defaults = table(&Schedule::from(shape));
        Kind { name, defaults, optional }
    });
    Kinds { table: "schedule", all: all.collect() }
}
