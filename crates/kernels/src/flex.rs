//! The operations on burn's CPU backend: our kernels for f32, burn's own operations for other floats.
//!
//! The functions here take and give primitives; without a tape they are the whole operation, with one (see [`tape`]) they
//! are its forward pass.
//!
//! [`tape`]: crate::tape

use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{DType, Flex, TensorMetadata};

use crate::norm::{Affine, measure, normalise};
use crate::ops::Ops;
use crate::pool::{self, Grid};
use crate::rows::{contiguous, rewrite, slice, wrap};
use crate::{Activation, Precision, Window, conv, slope, stock};

/// Whether our kernels take these tensors.
pub(crate) fn ours(tensors: &[&impl TensorMetadata]) -> bool {
    tensors.iter().all(|tensor| tensor.dtype() == DType::F32)
}

/// Values per piece where channels do not matter.
pub(crate) const PIECE: usize = 16 * 1024;

/// A convolution, or a dense layer as the convolution of 1x1 images by 1x1 windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Linear {
    pub shape: conv::Shape,
    /// Whether tensors have two axes instead of four.
    pub dense: bool,
    pub act: Activation,
    /// Of the products, forward and backward.
    pub precision: Precision,
}

impl Linear {
    pub fn conv(
        x: &impl TensorMetadata,
        weight: &impl TensorMetadata,
        window: Window,
        precision: Precision,
    ) -> Self {
        let (x, weight) = (x.shape(), weight.shape());
        let window = Window { kernel: [weight[2], weight[3]], ..window };
        let [batch, height, width, inputs] = [x[0], x[1], x[2], x[3]];
        let shape = conv::Shape { batch, height, width, inputs, outputs: weight[0], window };
        Self { shape, dense: false, act: Activation::None, precision }
    }

    pub fn dense(
        x: &impl TensorMetadata,
        weight: &impl TensorMetadata,
        act: Activation,
        precision: Precision,
    ) -> Self {
        let (x, weight) = (x.shape(), weight.shape());
        let window = Window::square(1, 1, 0);
        let shape =
            conv::Shape { batch: x[0], height: 1, width: 1, inputs: x[1], outputs: weight[0], window };
        Self { shape, dense: true, act, precision }
    }

    /// Shape of the input and of its gradient.
    pub fn wrap_input(&self, values: Vec<f32>) -> FlexTensor {
        let conv::Shape { batch, height, width, inputs, .. } = self.shape;
        if self.dense { wrap(values, [batch, inputs]) } else { wrap(values, [batch, height, width, inputs]) }
    }

    pub fn wrap_weight(&self, values: Vec<f32>) -> FlexTensor {
        let conv::Shape { inputs, outputs, window, .. } = self.shape;
        let [kh, kw] = window.kernel;
        if self.dense { wrap(values, [outputs, inputs]) } else { wrap(values, [outputs, inputs, kh, kw]) }
    }

    fn wrap_output(&self, values: Vec<f32>) -> FlexTensor {
        let conv::Shape { batch, outputs, .. } = self.shape;
        let [oh, ow] = self.shape.checked_out();
        if self.dense { wrap(values, [batch, outputs]) } else { wrap(values, [batch, oh, ow, outputs]) }
    }

    /// `activation(conv(x, weight) + bias + skip)` of contiguous tensors.
    pub fn forward(
        &self,
        x: &FlexTensor,
        weight: &FlexTensor,
        bias: Option<FlexTensor>,
        skip: Option<FlexTensor>,
    ) -> FlexTensor {
        let (bias, skip) = (bias.map(contiguous), skip.map(contiguous));
        let (bias, skip) = (bias.as_ref().map(slice), skip.as_ref().map(slice));
        let out = conv::forward(slice(x), slice(weight), bias, skip, &self.shape, self.precision);
        activate(self.wrap_output(out), self.act)
    }
}

/// Batch norm with the batch's statistics: output, mean, variance.
pub(crate) fn norm(
    x: FlexTensor,
    scale: &FlexTensor,
    shift: &FlexTensor,
    skip: Option<FlexTensor>,
    epsilon: f64,
    act: Activation,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    let channels = scale.layout().num_elements();
    let x = contiguous(x);
    let (mean, variance) = measure(slice(&x), channels);
    let affine = Affine::new(slice(scale), slice(shift), &mean, &variance, epsilon);
    let out = normalise(x, &affine, skip.map(contiguous).as_ref(), act);
    (out, wrap(mean, [channels]), wrap(variance, [channels]))
}

/// Batch norm with given statistics. All but `x` and `skip` must be contiguous.
pub(crate) fn norm_fixed(
    x: FlexTensor,
    [scale, shift, mean, variance]: [&FlexTensor; 4],
    skip: Option<FlexTensor>,
    epsilon: f64,
    act: Activation,
) -> FlexTensor {
    let affine = Affine::new(slice(scale), slice(shift), slice(mean), slice(variance), epsilon);
    normalise(x, &affine, skip.map(contiguous).as_ref(), act)
}

/// The activation alone, in place if nobody else holds the tensor, else in one pass into a new one.
pub(crate) fn activate(x: FlexTensor, act: Activation) -> FlexTensor {
    match act {
        Activation::None => x,
        // SAFETY: both parts of a piece have one length, so all of it is written.
        act => unsafe {
            rewrite(x, PIECE, |_, part| slope::apply(part, act), |_, from, to| slope::write(from, to, act)).0
        },
    }
}

/// Sizes of a pooling of `x`.
pub(crate) fn grid(x: &impl TensorMetadata, window: Window) -> Grid {
    let x = x.shape();
    let [batch, height, width, channels] = [x[0], x[1], x[2], x[3]];
    let shape = conv::Shape { batch, height, width, inputs: channels, outputs: channels, window };
    Grid { batch, height, width, channels, out: shape.checked_out(), window }
}

pub(crate) fn mean_pool(x: FlexTensor) -> FlexTensor {
    let shape = x.shape();
    let x = contiguous(x);
    wrap(pool::mean(slice(&x), shape[0], shape[3]), [shape[0], shape[3]])
}

pub(crate) fn avg_pool(x: FlexTensor, grid: &Grid, count_padding: bool) -> FlexTensor {
    let x = contiguous(x);
    let [oh, ow] = grid.out;
    wrap(pool::average(slice(&x), grid, count_padding), [grid.batch, oh, ow, grid.channels])
}

/// Largest value of each window of a contiguous tensor.
pub(crate) fn max_pool(x: &FlexTensor, grid: &Grid) -> FlexTensor {
    let [oh, ow] = grid.out;
    wrap(pool::largest(slice(x), grid), [grid.batch, oh, ow, grid.channels])
}

impl Ops for Flex {
    fn conv(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight]) {
            return stock::conv::<Self>(x, weight, None, window);
        }
        Linear::conv(&x, &weight, window, precision).forward(&contiguous(x), &contiguous(weight), None, None)
    }

    fn conv_add(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        window: Window,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight, &skip]) {
            return stock::conv_add::<Self>(x, weight, skip, window);
        }
        Linear::conv(&x, &weight, window, precision).forward(
            &contiguous(x),
            &contiguous(weight),
            None,
            Some(skip),
        )
    }

    fn conv_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        window: Window,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight, &bias]) {
            return stock::conv::<Self>(x, weight, Some(bias), window);
        }
        Linear::conv(&x, &weight, window, precision).forward(
            &contiguous(x),
            &contiguous(weight),
            Some(bias),
            None,
        )
    }

    fn norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !ours(&[&x, &scale, &shift]) {
            return stock::norm::<Self>(x, scale, shift, None, epsilon, act);
        }
        norm(x, &contiguous(scale), &contiguous(shift), None, epsilon, act)
    }

    fn norm_add(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        if !ours(&[&x, &scale, &shift, &skip]) {
            return stock::norm::<Self>(x, scale, shift, Some(skip), epsilon, act);
        }
        norm(x, &contiguous(scale), &contiguous(shift), Some(skip), epsilon, act)
    }

    fn norm_fixed(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &scale, &shift, &mean, &variance]) {
            return stock::norm_fixed::<Self>(x, scale, shift, mean, variance, None, epsilon, act);
        }
        let vectors = [scale, shift, mean, variance].map(contiguous);
        norm_fixed(x, vectors.each_ref(), None, epsilon, act)
    }

    fn norm_fixed_add(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        mean: FloatTensor<Self>,
        variance: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        epsilon: f64,
        act: Activation,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &scale, &shift, &mean, &variance, &skip]) {
            return stock::norm_fixed::<Self>(x, scale, shift, mean, variance, Some(skip), epsilon, act);
        }
        let vectors = [scale, shift, mean, variance].map(contiguous);
        norm_fixed(x, vectors.each_ref(), Some(skip), epsilon, act)
    }

    fn activate(x: FloatTensor<Self>, act: Activation) -> FloatTensor<Self> {
        if ours(&[&x]) { activate(x, act) } else { stock::activate::<Self>(x, act) }
    }

    fn mean_pool(x: FloatTensor<Self>) -> FloatTensor<Self> {
        if ours(&[&x]) { mean_pool(x) } else { stock::mean_pool::<Self>(x) }
    }

    fn avg_pool(x: FloatTensor<Self>, window: Window, count_padding: bool) -> FloatTensor<Self> {
        if !ours(&[&x]) {
            return stock::avg_pool::<Self>(x, window, count_padding);
        }
        let grid = grid(&x, window);
        avg_pool(x, &grid, count_padding)
    }

    fn max_pool(x: FloatTensor<Self>, window: Window) -> FloatTensor<Self> {
        if !ours(&[&x]) {
            return stock::max_pool::<Self>(x, window);
        }
        let grid = grid(&x, window);
        max_pool(&contiguous(x), &grid)
    }

    fn dense(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        act: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight]) {
            return stock::dense::<Self>(x, weight, None, act);
        }
        Linear::dense(&x, &weight, act, precision).forward(&contiguous(x), &contiguous(weight), None, None)
    }

    fn dense_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        act: Activation,
        precision: Precision,
    ) -> FloatTensor<Self> {
        if !ours(&[&x, &weight, &bias]) {
            return stock::dense::<Self>(x, weight, Some(bias), act);
        }
        Linear::dense(&x, &weight, act, precision).forward(
            &contiguous(x),
            &contiguous(weight),
            Some(bias),
            None,
        )
    }
}
