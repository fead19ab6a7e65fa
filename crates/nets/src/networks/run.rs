//! One description of a network's way from input to output, walked with tensors or with sizes only.
//!
//! [`Run`] is the set of steps a network may take. [`Tensors`] takes them with the kernels; `Shapes` (in `shapes.rs`) only
//! follows sizes: it counts multiply-adds and finds inputs that do not fit before anything is computed.

use super::initial::stream;
use super::layers::{Conv, Dense, Norm};
use super::pass::{Mode, Pass};
use burn::tensor::{Tensor, TensorData};
use negscale_kernels::{self as kernels, Activation, Precision, Window};
use rand_chacha::rand_core::RngCore;

/// The steps of a network. Images are channels-last, rows are `[batch, values]`.
pub(super) trait Run {
    type Image: Clone;
    type Row: Clone;

    fn conv(&mut self, layer: &Conv, x: Self::Image) -> Self::Image;
    /// `conv(x) + skip`.
    fn conv_add(&mut self, layer: &Conv, x: Self::Image, skip: Self::Image) -> Self::Image;
    /// `act(scale * conv(x) + skip)`.
    fn conv_scaled(
        &mut self,
        layer: &Conv,
        x: Self::Image,
        skip: Self::Image,
        scale: f64,
        act: Activation,
    ) -> Self::Image;
    fn norm(&mut self, layer: &Norm, x: Self::Image, act: Activation) -> Self::Image;
    /// `act(norm(x) + skip)`.
    fn norm_add(&mut self, layer: &Norm, x: Self::Image, skip: Self::Image, act: Activation) -> Self::Image;
    fn norm_row(&mut self, layer: &Norm, x: Self::Row, act: Activation) -> Self::Row;
    fn max_pool(&mut self, x: Self::Image, window: Window) -> Self::Image;
    /// Padding does not count.
    fn avg_pool(&mut self, x: Self::Image, window: Window) -> Self::Image;
    /// Mean over all positions.
    fn mean_pool(&mut self, x: Self::Image) -> Self::Row;
    /// Means over a `side` x `side` grid of parts (PyTorch's adaptive pooling), flattened.
    fn grid_pool(&mut self, x: Self::Image, side: usize) -> Self::Row;
    /// One row per image, in PyTorch's order (channels, rows, columns).
    fn flatten(&mut self, x: Self::Image) -> Self::Row;
    /// Zero channels in front and behind.
    fn widen(&mut self, x: Self::Image, before: usize, after: usize) -> Self::Image;
    /// Channels side by side.
    fn join(&mut self, parts: Vec<Self::Image>) -> Self::Image;
    fn dense(&mut self, layer: &Dense, x: Self::Row, act: Activation) -> Self::Row;
    fn relu(&mut self, x: Self::Row) -> Self::Row;
    /// Values dropped one by one; `place` names the layer.
    fn dropout(&mut self, x: Self::Row, share: f64, place: &str) -> Self::Row;
    /// Whole channels of one image dropped.
    fn drop_channels(&mut self, x: Self::Image, share: f64, place: &str) -> Self::Image;
    /// Nested dropout at the first hidden layer (0) or the features (1).
    fn keep_first(&mut self, x: Self::Row, level: usize) -> Self::Row;
}

/// Takes the steps with tensors.
pub(super) struct Tensors<'a> {
    pub pass: &'a Pass,
    pub precision: Precision,
}

impl Tensors<'_> {
    fn normed(&self, layer: &Norm, x: Tensor<4>, skip: Option<Tensor<4>>, act: Activation) -> Tensor<4> {
        let (scale, shift) = (layer.weight.val(), layer.bias.val());
        let (scale, shift) = match self.pass.mode {
            Mode::Train | Mode::Rehearse => {
                let [b, h, w, _] = x.dims();
                let found = match skip {
                    Some(skip) => kernels::norm_add(x, scale, shift, skip, layer.epsilon, act),
                    None => kernels::norm(x, scale, shift, layer.epsilon, act),
                };
                if self.pass.mode == Mode::Train {
                    layer.record(found.mean, found.variance, b * h * w);
                }
                return found.out;
            }
            Mode::Frozen => (scale.detach(), shift.detach()),
            Mode::Evaluate => (scale, shift),
        };
        let (mean, variance) = (layer.running_mean.value(), layer.running_var.value());
        kernels::norm_fixed(x, scale, shift, mean, variance, skip, layer.epsilon, act)
    }

    /// `count` values, 0 with probability `share` and `1 / (1 - share)` else.
    fn mask(&self, count: usize, share: f64, place: &str) -> Vec<f32> {
        let mut stream = stream(self.pass.seed, &format!("dropout {place}"), self.pass.step);
        let limit = (share * f64::powi(2.0, 32)) as u64;
        let kept = (1.0 / (1.0 - share)) as f32;
        (0..count).map(|_| if u64::from(stream.next_u32()) < limit { 0.0 } else { kept }).collect()
    }
}

impl Run for Tensors<'_> {
    type Image = Tensor<4>;
    type Row = Tensor<2>;

    fn conv(&mut self, layer: &Conv, x: Tensor<4>) -> Tensor<4> {
        match &layer.bias {
            Some(bias) => kernels::conv_bias(x, layer.weight.val(), bias.val(), layer.window, self.precision),
            None => kernels::conv(x, layer.weight.val(), layer.window, self.precision),
        }
    }

    fn conv_add(&mut self, layer: &Conv, x: Tensor<4>, skip: Tensor<4>) -> Tensor<4> {
        let out = kernels::conv_add(x, layer.weight.val(), skip, layer.window, self.precision);
        match &layer.bias {
            Some(bias) => {
                let bias = bias.val();
                let [channels] = bias.dims();
                out + bias.reshape([1, 1, 1, channels])
            }
            None => out,
        }
    }

    fn conv_scaled(
        &mut self,
        layer: &Conv,
        x: Tensor<4>,
        skip: Tensor<4>,
        scale: f64,
        act: Activation,
    ) -> Tensor<4> {
        // The factor goes into the weights, which are far fewer than the values of the image.
        let mut out = kernels::conv_add(x, layer.weight.val() * scale, skip, layer.window, self.precision);
        if let Some(bias) = &layer.bias {
            let bias = bias.val() * scale;
            let [channels] = bias.dims();
            out = out + bias.reshape([1, 1, 1, channels]);
        }
        kernels::activate(out, act)
    }

    fn norm(&mut self, layer: &Norm, x: Tensor<4>, act: Activation) -> Tensor<4> {
        self.normed(layer, x, None, act)
    }

    fn norm_add(&mut self, layer: &Norm, x: Tensor<4>, skip: Tensor<4>, act: Activation) -> Tensor<4> {
        self.normed(layer, x, Some(skip), act)
    }

    fn norm_row(&mut self, layer: &Norm, x: Tensor<2>, act: Activation) -> Tensor<2> {
        let [b, c] = x.dims();
        self.normed(layer, x.reshape([b, 1, 1, c]), None, act).reshape([b, c])
    }

    fn max_pool(&mut self, x: Tensor<4>, window: Window) -> Tensor<4> {
        kernels::max_pool(x, window)
    }

    fn avg_pool(&mut self, x: Tensor<4>, window: Window) -> Tensor<4> {
        kernels::avg_pool(x, window, false)
    }

    fn mean_pool(&mut self, x: Tensor<4>) -> Tensor<2> {
        kernels::mean_pool(x)
    }

    fn grid_pool(&mut self, x: Tensor<4>, side: usize) -> Tensor<2> {
        let [b, h, w, c] = x.dims();
        let flat = self.flatten(x.clone());
        if [h, w] == [side, side] {
            return flat;
        }
        let matrix =
            Tensor::from_data(TensorData::new(grid_means([h, w], side), [side * side, h * w]), &x.device());
        let means =
            kernels::dense(flat.reshape([b * c, h * w]), matrix, None, Activation::None, Precision::F32);
        means.reshape([b, c * side * side])
    }

    fn flatten(&mut self, x: Tensor<4>) -> Tensor<2> {
        let [b, h, w, c] = x.dims();
        x.permute([0, 3, 1, 2]).reshape([b, c * h * w])
    }

    fn widen(&mut self, x: Tensor<4>, before: usize, after: usize) -> Tensor<4> {
        let [b, h, w, _] = x.dims();
        let device = x.device();
        let zeros = |channels| (channels > 0).then(|| Tensor::zeros([b, h, w, channels], &device));
        Tensor::cat([zeros(before), Some(x), zeros(after)].into_iter().flatten().collect(), 3)
    }

    fn join(&mut self, parts: Vec<Tensor<4>>) -> Tensor<4> {
        Tensor::cat(parts, 3)
    }

    fn dense(&mut self, layer: &Dense, x: Tensor<2>, act: Activation) -> Tensor<2> {
        kernels::dense(x, layer.weight.val(), layer.bias.as_ref().map(|bias| bias.val()), act, self.precision)
    }

    fn relu(&mut self, x: Tensor<2>) -> Tensor<2> {
        kernels::activate(x, Activation::Relu)
    }

    fn dropout(&mut self, x: Tensor<2>, share: f64, place: &str) -> Tensor<2> {
        if share <= 0.0 || !self.pass.drops() {
            return x;
        }
        let [b, c] = x.dims();
        let mask = TensorData::new(self.mask(b * c, share, place), [b, c]);
        let mask = Tensor::from_data(mask, &x.device());
        x * mask
    }

    fn drop_channels(&mut self, x: Tensor<4>, share: f64, place: &str) -> Tensor<4> {
        if share <= 0.0 || !self.pass.drops() {
            return x;
        }
        let [b, _, _, c] = x.dims();
        let mask = TensorData::new(self.mask(b * c, share, place), [b, 1, 1, c]);
        let mask = Tensor::from_data(mask, &x.device());
        x * mask
    }

    fn keep_first(&mut self, x: Tensor<2>, level: usize) -> Tensor<2> {
        let [_, c] = x.dims();
        match self.pass.keep[level] {
            Some(kept) if kept < c => {
                let mask: Vec<f32> = (0..c).map(|channel| if channel < kept { 1.0 } else { 0.0 }).collect();
                let mask = Tensor::from_data(TensorData::new(mask, [1, c]), &x.device());
                x * mask
            }
            _ => x,
        }
    }
}

/// Row (i, j) holds `1 / area` on part (i, j) of the image: rows `floor(i h / side)` up to `ceil((i + 1) h / side)`, and
/// columns likewise.
fn grid_means([h, w]: [usize; 2], side: usize) -> Vec<f32> {
    let part = |i: usize, size: usize| (i * size / side)..((i + 1) * size).div_ceil(side);
    let mut matrix = vec![0.0; side * side * h * w];
    for i in 0..side {
        for j in 0..side {
            let area = part(i, h).len() * part(j, w).len();
            for y in part(i, h) {
                for x in part(j, w) {
                    matrix[(i * side + j) * h * w + y * w + x] = 1.0 / area as f32;
                }
            }
        }
    }
    matrix
}
