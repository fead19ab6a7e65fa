//! After the first call at a batch size the plug-in allocates nothing of its own: what is left is the scratch space of the
//! matrix products, which the gemm crate takes and gives back by itself.
#![allow(clippy::unwrap_used)]

mod oracle;

use negscale::{BatchLabels, Centre, NegScale, Settings, Taxonomy, Workspace};
use oracle::Batch;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.with(Cell::get);
    work();
    COUNT.with(Cell::get) - before
}

/// Allocations of one call once everything has its size.
fn in_steady_state(settings: Settings, batch: &Batch) -> usize {
    let plugin = NegScale::new(&Taxonomy::builtin("cifar10").unwrap(), settings).unwrap();
    let mut workspace = Workspace::new();
    let given = BatchLabels::new(&batch.labels, &batch.confidence);
    let mut call = || {
        plugin.loss_and_gradient(&batch.features, batch.dim, &given, &mut workspace).unwrap();
    };
    (0..3).for_each(|_| call());
    allocations(call)
}

/// Allocations of plain products of the sizes that a call makes: `(rows, columns, inner)` each, and whether the second
/// factor is a transpose.
fn of_products(sizes: &[(usize, usize, usize, bool)]) -> usize {
    let most = sizes.iter().map(|&(m, n, k, _)| (m * k).max(k * n).max(m * n)).max().unwrap();
    let (a, b, mut c) = (vec![1.0f64; most], vec![1.0f64; most], vec![0.0f64; most]);
    let mut run = || {
        for &(m, n, k, transposed) in sizes {
            let (column, row) = if transposed { (k as isize, 1) } else { (1, n as isize) };
            // SAFETY: all three buffers hold at least as many values as the sizes address.
            unsafe {
                gemm::gemm(
                    m,
                    n,
                    k,
                    c.as_mut_ptr(),
                    1,
                    n as isize,
                    false,
                    a.as_ptr(),
                    1,
                    k as isize,
                    b.as_ptr(),
                    column,
                    row,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }
    };
    run();
    allocations(run)
}

#[test]
fn a_call_without_the_global_term_allocates_only_for_its_two_products() {
    // One block of 48 rows: the Gram matrix is one product, the way back another.
    let batch = Batch::random(40, 64, 10, 1);
    let settings = Settings::default().with_global(0.0).with_centre(Centre::ClassBalanced);
    assert_eq!(in_steady_state(settings, &batch), of_products(&[(40, 40, 64, true), (40, 64, 40, false)]));
}

#[test]
fn the_global_term_adds_only_its_three_products() {
    let batch = Batch::random(40, 64, 10, 1);
    let all = in_steady_state(Settings::default(), &batch);
    let without = in_steady_state(Settings::default().with_global(0.0), &batch);
    assert_eq!(all - without, of_products(&[(40, 40, 40, false); 3]));
}

#[test]
fn the_kernel_without_products_allocates_nothing() {
    // A ready Gram matrix, local term and DCSA only: no matrix product is involved.
    let batch = Batch::random(48, 8, 10, 2);
    let x = batch.unit();
    let gram: Vec<f64> =
        (0..48 * 48).map(|at| x[at / 48].iter().zip(&x[at % 48]).map(|(a, b)| a * b).sum()).collect();
    let tree = Taxonomy::builtin("cifar10").unwrap();
    let plugin = NegScale::new(&tree, Settings::default().with_global(0.0)).unwrap();
    let mut workspace = Workspace::new();
    let given = batch.given();
    let mut call = || {
        plugin.loss_and_gradient_from_cosines(&gram, 8, &given, &mut workspace).unwrap();
    };
    call();
    assert_eq!(allocations(&mut call), 0);
}
