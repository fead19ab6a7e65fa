//! Structure: pairs that are close in one space shall be close in another (Co-learning).
//!
//! For projections $g_i$, held fixed, and logits $z_i$ of $B$ samples,
//!
//! $$ L = -\frac1{B^2} \sum_{i,j} s_{ij} \log(q_{ij} + \epsilon), \quad s_{ij} = k(\lVert g_i - g_j \rVert^2), \quad
//!    q_{ij} = k(\lVert z_i - z_j \rVert^2), $$
//!
//! $\epsilon = 10^{-12}$, with the kernel $k(d) = e^{-d}$, so that $L \approx \frac1{B^2} \sum s_{ij} \lVert z_i - z_j \rVert^2$, or that of Student's t,
//! $k(d) = (1 + d^2 / \nu)^{-(\nu + 1) / 2}$, as the authors' code has it: squared once more than its name says.

use burn::tensor::{Bool, Tensor, TensorData};

/// Keeps logarithms finite; also the distance of a sample to itself.
const EPSILON: f64 = 1e-12;

/// $L$; gradients flow to the logits only. `freedom` is $\nu$ of the t kernel; 0 or less: the exponential one.
///
/// # Panics
/// If there are not as many projections as logits.
pub fn structure(projections: Tensor<2>, logits: Tensor<2>, freedom: f64) -> Tensor<1> {
    assert_eq!(projections.dims()[0], logits.dims()[0], "one projection for every row of logits");
    let wanted = kernel(squared_distances(projections.detach()), freedom);
    let found = kernel(squared_distances(logits), freedom);
    // Rows first: a sum over all pairs may be long enough to be shared among threads.
    -(wanted * (found + EPSILON).log()).mean_dim(1).mean()
}

/// $\lVert x_i - x_j \rVert^2$ of all pairs, at least $\epsilon$.
fn squared_distances(x: Tensor<2>) -> Tensor<2> {
    let [rows, _] = x.dims();
    let squares = x.clone().powi_scalar(2).sum_dim(1);
    let distances = squares.clone() + squares.transpose() - x.clone().matmul(x.clone().transpose()) * 2.0;
    // Rounding leaves a sample some way from itself, and a direction to go.
    let own: Vec<bool> = (0..rows * rows).map(|at| at / rows == at % rows).collect();
    let own = Tensor::<2, Bool>::from_data(TensorData::new(own, [rows, rows]), &x.device());
    distances.clamp_min(EPSILON).mask_fill(own, EPSILON)
}

fn kernel(distances: Tensor<2>, freedom: f64) -> Tensor<2> {
    if freedom <= 0.0 {
        return (-distances).exp();
    }
    // Through logarithms: a power of a sum of squares has no other form that is safe for large distances.
    let log = (distances.powi_scalar(2) / freedom + 1.0).log();
    (log * (-(freedom + 1.0) / 2.0)).exp()
}
