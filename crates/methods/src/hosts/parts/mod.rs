//! What several training methods share, each part by what it holds.

pub(crate) mod contrast;
pub(crate) mod half_split;
mod noise_rate;
pub(crate) mod peer_selection;
pub(crate) mod purification;
pub(crate) mod refurbishing;
pub(crate) mod semi_supervised;
pub(crate) mod small_loss;
pub(crate) mod stages;
pub(crate) mod warm_up;

pub use contrast::ContrastSettings;
pub use noise_rate::Rate;
pub use purification::{PurifiedSettings, TapLabels};
pub use semi_supervised::SemiSettings;
pub use small_loss::SmallLossSettings;
