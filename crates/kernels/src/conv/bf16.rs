//! bf16: the upper half of an `f32`, so 8 bits of mantissa and the same range.

/// The nearest bf16 (ties to even), as an `f32`. Not-a-number stays so.
pub(super) fn round(value: f32) -> f32 {
    let bits = value.to_bits();
    if value.is_nan() {
        return value;
    }
    f32::from_bits(bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
}

/// All values rounded.
pub(super) fn rounded(values: &[f32]) -> Vec<f32> {
    values.iter().map(|&value| round(value)).collect()
}
