//! Convolution of channels-last images, on slices.

use crate::Window;

/// Sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Images in the batch.
    pub batch: usize,
    /// Rows of an input image.
    pub height: usize,
    /// Columns of an input image.
    pub width: usize,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Kernel size, stride and padding.
    pub window: Window,
}

impl Shape {
    /// Rows and columns of the output; `None` if the padded image is smaller than the kernel or a stride is 0.
    pub fn out(&self) -> Option<[usize; 2]> {
        let side = |size: usize, axis: usize| {
            let window = self.window;
            (size + 2 * window.padding[axis])
                .checked_sub(window.kernel[axis])?
                .checked_div(window.stride[axis])
                .map(|n| n + 1)
        };
        Some([side(self.height, 0)?, side(self.width, 1)?])
    }
}

/// `y = conv(x, weight) + bias + skip`. `x` is `[batch, height, width, inputs]`, `weight` `[outputs, inputs, kernel, kernel]`,
/// the result and `skip` `[batch, out height, out width, outputs]`.
pub fn forward(
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    skip: Option<&[f32]>,
    shape: &Shape,
) -> Vec<f32> {
    let [oh, ow] = shape.out().unwrap_or([0, 0]);
    let mut y = vec![0.0; shape.batch * oh * ow * shape.outputs];
    visit(shape, [oh, ow], |at_y, at_x, at_w| y[at_y] += x[at_x] * weight[at_w]);
    for (i, y) in y.iter_mut().enumerate() {
        *y += bias.map_or(0.0, |bias| bias[i % shape.outputs]) + skip.map_or(0.0, |skip| skip[i]);
    }
    y
}

/// Gradient with respect to `x`, of the shape of `x`.
pub fn data_gradient(dy: &[f32], weight: &[f32], shape: &Shape) -> Vec<f32> {
    let mut dx = vec![0.0; shape.batch * shape.height * shape.width * shape.inputs];
    visit(shape, shape.out().unwrap_or([0, 0]), |at_y, at_x, at_w| dx[at_x] += dy[at_y] * weight[at_w]);
    dx
}

/// Gradient with respect to `weight`, of the shape of `weight`.
pub fn weight_gradient(x: &[f32], dy: &[f32], shape: &Shape) -> Vec<f32> {
    let [kh, kw] = shape.window.kernel;
    let mut dw = vec![0.0; shape.outputs * shape.inputs * kh * kw];
    visit(shape, shape.out().unwrap_or([0, 0]), |at_y, at_x, at_w| dw[at_w] += dy[at_y] * x[at_x]);
    dw
}

fn visit(shape: &Shape, [oh, ow]: [usize; 2], mut term: impl FnMut(usize, usize, usize)) {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    for b in 0..batch {
        for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
            for (r, s) in (0..kh).flat_map(|r| (0..kw).map(move |s| (r, s))) {
                let (row, column) = ((y * sh + r).wrapping_sub(ph), (x * sw + s).wrapping_sub(pw));
                if row < height && column < width {
                    for o in 0..outputs {
                        for i in 0..inputs {
                            let at_y = ((b * oh + y) * ow + x) * outputs + o;
                            term(
                                at_y,
                                ((b * height + row) * width + column) * inputs + i,
                                ((o * inputs + i) * kh + r) * kw + s,
                            );
                        }
                    }
                }
            }
        }
    }
}
