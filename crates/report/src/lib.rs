//! What a training run leaves to read: `metrics.jsonl`, TensorBoard events and one HTML page.
//!
//! | file | written by | for |
//! |---|---|---|
//! | `metrics.jsonl` | [`Journal`], one [`EpochRecord`] per epoch | programs, resuming |
//! | `events.out.tfevents.*` | [`write_events`] | TensorBoard |
//! | `report.html` | [`RunReport`] | people |
//!
//! The page is one file that needs no network and no script. Its templates (`templates/`) are compiled in and escape
//! every text they are given: a class called `<script>` stays a class called `<script>`. A content security policy in
//! the page forbids scripts and the network once more, should an escape ever be forgotten.

mod chart;
mod error;
mod events;
mod histogram;
mod journal;
mod matrix;
mod number;
mod page;
pub mod plot;
mod record;
mod run;
mod scale;
mod summary;
mod thumbnail;

pub use error::{Error, Result};
pub use events::{encode_events, write_events};
pub use histogram::Separation;
pub use journal::{Journal, Reading, read_metrics};
pub use matrix::CountMatrix;
pub use record::EpochRecord;
pub use run::{Rows, RunReport, Suspicious};
pub use scale::Scale;
pub use summary::{Figure, SummaryRow, TestAccuracy, summarise};
pub use thumbnail::Thumbnail;
