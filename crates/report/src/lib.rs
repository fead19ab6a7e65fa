//! Readable output of a training run: `metrics.jsonl`, TensorBoard events and one HTML page.
//!
//! | file | written by | for |
//! |---|---|---|
//! | `metrics.jsonl` | [`Journal`], one [`EpochRecord`] per epoch | programs, resuming |
//! | `events.out.tfevents.*` | [`write_events`] | TensorBoard |
//! | `report.html` | [`RunReport`] of a run, [`AuditReport`] of an audit | people |
//!
//! A page is one file that needs no network and no script. Its templates (`templates/`) are compiled in and escape
//! every text they are given: a class called `<script>` stays a class called `<script>`. A content security policy in
//! the page forbids scripts and the network once more, should an escape ever be forgotten.
//!
//! Over several runs: [`Outcome`] reads the results of a finished run, [`Sample`] and [`Paired`] are the statistics, and a [`Table`]
//! is written as text, CSV, Markdown and LaTeX.

mod audit;
mod card;
mod chart;
mod compare;
mod error;
mod events;
mod histogram;
mod journal;
mod matrix;
mod number;
mod outcome;
mod page;
pub mod plot;
mod relations;
mod run;
mod scale;
mod shown;
mod summary;
pub mod table;
mod thumbnail;

pub use audit::{
    AnnotatorRow, AuditReport, ClassRow, ConfusionRow, Correction, Estimate, Expert, Judging, Member,
    NextStep, Outlier, SourceRow, WorstLabel,
};
pub use compare::Comparison;
pub use error::{Error, Result};
pub use events::{encode_events, events_file, write_events};
pub use histogram::Separation;
pub use journal::{Journal, Reading, read_metrics};
pub use matrix::CountMatrix;
pub use negscale_records::EpochRecord;
pub use negscale_records::statistics::{Paired, Sample};
pub use outcome::{Outcome, mark_true_labels, several_instructions, unlike_pairs};
pub use relations::{RelationRow, Relations};
pub use run::{ConfusionRows, RunReport, Suspicious};
pub use scale::Scale;
pub use summary::{Figure, NOISE_ESTIMATED, SummaryRow, TestAccuracy, summarise};
pub use table::Table;
pub use thumbnail::Thumbnail;
