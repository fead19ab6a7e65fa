//! A dense layer whose weights were packed once, for networks that only run forward.

use super::{Shape, bf16, gather};
use crate::scratch::Scratch;
use crate::{Precision, Window};

/// Weights of a dense layer, packed for its product. A row of the result has the same bits whatever rows come with it.
pub struct Packed {
    panels: Scratch,
    inputs: usize,
    outputs: usize,
    precision: Precision,
}

impl Packed {
    /// Packs `weight`, which is `[outputs, inputs]`.
    ///
    /// # Panics
    /// If `weight` has another length, or a size is 0.
    pub fn new(weight: &[f32], [outputs, inputs]: [usize; 2], precision: Precision) -> Self {
        assert!(
            inputs > 0 && outputs > 0 && Some(weight.len()) == inputs.checked_mul(outputs),
            "dense layer: {} weights for {outputs} rows of {inputs}",
            weight.len()
        );
        let shape = shape(1, inputs, outputs);
        shape.checked_out();
        let panels = match precision {
            Precision::F32 => gather::packed(weight, &shape),
            Precision::Bf16 => bf16::packed(weight, &shape),
        };
        Self { panels, inputs, outputs, precision }
    }

    /// Writes `x weight^T + bias + skip` into `y`: rows of `inputs` numbers in, rows of `outputs` numbers out and in `skip`.
    ///
    /// # Panics
    /// If a slice does not have as many rows as `x`, or `bias` not a number for each output.
    pub fn forward(&self, x: &[f32], bias: &[f32], skip: Option<&[f32]>, y: &mut [f32]) {
        let rows = x.len() / self.inputs;
        let fits = |slice: &[f32], width: usize| Some(slice.len()) == rows.checked_mul(width);
        assert!(
            fits(x, self.inputs)
                && fits(y, self.outputs)
                && skip.is_none_or(|skip| fits(skip, self.outputs))
                && bias.len() == self.outputs,
            "dense layer of {} to {}: {} numbers in, {} out, {} in the bias",
            self.inputs,
            self.outputs,
            x.len(),
            y.len(),
            bias.len()
        );
        if rows == 0 {
            return;
        }
        let shape = shape(rows, self.inputs, self.outputs);
        let out = shape.checked_out();
        let (bias, y) = (Some(bias), y.as_mut_ptr());
        // SAFETY: lengths were looked at above, and the panels were packed for these sizes.
        unsafe {
            match self.precision {
                Precision::F32 => gather::forward_packed(x, &self.panels, bias, skip, &shape, out, y),
                Precision::Bf16 => bf16::forward_packed(x, &self.panels, bias, skip, &shape, out, y),
            }
        }
    }
}

/// Rows as the pixels of a narrow image.
fn shape(rows: usize, inputs: usize, outputs: usize) -> Shape {
    Shape { batch: 1, height: rows, width: 1, inputs, outputs, window: Window::square(1, 1, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let value = |n: u32| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / (1u32 << 23) as f32 - 1.0;
        (0..count as u32).map(|n| value(n.wrapping_mul(7).wrapping_add(seed))).collect()
    }

    #[test]
    fn packed_weights_give_what_weights_give_and_a_row_keeps_its_bits_in_any_company() {
        for precision in [Precision::F32, Precision::Bf16] {
            for (inputs, outputs) in [(1, 1), (7, 5), (48, 16), (33, 80), (384, 100)] {
                let weight = numbers(inputs * outputs, 1);
                let bias = numbers(outputs, 2);
                let packed = Packed::new(&weight, [outputs, inputs], precision);
                let (x, skip) = (numbers(300 * inputs, 3), numbers(300 * outputs, 4));
                let all = conv::forward(
                    &x,
                    &weight,
                    Some(&bias),
                    Some(&skip),
                    &shape(300, inputs, outputs),
                    precision,
                );
                for rows in [0, 1, 2, 11, 12, 13, 64, 299, 300] {
                    for threads in [1, 3] {
                        let mut y = vec![f32::NAN; rows * outputs];
                        let (x, skip) = (&x[..rows * inputs], &skip[..rows * outputs]);
                        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                        pool.install(|| packed.forward(x, &bias, Some(skip), &mut y));
                        assert_eq!(
                            y,
                            all[..rows * outputs],
                            "{rows} rows of {inputs} to {outputs}, {precision:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "dense layer of 2 to 3: 4 numbers in, 5 out, 3 in the bias")]
    fn lengths_that_do_not_fit_are_told() {
        let packed = Packed::new(&[0.0; 6], [3, 2], Precision::F32);
        packed.forward(&[0.0; 4], &[0.0; 3], None, &mut [0.0; 5]);
    }
}
