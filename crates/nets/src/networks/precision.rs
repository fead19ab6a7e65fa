//! How products are taken, by name: settings, results and model files say `f32` or `bf16`.

use negscale_kernels::Precision;

/// Names of all precisions.
pub const PRECISIONS: [&str; 2] = ["f32", "bf16"];

/// Its name.
pub fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "f32",
        Precision::Bf16 => "bf16",
    }
}

/// The precision of this name, if there is one.
pub fn precision_named(name: &str) -> Option<Precision> {
    [Precision::F32, Precision::Bf16].into_iter().find(|&precision| precision_name(precision) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_for_a_precision_of_that_name() {
        for name in PRECISIONS {
            assert_eq!(precision_named(name).map(precision_name), Some(name));
        }
        assert_eq!(precision_named("f16"), None);
    }
}
