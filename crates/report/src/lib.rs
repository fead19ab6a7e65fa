//! What a training run leaves to read: `metrics.jsonl`, TensorBoard events and one HTML page.
//!
//! | file | written by | for |
//! |---|---|---|
//! | `metrics.jsonl` | [`Journal`], one [`EpochRecord`] per epoch | programs, resuming |
//! | `events.out.tfevents.*` | [`write_events`] | TensorBoard |

mod error;
mod events;
mod journal;
mod record;
mod whole;

pub use error::{Error, Result};
pub use events::{encode_events, write_events};
pub use journal::{Journal, Reading, read_metrics};
pub use record::EpochRecord;
