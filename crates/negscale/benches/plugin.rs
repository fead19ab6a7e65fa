//! Speed of the plug-in, forward and gradient: closed forms beside the formulas as printed.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use negscale::{BatchLabels, NegScale, Settings, Taxonomy, Workspace, reference};
use std::hint::black_box;

#[expect(clippy::expect_used, reason = "a benchmark of nothing must not pass for one")]
fn plugin(criterion: &mut Criterion) {
    for classes in [10, 100] {
        let tree = Taxonomy::builtin(&format!("cifar{classes}")).expect("a tree of the library");
        let plugin = NegScale::new(&tree, Settings::default()).expect("valid settings");
        let mut group = criterion.benchmark_group(format!("{classes} classes"));
        for batch in [64, 128, 448, 1024] {
            for dim in [128, 512, 2048] {
                let mut state = 1u64;
                let mut uniform = || {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 40) as f32 / (1u64 << 24) as f32
                };
                let labels: Vec<usize> = (0..batch).map(|_| (uniform() * classes as f32) as usize).collect();
                let confidence: Vec<f32> = (0..batch).map(|_| uniform()).collect();
                let features: Vec<f32> = (0..batch * dim).map(|_| uniform() + uniform() - 1.0).collect();
                let given = BatchLabels::new(&labels, &confidence);
                let mut workspace = Workspace::new();
                let id = format!("batch {batch}, dim {dim}");
                group.bench_function(BenchmarkId::new("closed form", &id), |b| {
                    b.iter(|| {
                        let result =
                            plugin.loss_and_gradient(black_box(&features), dim, &given, &mut workspace);
                        result.map(|r| r.value)
                    })
                });
                // The printed form takes from seconds to minutes beyond this.
                if batch <= 128 && dim <= 512 {
                    group.sample_size(10).bench_function(BenchmarkId::new("as printed", &id), |b| {
                        b.iter(|| {
                            reference::loss_and_gradient(&plugin, black_box(&features), dim, &given)
                                .map(|r| r.value)
                        })
                    });
                }
            }
        }
        group.finish();
    }
}

criterion_group!(benches, plugin);
criterion_main!(benches);
