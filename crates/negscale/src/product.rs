//! Matrix products, in pieces that threads share.

use crate::Real;
use crate::threads::Threads;
use negscale_cpu::for_this_cpu;
use rayon::prelude::*;
use std::marker::PhantomData;

/// A row-major matrix that is only looked at, as it is or transposed.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    data: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> View<'a, T> {
    /// `rows` x `columns`, row after row.
    pub(crate) fn new(data: &'a [T], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns, "matrix of {rows} x {columns}");
        Self { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// The transpose, without moving anything.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// Rows `from..to`.
    fn rows(self, [from, to]: [usize; 2]) -> Self {
        assert!(from <= to && to <= self.rows);
        Self { data: &self.data[from * self.row_stride..], rows: to - from, ..self }
    }

    /// Columns `from..to`.
    fn columns(self, [from, to]: [usize; 2]) -> Self {
        assert!(from <= to && to <= self.columns);
        Self { data: &self.data[from * self.column_stride..], columns: to - from, ..self }
    }

    /// Whether every element lies inside `data`.
    fn in_bounds(&self) -> bool {
        self.rows == 0
            || self.columns == 0
            || (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride < self.data.len()
    }
}

/// A part of a row-major matrix: rows and columns, each from..to.
#[derive(Clone, Copy)]
struct Part {
    rows: [usize; 2],
    columns: [usize; 2],
}

impl Part {
    fn len(self) -> usize {
        (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])
    }
}

/// Rows and columns of a square that is copied at a time.
const TILE: usize = 16;

/// From where to where the piece number `at` of 0..n goes, if pieces are `size` long.
fn piece_of(at: usize, size: usize, n: usize) -> [usize; 2] {
    [at * size, (at * size + size).min(n)]
}

/// A row-major matrix whose parts several threads write: blocks, which no safe borrow can describe.
struct Target<'a, T> {
    start: *mut T,
    len: usize,
    stride: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Target` stands for a mutable slice of values that may go to other threads, and writes parts of it only in functions
// whose callers promise that nobody else reaches them.
unsafe impl<T: Send> Sync for Target<'_, T> {}

impl<'a, T: Real> Target<'a, T> {
    fn new(slice: &'a mut [T], stride: usize) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), stride, slice: PhantomData }
    }

    /// Where the value number `at` is, of `count` values that can be reached from there.
    fn pointer(&self, at: usize, count: usize) -> *mut T {
        assert!(at <= self.len && count <= self.len - at, "{at} + {count} of {}", self.len);
        // SAFETY: inside the slice or at its end.
        unsafe { self.start.add(at) }
    }

    /// Sets a part to `keep` times what is there plus `scale` times the same part of `a * b`.
    ///
    /// # Safety
    /// Nobody else may reach this part meanwhile.
    unsafe fn set(&self, Part { rows, columns }: Part, keep: T, scale: T, a: View<T>, b: View<T>) {
        let (a, b) = (a.rows(rows), b.columns(columns));
        let (m, n, k) = (a.rows, b.columns, a.columns);
        if m == 0 || n == 0 {
            return;
        }
        assert_eq!(k, b.rows, "inner sizes of a product");
        assert!(a.in_bounds() && b.in_bounds() && columns[1] <= self.stride);
        let out = self.pointer(rows[0] * self.stride + columns[0], (m - 1) * self.stride + n);
        // SAFETY: the assertions above show that every element addressed by (rows, columns, strides) of the two sources
        // lies inside its slice, `pointer` has shown the same for the destination. Sources are borrowed, the
        // destination is part of a slice that is borrowed mutably, so they do not overlap; and nobody else reaches it, as
        // promised.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                out,
                1,
                self.stride as isize,
                keep != T::ZERO,
                a.data.as_ptr(),
                a.column_stride as isize,
                a.row_stride as isize,
                b.data.as_ptr(),
                b.column_stride as isize,
                b.row_stride as isize,
                keep,
                scale,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }

    /// Copies a part to its mirror image beyond the diagonal; what lies on both sides of it, from below to above.
    ///
    /// # Safety
    /// Nobody else may reach this part or its image meanwhile.
    unsafe fn mirror(&self, Part { rows, columns }: Part) {
        let n = self.stride;
        let data = self.pointer(0, rows[1] * n);
        for row in (rows[0]..rows[1]).step_by(TILE) {
            for column in (columns[0]..columns[1]).step_by(TILE) {
                for i in row..(row + TILE).min(rows[1]) {
                    for j in column..(column + TILE).min(columns[1]).min(i) {
                        // SAFETY: j < i < rows[1], so both lie within the first rows[1] rows; nobody else reaches them, as
                        // promised.
                        unsafe { *data.add(j * n + i) = *data.add(i * n + j) };
                    }
                }
            }
        }
    }
}

/// `out = keep * out + scale * a * b`.
fn multiply<T: Real>(threads: Threads, out: &mut [T], keep: T, scale: T, a: View<T>, b: View<T>) {
    let (m, n) = (a.rows, b.columns);
    assert_eq!(out.len(), m * n, "result of {m} x {n}");
    // Small pieces can be shared out evenly, large ones are multiplied faster.
    let [down, along] = [if m <= 256 { 66 } else { 192 }, if n <= 256 { 64 } else { 128 }];
    let wide = n.div_ceil(along);
    let target = Target::new(out, n);
    threads.each((0..m.div_ceil(down) * wide).into_par_iter(), |at| {
        let part = Part { rows: piece_of(at / wide, down, m), columns: piece_of(at % wide, along, n) };
        // SAFETY: pieces do not overlap, and each is handed out once.
        unsafe { target.set(part, keep, scale, a, b) };
    });
}

/// `out = scale * a * b`.
pub(crate) fn product<T: Real>(threads: Threads, out: &mut [T], scale: T, a: View<T>, b: View<T>) {
    multiply(threads, out, T::ZERO, scale, a, b);
}

/// `out += scale * a * b`.
pub(crate) fn add_product<T: Real>(threads: Threads, out: &mut [T], scale: T, a: View<T>, b: View<T>) {
    multiply(threads, out, T::ONE, scale, a, b);
}

/// `out = a * b` for each of some products of n x n whose results are known to be symmetric: only blocks on and below the
/// diagonal are computed, the rest is mirrored. Exactly symmetric whatever the rounding.
pub(crate) fn symmetric_products<T: Real, const K: usize>(
    threads: Threads,
    n: usize,
    products: [(&mut [T], View<T>, View<T>); K],
) {
    let both = products.map(|(out, a, b)| {
        assert!(a.rows == n && b.columns == n, "symmetric result of {n} x {n}");
        (out, move |_| (a, b))
    });
    blocks_of_products(threads, n, both);
}

/// One [`symmetric_products`].
pub(crate) fn symmetric_product<T: Real>(threads: Threads, out: &mut [T], a: View<T>, b: View<T>) {
    symmetric_products(threads, a.rows, [(out, a, b)]);
}

/// `out = x x^T`, exactly symmetric, for the n rows of `x`. `turned` is room for the transpose.
///
/// gemm turns the second factor over for every block anew, and slowly: at 128 x 512 it took half as long as the multiplications. Here that is
/// done once.
pub(crate) fn gram<T: Real>(threads: Threads, out: &mut [T], x: &[T], n: usize, turned: &mut Vec<T>) {
    /// Blocks of so few values are products of rows with rows inside of gemm: nothing is turned over.
    const FEW: usize = 256;
    let x = View::new(x, n, x.len().checked_div(n).unwrap_or(0));
    if n <= block_size(n) || x.columns == 0 {
        return symmetric_product(threads, out, x, x.transposed());
    }
    turned.resize(x.data.len(), T::ZERO);
    let pieces = turned.par_chunks_mut(4 * TILE * n).enumerate();
    threads.each(pieces, |(piece, turned)| turn(x, piece * 4 * TILE, turned));
    let turned = View::new(turned, x.columns, n);
    let factors = |part: Part| (x, if part.len() > FEW { turned } else { x.transposed() });
    blocks_of_products(threads, n, [(out, factors)]);
}

/// Products whose results are symmetric, n x n, block by block; `factors` says what the two factors of a block are parts of.
fn blocks_of_products<'a, T: Real, const K: usize>(
    threads: Threads,
    n: usize,
    products: [(&mut [T], impl Fn(Part) -> (View<'a, T>, View<'a, T>) + Sync); K],
) {
    let size = block_size(n);
    let blocks = n.div_ceil(size);
    let products = products.map(|(out, factors)| {
        assert_eq!(out.len(), n * n, "result of {n} x {n}");
        (Target::new(out, n), factors)
    });
    let each = blocks * (blocks + 1) / 2;
    threads.each((0..each * K).into_par_iter(), |at| {
        let (target, factors) = &products[at / each];
        let (row, column) = below_diagonal(at % each);
        let part = Part { rows: piece_of(row, size, n), columns: piece_of(column, size, n) };
        let (a, b) = factors(part);
        // SAFETY: blocks and their images do not overlap, and each block is handed out once.
        unsafe {
            target.set(part, T::ZERO, T::ONE, a, b);
            target.mirror(part);
        }
    });
}

/// Rows and columns of a block of a symmetric product: smaller ones save more of the upper triangle, larger ones are multiplied faster.
fn block_size(n: usize) -> usize {
    if n <= 256 { 48 } else { 96 }
}

for_this_cpu! {
    /// Columns of `x` from `from` on as rows: as many as there is room for.
    fn turn<T: Real>(x: View<T>, from: usize, turned: &mut [T]) {
        let n = x.rows;
        let columns = turned.len() / n;
        for row in (0..n).step_by(TILE) {
            for column in (0..columns).step_by(TILE) {
                let ([rows, columns], at) = ([n - row, columns - column], row * x.row_stride + from + column);
                if rows.min(columns) < TILE {
                    for c in 0..columns.min(TILE) {
                        let out = &mut turned[(column + c) * n + row..][..rows.min(TILE)];
                        out.iter_mut().enumerate().for_each(|(r, out)| *out = x.data[at + r * x.row_stride + c]);
                    }
                    continue;
                }
                let mut tile = [[T::ZERO; TILE]; TILE];
                for (r, tile) in tile.iter_mut().enumerate() {
                    tile.copy_from_slice(&x.data[at + r * x.row_stride..][..TILE]);
                }
                for c in 0..TILE {
                    let out = &mut turned[(column + c) * n + row..][..TILE];
                    out.iter_mut().zip(&tile).for_each(|(out, tile)| *out = tile[c]);
                }
            }
        }
    }
}

/// Row and column of the `at`-th block on or below the diagonal, row after row.
fn below_diagonal(at: usize) -> (usize, usize) {
    let row = (((8 * at + 1) as f64).sqrt() as usize - 1) / 2;
    (row, at - row * (row + 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> Vec<f64> {
        (0..count).map(|i| ((i * 37 + 11) % 101) as f64 / 50.0 - 1.0).collect()
    }

    #[test]
    fn a_symmetric_product_equals_the_plain_product() {
        let threads = Threads::for_work(usize::MAX);
        for n in [1, 31, 33, 48, 49, 96, 255, 256, 257, 600] {
            let k = 7;
            let x = numbers(n * k);
            let view = View::new(&x, n, k);
            let (mut plain, mut symmetric) = (vec![0.0; n * n], vec![f64::NAN; n * n]);
            let mut second = symmetric.clone();
            product(threads, &mut plain, 1.0, view, view.transposed());
            let of_x = (view, view.transposed());
            symmetric_products(threads, n, [(&mut symmetric, of_x.0, of_x.1), (&mut second, of_x.0, of_x.1)]);
            assert_eq!(symmetric, second);
            for i in 0..n {
                for j in 0..n {
                    let literal: f64 = (0..k).map(|c| x[i * k + c] * x[j * k + c]).sum();
                    assert!((plain[i * n + j] - literal).abs() < 1e-12);
                    assert!((symmetric[i * n + j] - literal).abs() < 1e-12);
                    assert_eq!(symmetric[i * n + j], symmetric[j * n + i]);
                }
            }
        }
    }

    #[test]
    fn a_gram_matrix_is_the_symmetric_product_of_its_rows_to_the_bit() {
        fn check<T: Real>(n: usize, k: usize) {
            let x: Vec<T> = numbers(n * k).iter().map(|&x| T::of(x * 1.1)).collect();
            let (mut plain, mut out) = (vec![T::ZERO; n * n], vec![T::of(f64::NAN); n * n]);
            let (view, mut turned) = (View::new(&x, n, k), vec![T::ONE; 3]);
            for threads in [Threads::One, Threads::for_work(usize::MAX)] {
                symmetric_product(threads, &mut plain, view, view.transposed());
                gram(threads, &mut out, &x, n, &mut turned);
                assert_eq!(out, plain, "{n} rows of {k}");
            }
        }
        for n in [0, 1, 16, 47, 48, 49, 54, 64, 65, 97, 128, 130, 256, 257, 300] {
            for k in [0, 1, 2, 3, 15, 16, 17, 63, 64, 100, 513] {
                check::<f32>(n, k);
                check::<f64>(n, k);
            }
        }
    }

    #[test]
    fn products_in_pieces_equal_their_literal_sums() {
        let threads = Threads::for_work(usize::MAX);
        for (m, n, k) in [(1, 1, 1), (65, 3, 2), (66, 64, 5), (67, 65, 5), (257, 129, 3), (400, 300, 2)] {
            let (a, b) = (numbers(m * k), numbers(n * k));
            let (left, right) = (View::new(&a, m, k), View::new(&b, n, k).transposed());
            let (mut out, mut added) = (vec![f64::NAN; m * n], vec![1.0; m * n]);
            product(threads, &mut out, 2.0, left, right);
            add_product(threads, &mut added, 2.0, left, right);
            for (at, (out, added)) in out.iter().zip(&added).enumerate() {
                let literal: f64 = (0..k).map(|c| 2.0 * a[at / n * k + c] * b[at % n * k + c]).sum();
                assert!((out - literal).abs() < 1e-12 && (added - literal - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn blocks_below_the_diagonal_are_counted_row_after_row() {
        let mut at = 0;
        for row in 0..2000 {
            for column in [0, row / 2, row] {
                assert_eq!(below_diagonal(at + column), (row, column));
            }
            at += row + 1;
        }
    }

    #[test]
    #[should_panic(expected = "3 + 3 of 5")]
    fn no_part_reaches_beyond_its_matrix() {
        Target::new(&mut [0.0; 5], 5).pointer(3, 3);
    }
}
