//! What tests of recipes have in common.

use negscale_run::recipe::{Layers, expand};

/// Fails unless a recipe is refused with words that hold all these parts.
#[track_caller]
pub fn refused(text: &str, parts: &[&str]) {
    let error = expand(Layers::new(), "sweep.toml", text).unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}
