//! Every operation and all its gradients, in f32 by our kernels, against the same in f64 by burn's own operations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod numbers;

use burn::tensor::{DType, Tensor};
use negscale_kernels::{
    Activation, Precision, Window, activate, avg_pool, conv, conv_add, conv_bias, dense, max_pool, mean_pool,
    norm, norm_add, norm_fixed,
};
use numbers::{Case, agree};

const ACTS: [Activation; 3] = [Activation::None, Activation::Relu, Activation::Leaky(0.125)];
const CHANNELS: [usize; 10] = [1, 3, 5, 8, 16, 17, 33, 64, 130, 200];

fn image(t: &Tensor<1>, shape: [usize; 4]) -> Tensor<4> {
    t.clone().reshape(shape)
}

#[test]
fn convolutions_agree_with_stock_burn_for_all_windows() {
    for [kh, kw] in [[1, 1], [3, 3], [5, 5], [1, 7], [7, 1], [2, 3]] {
        for (stride, padding) in (1..=3).flat_map(|s| (0..=2).map(move |p| (s, p))) {
            for [batch, height, width, inputs, outputs] in
                [[1, 1, 1, 3, 5], [2, 5, 4, 3, 8], [1, 9, 7, 8, 3], [3, 7, 8, 1, 17]]
            {
                if height + 2 * padding < kh || width + 2 * padding < kw {
                    continue;
                }
                let window = Window { kernel: [kh, kw], stride: [stride; 2], padding: [padding; 2] };
                let (oh, ow) =
                    ((height + 2 * padding - kh) / stride + 1, (width + 2 * padding - kw) / stride + 1);
                let [x, w, y] =
                    [batch * height * width * inputs, outputs * inputs * kh * kw, batch * oh * ow * outputs];
                let xs = [batch, height, width, inputs];
                let ws = [outputs, inputs, kh, kw];
                let name = format!("{window:?} {xs:?} {ws:?}");
                agree(&name, &Case::new(&[x, w]), |t| {
                    conv(image(&t[0], xs), image(&t[1], ws), window, Precision::F32).reshape([-1])
                });
                agree(&name, &Case::new(&[x, w, outputs]), |t| {
                    conv_bias(image(&t[0], xs), image(&t[1], ws), t[2].clone(), window, Precision::F32)
                        .reshape([-1])
                });
                agree(&name, &Case::new(&[x, w, y]), |t| {
                    let skip = image(&t[2], [batch, oh, ow, outputs]);
                    conv_add(image(&t[0], xs), image(&t[1], ws), skip, window, Precision::F32).reshape([-1])
                });
            }
        }
    }
}

#[test]
fn batch_norms_agree_with_stock_burn_for_all_channel_counts() {
    for c in CHANNELS {
        for [b, h, w] in [[1, 1, 2], [2, 3, 3], [3, 7, 5], [5, 9, 9], [1, 40, 37]] {
            for act in ACTS {
                let shape = [b, h, w, c];
                let n = b * h * w * c;
                let name = format!("{shape:?} {act:?}");
                // Tiny batches divide by a standard deviation that is nearly nothing: a larger epsilon keeps f32 fair.
                let epsilon = if b * h * w < 8 { 0.1 } else { 1e-5 };
                agree(&name, &Case::new(&[n, c, c]), |t| {
                    let found = norm(image(&t[0], shape), t[1].clone(), t[2].clone(), epsilon, act);
                    assert!(!found.mean.is_require_grad());
                    Tensor::cat(vec![found.out.reshape([-1]), found.mean, found.variance], 0)
                });
                agree(&name, &Case::new(&[n, c, c, n]), |t| {
                    let (x, skip) = (image(&t[0], shape), image(&t[3], shape));
                    norm_add(x, t[1].clone(), t[2].clone(), skip, epsilon, act).out.reshape([-1])
                });
                let fixed = |t: &[Tensor<1>], skip: Option<Tensor<4>>| {
                    let mean = t[1].clone().detach() * 0.5 + 0.25;
                    let variance = t[1].clone().detach().powi_scalar(2) + 0.5;
                    let x = image(&t[0], shape);
                    norm_fixed(x, t[1].clone(), t[2].clone(), mean, variance, skip, epsilon, act)
                        .reshape([-1])
                };
                agree(&name, &Case::new(&[n, c, c]), |t| fixed(t, None));
                agree(&name, &Case::new(&[n, c, c, n]), |t| fixed(t, Some(image(&t[3], shape))));
            }
        }
    }
}

#[test]
fn pools_agree_with_stock_burn_for_all_windows() {
    for c in [1, 3, 8, 17, 33, 130] {
        for [b, h, w] in [[1, 1, 1], [2, 4, 5], [3, 9, 8], [1, 30, 31]] {
            let (shape, n) = ([b, h, w, c], b * h * w * c);
            agree(&format!("{shape:?}"), &Case::new(&[n]), |t| mean_pool(image(&t[0], shape)).reshape([-1]));
            for [kh, kw] in [[1, 1], [2, 2], [3, 3], [5, 5], [1, 7], [3, 2]] {
                for (stride, padding) in (1..=3).flat_map(|s| (0..=2).map(move |p| (s, p))) {
                    let padding = [padding.min(kh / 2), padding.min(kw / 2)];
                    if h + 2 * padding[0] < kh || w + 2 * padding[1] < kw {
                        continue;
                    }
                    let window = Window { kernel: [kh, kw], stride: [stride; 2], padding };
                    let name = format!("{window:?} {shape:?}");
                    let case = Case::new(&[n]);
                    agree(&name, &case, |t| max_pool(image(&t[0], shape), window).reshape([-1]));
                    for count in [false, true] {
                        agree(&name, &case, |t| avg_pool(image(&t[0], shape), window, count).reshape([-1]));
                    }
                }
            }
        }
    }
}

#[test]
fn dense_layers_and_activations_agree_with_stock_burn() {
    for [b, i, o] in [[1, 1, 1], [1, 5, 3], [7, 3, 10], [33, 17, 16], [4, 64, 130]] {
        for act in ACTS {
            let name = format!("{b} {i} {o} {act:?}");
            let bare = Case::new(&[b * i, o * i]);
            agree(&name, &bare, |t| {
                dense(t[0].clone().reshape([b, i]), t[1].clone().reshape([o, i]), None, act, Precision::F32)
                    .reshape([-1])
            });
            agree(&name, &Case::new(&[b * i, o * i, o]), |t| {
                let (x, weight) = (t[0].clone().reshape([b, i]), t[1].clone().reshape([o, i]));
                dense(x, weight, Some(t[2].clone()), act, Precision::F32).reshape([-1])
            });
            agree(&name, &bare, |t| activate(t[0].clone() * t[0].clone() - 0.1, act));
        }
    }
}

#[test]
fn tensors_that_are_not_contiguous_are_taken_as_they_are() {
    let shape = [3, 4, 5, 6]; // stored [batch, channels, height, width], and one row and column too many
    let n: usize = shape.iter().product();
    let window = Window::square(3, 1, 1);
    let view = |t: &Tensor<1>| image(t, shape).permute([0, 2, 3, 1]).slice([0..3, 1..5, 0..5, 1..4]);
    agree("conv", &Case::new(&[n, 5 * 9 * 3]), |t| {
        let weight = image(&t[1], [3, 3, 3, 5]).permute([3, 0, 1, 2]);
        conv(view(&t[0]), weight, window, Precision::F32).reshape([-1])
    });
    agree("norm", &Case::new(&[n, 6, 6, n]), |t| {
        let (scale, shift) = (t[1].clone().slice(1..4), t[2].clone().flip([0]).slice(2..5));
        norm_add(view(&t[0]), scale, shift, view(&t[3]), 1e-5, Activation::Relu).out.reshape([-1])
    });
    agree("pool", &Case::new(&[n]), |t| max_pool(view(&t[0]), window).reshape([-1]));
    agree("mean", &Case::new(&[n]), |t| mean_pool(view(&t[0])).reshape([-1]));
    agree("activation", &Case::new(&[n]), |t| activate(view(&t[0]), Activation::Relu).reshape([-1]));
    agree("dense", &Case::new(&[n, 6 * 4]), |t| {
        let x = t[0].clone().reshape([6, 60]).transpose();
        dense(x, t[1].clone().reshape([6, 4]).transpose(), None, Activation::Relu, Precision::F32)
            .reshape([-1])
    });
}

#[test]
fn gradients_come_for_every_mixture_of_tracked_and_untracked_inputs() {
    let window = Window::square(3, 2, 1);
    let (xs, ws, ys) = ([2, 5, 5, 3], [4, 3, 3, 3], [2, 3, 3, 4]);
    for mask in 0..16u32 {
        let track = |case: Case| case.tracking(mask);
        agree("conv_add", &track(Case::new(&[150, 108, 72])), |t| {
            conv_add(image(&t[0], xs), image(&t[1], ws), image(&t[2], ys), window, Precision::F32)
                .reshape([-1])
        });
        agree("conv_bias", &track(Case::new(&[150, 108, 4])), |t| {
            conv_bias(image(&t[0], xs), image(&t[1], ws), t[2].clone(), window, Precision::F32).reshape([-1])
        });
        agree("dense", &track(Case::new(&[150, 108, 36])), |t| {
            let (x, weight) = (t[0].clone().reshape([50, 3]), t[1].clone().reshape([36, 3]));
            dense(x, weight, Some(t[2].clone()), Activation::Relu, Precision::F32).reshape([-1])
        });
        for act in ACTS {
            agree("norm_add", &track(Case::new(&[150, 3, 3, 150])), |t| {
                let (x, skip) = (image(&t[0], xs), image(&t[3], xs));
                norm_add(x, t[1].clone(), t[2].clone(), skip, 1e-5, act).out.reshape([-1])
            });
            for skipped in [false, true] {
                let sizes = &[150, 3, 3, 150][..if skipped { 4 } else { 3 }];
                agree("norm_fixed", &track(Case::new(sizes)), |t| {
                    let (mean, variance) = (t[2].clone().detach(), t[1].clone().detach().abs() + 0.5);
                    let skip = skipped.then(|| image(&t[3], xs));
                    let x = image(&t[0], xs);
                    norm_fixed(x, t[1].clone(), t[2].clone(), mean, variance, skip, 1e-5, act).reshape([-1])
                });
            }
        }
    }
}

#[test]
fn an_untracked_device_gives_the_same_as_a_tracked_one() {
    let case = Case::new(&[2 * 6 * 6 * 16, 16, 16]);
    let run = |t: &[Tensor<1>]| {
        let x = image(&t[0], [2, 6, 6, 16]);
        let x = norm(x, t[1].clone(), t[2].clone(), 1e-5, Activation::Relu).out;
        let variance = t[2].clone().abs() + 0.5;
        norm_fixed(x, t[1].clone(), t[2].clone(), t[1].clone(), variance, None, 1e-5, Activation::Leaky(0.1))
            .reshape([-1])
    };
    let plain = run(&case.tensors(DType::F32, &burn::tensor::Device::flex()));
    let tracked = run(&case.tensors(DType::F32, &burn::tensor::Device::flex().autodiff()));
    assert_eq!(
        plain.into_data().try_to_vec::<f32>().unwrap(),
        tracked.into_data().try_to_vec::<f32>().unwrap()
    );
}
