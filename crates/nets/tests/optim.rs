//! Optimisers against PyTorch, their state across processes, and what they do with memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use burn::module::{Module, Param, RunningState};
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData, activation::log_softmax};
use negscale_kernels::update::{Buffers, buffers};
use negscale_nets::optim::{Adam, Error, Optimiser, OptimiserSettings, OptimiserState, Pace, Sgd};

/// Softmax regression with a parameter that takes no part and a buffer.
#[derive(Module, Debug)]
struct Net {
    w: Param<Tensor<2>>,
    b: Param<Tensor<1>>,
    idle: Param<Tensor<1>>,
    buffer: RunningState<Tensor<1>>,
}

fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex().autodiff())
}

impl Net {
    fn new(w: &[f32], b: &[f32]) -> Self {
        Self {
            w: Param::from_tensor(tensor(w, [b.len(), w.len() / b.len()])),
            b: Param::from_tensor(tensor(b, [b.len()])),
            idle: Param::from_tensor(tensor(&[1.0, 2.0], [2])),
            buffer: RunningState::new(tensor(&[3.0], [1])),
        }
    }

    fn backward(&self, x: &Tensor<2>, y: &[i64]) -> Gradients {
        let logits = x.clone().matmul(self.w.val().transpose()) + self.b.val().unsqueeze::<2>();
        let y = Tensor::<2, Int>::from_data(TensorData::new(y.to_vec(), [y.len(), 1]), &x.device());
        (-log_softmax(logits, 1).gather(1, y).mean()).backward()
    }

    fn values(&self) -> Vec<f32> {
        let mut all = read(self.w.val());
        all.extend(read(self.b.val()));
        all
    }
}

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

#[derive(serde::Deserialize)]
struct Golden {
    x: Vec<f32>,
    y: Vec<i64>,
    w: Vec<f32>,
    b: Vec<f32>,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    rule: OptimiserSettings,
    switch: Option<usize>,
    steps: Vec<Vec<f64>>,
}

fn golden() -> (Golden, Tensor<2>) {
    let golden: Golden = serde_json::from_str(include_str!("golden/optim.json")).unwrap();
    let x = tensor(&golden.x, [golden.y.len(), 5]);
    (golden, x)
}

fn momentum() -> OptimiserSettings {
    Sgd { lr: 0.1, momentum: 0.9, ..Sgd::default() }.into()
}

#[test]
fn every_rule_follows_pytorch_step_by_step() {
    let (golden, x) = golden();
    assert_eq!(golden.cases.len(), 12);
    for case in &golden.cases {
        let (mut net, mut worst) = (Net::new(&golden.w, &golden.b), 0f64);
        let mut optimiser = Optimiser::new(case.rule.clone()).unwrap();
        for (step, expected) in case.steps.iter().enumerate() {
            if case.switch == Some(step) {
                optimiser.set_pace(Pace { lr: case.rule.lr(), momentum: Some(0.1) }).unwrap();
            }
            let mut gradients = net.backward(&x, &golden.y);
            net = optimiser.step(net, &mut gradients);
            let largest = expected.iter().fold(0f64, |largest, value| largest.max(value.abs()));
            for (ours, theirs) in net.values().iter().zip(expected) {
                worst = worst.max((f64::from(*ours) - theirs).abs() / largest);
            }
        }
        println!("{}: {worst:.1e} of the largest parameter", case.name);
        assert!(worst < 1e-6, "{}: {worst}", case.name);
    }
}

#[test]
fn a_parameter_without_a_gradient_is_left_alone_even_by_weight_decay() {
    let (golden, x) = golden();
    for rule in [momentum(), Adam { weight_decay: 0.1, ..Adam::default() }.into()] {
        let mut net = Net::new(&golden.w, &golden.b);
        net.b = net.b.set_require_grad(false);
        let mut optimiser = Optimiser::new(rule).unwrap();
        for _ in 0..3 {
            let mut gradients = net.backward(&x, &golden.y);
            net = optimiser.step(net, &mut gradients);
        }
        assert_eq!(read(net.idle.val()), [1.0, 2.0]);
        assert_eq!(read(net.buffer.value()), [3.0]);
        assert_eq!(read(net.b.val()), golden.b, "frozen");
        assert!(!net.b.val().is_require_grad() && net.w.val().is_require_grad());
        assert_ne!(read(net.w.val()), golden.w);
        assert_eq!(
            optimiser.state().unwrap().counters.into_iter().collect::<Vec<_>>(),
            [("steps/w".into(), 3)]
        );
    }
}

#[test]
fn an_optimiser_can_be_kept_to_a_part_of_the_network() {
    let (golden, x) = golden();
    let mut first = Optimiser::new(momentum()).unwrap().only(["b"]);
    let mut net = Net::new(&golden.w, &golden.b);
    let mut gradients = net.backward(&x, &golden.y);
    net = first.step(net, &mut gradients);
    assert_eq!(read(net.w.val()), golden.w);
    assert_ne!(read(net.b.val()), golden.b);
    // The gradient of the other part is still there, for a second optimiser that is handed that part alone.
    let mut second = Optimiser::new(momentum()).unwrap();
    net.w = second.step(net.w, &mut gradients);
    assert_ne!(read(net.w.val()), golden.w);
    let mut third = Optimiser::new(momentum()).unwrap().only(["bi", "buffer"]);
    let before = net.values();
    let mut gradients = net.backward(&x, &golden.y);
    assert_eq!(third.step(net, &mut gradients).values(), before, "`bi` is not a path above `b`");
}

#[test]
fn two_networks_with_two_optimisers_do_not_disturb_each_other() {
    let (golden, x) = golden();
    let alone = train(&golden, &x, 6);
    let (mut nets, mut optimisers) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        nets.push(Net::new(&golden.w, &golden.b));
        optimisers.push(Optimiser::new(momentum()).unwrap());
    }
    for step in 0..6 {
        for i in 0..2 {
            let y: Vec<i64> = golden.y.iter().map(|y| (y + i as i64) % 3).collect();
            let mut gradients = nets[i].backward(&x, &y);
            nets[i] = optimisers[i].step(nets[i].clone(), &mut gradients);
        }
        assert_ne!(nets[0].values(), nets[1].values(), "step {step}");
    }
    assert_eq!(nets[0].values(), alone);
}

fn train(golden: &Golden, x: &Tensor<2>, steps: usize) -> Vec<f32> {
    let (mut net, mut optimiser) = (Net::new(&golden.w, &golden.b), Optimiser::new(momentum()).unwrap());
    for _ in 0..steps {
        let mut gradients = net.backward(x, &golden.y);
        net = optimiser.step(net, &mut gradients);
    }
    net.values()
}

#[test]
fn resumed_training_goes_on_bit_for_bit() {
    let (golden, x) = golden();
    for case in &golden.cases {
        let mut net = Net::new(&golden.w, &golden.b);
        let mut optimiser = Optimiser::new(case.rule.clone()).unwrap();
        let mut saved = None;
        for step in 0..10 {
            if step == 4 {
                optimiser.set_pace(Pace { lr: 0.003, momentum: Some(0.1) }).unwrap();
                saved = Some((net.values(), optimiser.state().unwrap()));
            }
            let mut gradients = net.backward(&x, &golden.y);
            net = optimiser.step(net, &mut gradients);
        }
        // Through text, into a network with other parameter ids.
        let (values, state) = saved.unwrap();
        let state: OptimiserState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        let mut again = Net::new(&values[..15], &values[15..]);
        let mut fresh = Optimiser::new(case.rule.clone()).unwrap();
        fresh.restore(&state, &again).unwrap();
        for _ in 4..10 {
            let mut gradients = again.backward(&x, &golden.y);
            again = fresh.step(again, &mut gradients);
        }
        assert_eq!(again.values(), net.values(), "{}", case.name);
        assert_eq!(fresh.state().unwrap(), optimiser.state().unwrap(), "{}", case.name);
    }
}

#[test]
fn a_state_of_another_optimiser_or_network_is_refused_and_changes_nothing() {
    let (golden, x) = golden();
    let mut net = Net::new(&golden.w, &golden.b);
    let mut optimiser = Optimiser::new(momentum()).unwrap();
    let mut gradients = net.backward(&x, &golden.y);
    net = optimiser.step(net, &mut gradients);
    let good = optimiser.state().unwrap();
    let mut adam = Optimiser::new(Adam::default()).unwrap();
    let message = adam.restore(&good, &net).unwrap_err().to_string();
    assert!(message.contains("saved by `sgd`"), "{message}");
    let spoil = |change: &dyn Fn(&mut OptimiserState)| {
        let mut state = good.clone();
        change(&mut state);
        let mut optimiser = optimiser.clone();
        let error = optimiser.restore(&state, &net).unwrap_err();
        assert_eq!(optimiser.state().unwrap(), good);
        error.to_string()
    };
    for (change, words) in [
        (
            &(|s: &mut OptimiserState| s.arrays.get_mut("velocity/w").unwrap().truncate(3))
                as &dyn Fn(&mut OptimiserState),
            "3 values",
        ),
        (&|s| drop(s.arrays.insert("velocity/x".into(), vec![])), "no such parameter"),
        (&|s| drop(s.arrays.insert("first/w".into(), vec![])), "not of a known kind"),
        (&|s| s.counters.retain(|name, _| name != "steps/b"), "`steps/b` is missing"),
        (&|s| s.pace.lr = f64::NAN, "learning rate"),
    ] {
        let message = spoil(change);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn after_backward_parameters_and_moments_are_updated_in_place() {
    let (golden, x) = golden();
    for (rule, per_parameter) in [
        (OptimiserSettings::from(Sgd { momentum: 0.0, ..Sgd::default() }), 1),
        (momentum(), 2),
        (Adam::default().into(), 3),
    ] {
        let (mut net, mut optimiser) = (Net::new(&golden.w, &golden.b), Optimiser::new(rule).unwrap());
        for _ in 0..3 {
            let mut gradients = net.backward(&x, &golden.y);
            let before = buffers();
            net = optimiser.step(net, &mut gradients);
            let after = buffers();
            let used = Buffers { reused: after.reused - before.reused, copied: after.copied - before.copied };
            assert_eq!(used, Buffers { reused: 2 * per_parameter, copied: 0 });
        }
        // Somebody who holds the old network keeps it.
        let (held, values) = (net.clone(), net.values());
        let mut gradients = net.backward(&x, &golden.y);
        net = optimiser.step(net, &mut gradients);
        assert_eq!(held.values(), values);
        assert_ne!(net.values(), values);
    }
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let sgd = Sgd::default;
    let adam = Adam::default;
    for (rule, wrong) in [
        (OptimiserSettings::Sgd(Sgd { lr: f64::NAN, ..sgd() }), "lr"),
        (OptimiserSettings::Sgd(Sgd { lr: -0.1, ..sgd() }), "lr"),
        (OptimiserSettings::Sgd(Sgd { momentum: 1.0, ..sgd() }), "momentum"),
        (OptimiserSettings::Sgd(Sgd { weight_decay: f64::INFINITY, ..sgd() }), "weight_decay"),
        (OptimiserSettings::Sgd(Sgd { nesterov: true, momentum: 0.0, ..sgd() }), "nesterov"),
        (OptimiserSettings::Adam(Adam { beta1: -0.1, ..adam() }), "beta1"),
        (OptimiserSettings::AdamW(Adam { beta2: 1.0, ..adam() }), "beta2"),
        (OptimiserSettings::Adam(Adam { epsilon: 0.0, ..adam() }), "epsilon"),
        (OptimiserSettings::AdamW(Adam { weight_decay: -1.0, ..adam() }), "weight_decay"),
    ] {
        let error = Optimiser::new(rule).unwrap_err();
        assert!(matches!(error, Error::Setting { name, .. } if name == wrong), "{error}");
    }
    let mut optimiser = Optimiser::new(sgd()).unwrap();
    assert!(optimiser.set_pace(Pace { lr: 0.1, momentum: Some(1.5) }).is_err());
    assert_eq!(optimiser.pace(), Pace { lr: 0.02, momentum: None });
}

#[test]
fn settings_are_read_by_kind_and_unknown_keys_are_refused() {
    let rule: OptimiserSettings = serde_json::from_str(r#"{"kind": "adam-w", "lr": 0.5}"#).unwrap();
    assert_eq!(rule, OptimiserSettings::AdamW(Adam { lr: 0.5, ..Adam::default() }));
    assert_eq!(
        serde_json::from_str::<OptimiserSettings>(r#"{"kind": "sgd"}"#).unwrap(),
        OptimiserSettings::default()
    );
    assert!(serde_json::from_str::<OptimiserSettings>(r#"{"kind": "sgd", "beta1": 0.5}"#).is_err());
}
