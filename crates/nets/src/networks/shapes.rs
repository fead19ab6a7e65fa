//! A network walked with sizes only.

use super::layers::{Conv, Dense, Norm};
use super::run::Run;
use negscale_kernels::{Activation, Window};

/// Rows, columns and channels of an image.
pub(super) type Size = [usize; 3];

/// Follows sizes through a network, counts the multiply-adds of one sample and keeps the first reason why the input does
/// not fit.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    /// Multiply-adds of convolutions and dense layers.
    pub multiply_adds: u64,
    /// Why the input does not fit.
    pub misfit: Option<String>,
}

impl Shapes {
    fn complain(&mut self, reason: impl FnOnce() -> String) {
        if self.misfit.is_none() {
            self.misfit = Some(reason());
        }
    }

    fn slide(&mut self, [h, w, c]: Size, window: Window) -> Size {
        let mut out = [1; 2];
        for (axis, size) in [h, w].into_iter().enumerate() {
            let padded = size + 2 * window.padding[axis];
            match padded.checked_sub(window.kernel[axis]) {
                Some(room) => out[axis] = room / window.stride[axis] + 1,
                None => self.complain(|| {
                    let [rows, columns] = window.kernel;
                    format!("the image is too small: {h} x {w} values are left where a {rows} x {columns} window must fit")
                }),
            }
        }
        [out[0], out[1], c]
    }
}

impl Run for Shapes {
    type Image = Size;
    type Row = usize;

    fn conv(&mut self, layer: &Conv, x: Size) -> Size {
        let [outputs, inputs, rows, columns] = layer.weight.lazy_shape().dims();
        if x[2] != inputs {
            self.complain(|| format!("it has {} channels where {inputs} are expected", x[2]));
        }
        let [h, w, _] = self.slide(x, layer.window);
        self.multiply_adds += (h * w * outputs * inputs * rows * columns) as u64;
        [h, w, outputs]
    }

    fn conv_add(&mut self, layer: &Conv, x: Size, _: Size) -> Size {
        self.conv(layer, x)
    }

    fn conv_scaled(&mut self, layer: &Conv, x: Size, _: Size, _: f64, _: Activation) -> Size {
        self.conv(layer, x)
    }

    fn norm(&mut self, _: &Norm, x: Size, _: Activation) -> Size {
        x
    }

    fn norm_add(&mut self, _: &Norm, x: Size, _: Size, _: Activation) -> Size {
        x
    }

    fn norm_row(&mut self, _: &Norm, x: usize, _: Activation) -> usize {
        x
    }

    fn max_pool(&mut self, x: Size, window: Window) -> Size {
        self.slide(x, window)
    }

    fn avg_pool(&mut self, x: Size, window: Window) -> Size {
        self.slide(x, window)
    }

    fn mean_pool(&mut self, x: Size) -> usize {
        x[2]
    }

    fn grid_pool(&mut self, x: Size, side: usize) -> usize {
        x[2] * side * side
    }

    fn flatten(&mut self, x: Size) -> usize {
        x.iter().product()
    }

    fn widen(&mut self, [h, w, c]: Size, before: usize, after: usize) -> Size {
        [h, w, c + before + after]
    }

    fn join(&mut self, parts: Vec<Size>) -> Size {
        let channels = parts.iter().map(|part| part[2]).sum();
        parts.first().map_or([0; 3], |&[h, w, _]| [h, w, channels])
    }

    fn dense(&mut self, layer: &Dense, x: usize, _: Activation) -> usize {
        let [outputs, inputs] = layer.weight.lazy_shape().dims();
        if x != inputs {
            self.complain(|| format!("{x} values reach a dense layer that takes {inputs}"));
        }
        self.multiply_adds += (outputs * inputs) as u64;
        outputs
    }

    fn relu(&mut self, x: usize) -> usize {
        x
    }

    fn dropout(&mut self, x: usize, _: f64, _: &str) -> usize {
        x
    }

    fn drop_channels(&mut self, x: Size, _: f64, _: &str) -> Size {
        x
    }

    fn keep_first(&mut self, x: usize, _: usize) -> usize {
        x
    }
}
