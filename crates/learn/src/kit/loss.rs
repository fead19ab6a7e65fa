//! Losses that training methods share: means over the rows of a batch, through log-softmax.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData};

/// Cross-entropy $-\frac{1}{B}\sum_i \log p_i(y_i)$ of logits B x C on labels.
pub fn cross_entropy(logits: Tensor<2>, labels: &[u32]) -> Tensor<1> {
    let device = logits.device();
    let labels: Vec<i64> = labels.iter().map(|&label| label.into()).collect();
    let count = labels.len();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [count, 1]), &device);
    log_softmax(logits, 1).gather(1, labels).mean().neg()
}
