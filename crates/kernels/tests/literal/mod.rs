//! Convolutions as their formula says: plain sums in f64.
#![allow(clippy::unwrap_used)]

use negscale_kernels::conv::Shape;

/// Forward, data gradient and weight gradient.
pub fn exact(shape: &Shape, [x, weight, dy]: [&[f32]; 3]) -> [Vec<f64>; 3] {
    let Shape { batch, height, width, inputs, outputs, window } = *shape;
    let ([kh, kw], [sh, sw], [ph, pw]) = (window.kernel, window.stride, window.padding);
    let [oh, ow] = shape.out().unwrap();
    let (mut y, mut dx, mut dw) = (vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; weight.len()]);
    for (b, oy, ox) in (0..batch * oh * ow).map(|n| (n / (oh * ow), n / ow % oh, n % ow)) {
        for (r, s) in (0..kh * kw).map(|n| (n / kw, n % kw)) {
            let (row, column) = ((oy * sh + r).wrapping_sub(ph), (ox * sw + s).wrapping_sub(pw));
            if row >= height || column >= width {
                continue;
            }
            for (o, i) in (0..outputs * inputs).map(|n| (n / inputs, n % inputs)) {
                let at_y = ((b * oh + oy) * ow + ox) * outputs + o;
                let at_x = ((b * height + row) * width + column) * inputs + i;
                let at_w = ((o * inputs + i) * kh + r) * kw + s;
                y[at_y] += f64::from(x[at_x]) * f64::from(weight[at_w]);
                dx[at_x] += f64::from(dy[at_y]) * f64::from(weight[at_w]);
                dw[at_w] += f64::from(dy[at_y]) * f64::from(x[at_x]);
            }
        }
    }
    [y, dx, dw]
}
