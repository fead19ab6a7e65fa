//! Dense layers and 1x1 convolutions: products of every pixel with packed weights.

use crate::conv::tile::{self, COLUMNS, Finish, Skip};
use crate::lane::{Lane, dispatch};

/// $y_j = \sum_k w_{jk} x_k + b_j$ (and a skip), kept between 0 and 6 or not.
#[derive(Debug, Clone)]
pub struct Point {
    inputs: usize,
    outputs: usize,
    clips: bool,
    /// Weights in panels of sixteen outputs, filled up with zeros: `panels[(p * inputs + k) * 16 + j]` is that of output `16 p + j`.
    panels: Vec<f32>,
    bias: Vec<f32>,
}

impl Point {
    /// A layer of weights `[outputs, inputs]` and a bias for every output, which clips its results (ReLU6) or leaves them.
    ///
    /// # Panics
    /// If there is no output, or the weights are not `inputs` for each.
    pub fn new(weight: &[f32], bias: &[f32], clips: bool) -> Self {
        let outputs = bias.len();
        assert!(
            outputs > 0 && !weight.is_empty() && weight.len().is_multiple_of(outputs),
            "{} weights cannot belong to {outputs} outputs",
            weight.len()
        );
        let inputs = weight.len() / outputs;
        let mut panels = vec![0.0; outputs.div_ceil(COLUMNS) * inputs * COLUMNS];
        for (j, row) in weight.chunks_exact(inputs).enumerate() {
            for (k, &value) in row.iter().enumerate() {
                panels[(j / COLUMNS * inputs + k) * COLUMNS + j % COLUMNS] = value;
            }
        }
        Self { inputs, outputs, clips, panels, bias: bias.to_vec() }
    }

    /// Numbers of a pixel that comes in.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Numbers of a pixel that goes out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The results of all pixels of `x`, with `skip` added where there is one, to `y`.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn apply(&self, x: &[f32], skip: Option<&[f32]>, y: &mut [f32]) {
        assert!(x.len().is_multiple_of(self.inputs), "{} numbers are no pixels of {}", x.len(), self.inputs);
        let pixels = x.len() / self.inputs;
        assert_eq!(y.len(), pixels * self.outputs, "results of {pixels} pixels");
        assert!(skip.is_none_or(|skip| skip.len() == y.len()), "a skip for every result");
        let target = y.as_mut_ptr();
        let skip = match skip {
            Some(skip) => Skip::Like { target, skip: skip.as_ptr() },
            None => Skip::Nothing,
        };
        // SAFETY: the lengths are right, as was checked.
        unsafe { multiply(self, x.as_ptr(), pixels, skip, target) }
    }
}

dispatch! {
    /// # Safety
    /// `x` has the inputs of all pixels, `y` room for their outputs, and so does the skip.
    unsafe fn multiply = multiply_with(layer: &Point, x: *const f32, pixels: usize, skip: Skip, y: *mut f32)
}

#[inline(always)]
unsafe fn multiply_with<L: Lane>(layer: &Point, x: *const f32, pixels: usize, skip: Skip, y: *mut f32) {
    let panels = layer.outputs.div_ceil(COLUMNS);
    let mut panel = 0;
    // A panel stays in the cache while all pixels pass by.
    while panel < panels {
        let first = panel * COLUMNS;
        let wide = if L::ROWS > 6 && panels - panel > 1 { 2 } else { 1 };
        let columns = (layer.outputs - first).min(wide * COLUMNS);
        let bias = layer.bias[first..].as_ptr();
        let finish = Finish { bias, skip, clips: layer.clips, columns };
        // SAFETY: pointers stay inside what the caller vouches for.
        unsafe {
            let weights = layer.panels.as_ptr().add(panel * layer.inputs * COLUMNS);
            match (L::ROWS, wide) {
                (12, 2) => rows::<L, 12, 2>(layer, x, pixels, weights, y.add(first), &finish),
                (12, _) => rows::<L, 12, 1>(layer, x, pixels, weights, y.add(first), &finish),
                _ => rows::<L, 6, 1>(layer, x, pixels, weights, y.add(first), &finish),
            }
        }
        panel += wide;
    }
}

/// The products of all pixels with `C` panels: `R` pixels at a time, the rest four at a time and then one by one.
///
/// # Safety
/// As for [`multiply`], with `y` at the first column.
#[inline(always)]
unsafe fn rows<L: Lane, const R: usize, const C: usize>(
    layer: &Point,
    x: *const f32,
    pixels: usize,
    weights: *const f32,
    y: *mut f32,
    finish: &Finish,
) {
    let whole = pixels / R * R;
    let fours = whole + (pixels - whole) / 4 * 4;
    // SAFETY: by contract.
    unsafe {
        for at in (0..whole).step_by(R) {
            some::<L, R, C>(layer, x, at, weights, y, finish);
        }
        for at in (whole..fours).step_by(4) {
            some::<L, 4, C>(layer, x, at, weights, y, finish);
        }
        for at in fours..pixels {
            some::<L, 1, C>(layer, x, at, weights, y, finish);
        }
    }
}

/// `R` pixels from `at` on.
///
/// # Safety
/// As for [`rows`].
#[inline(always)]
unsafe fn some<L: Lane, const R: usize, const C: usize>(
    layer: &Point,
    x: *const f32,
    at: usize,
    weights: *const f32,
    y: *mut f32,
    finish: &Finish,
) {
    let inputs = layer.inputs;
    // SAFETY: by contract; offsets are taken without claiming that they lie inside, since `y` begins at a column.
    unsafe {
        let source: [*const f32; R] = std::array::from_fn(|i| x.wrapping_add((at + i) * inputs));
        let target: [*mut f32; R] = std::array::from_fn(|i| y.wrapping_add((at + i) * layer.outputs));
        tile::rows::<L, R, C>(&source, &target, 1, 0, inputs, weights, inputs * COLUMNS, finish);
    }
}
