//! Matrix products of plain slices, on the calling thread alone: who has many of them shares those among threads.

/// The snippet of the README is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// `out[i * n + j] = <a_i, b_j>`: products of every row of `a` with every one of the n rows of `b`, rows of `dim` values.
///
/// # Panics
/// If a length does not fit.
pub fn rows_with_rows(a: &[f32], b: &[f32], dim: usize, out: &mut [f32]) {
    let (m, n) = (count(a, dim), count(b, dim));
    multiply(out, [m, n, dim], (a, [dim, 1]), (b, [1, dim]), 0.0, 1.0);
}

/// `out[i * n + j] = sum_p a_i[p] b_p[j]`: the usual product `a b`, of rows of `inner` values with a matrix of rows of n.
///
/// # Panics
/// If a length does not fit.
pub fn rows_with_columns(a: &[f32], b: &[f32], inner: usize, out: &mut [f32]) {
    let m = count(a, inner);
    assert!(b.len().is_multiple_of(inner), "{} values are no {inner} rows", b.len());
    let n = b.len() / inner;
    multiply(out, [m, n, inner], (a, [inner, 1]), (b, [n, 1]), 0.0, 1.0);
}

/// `out[p * n + q] += sum_i a_i[p] b_i[q]`: `a` transposed times `b`, rows of m and of n values, added to what is there.
///
/// # Panics
/// If a length does not fit.
pub fn add_columns_with_columns(a: &[f32], b: &[f32], [m, n]: [usize; 2], out: &mut [f32]) {
    let rows = count(a, m);
    assert_eq!(rows, count(b, n), "as many rows on both sides");
    multiply(out, [m, n, rows], (a, [1, m]), (b, [n, 1]), 1.0, 1.0);
}

/// `out[p * dim + q] += sum_i a_i[p] a_i[q]`: the second moment of the rows of `a`, not centred.
///
/// # Panics
/// If a length does not fit.
pub fn add_second_moment(a: &[f64], dim: usize, out: &mut [f64]) {
    multiply(out, [dim, dim, count(a, dim)], (a, [1, dim]), (a, [dim, 1]), 1.0, 1.0);
}

/// `out = a a` for a square matrix.
///
/// # Panics
/// If a length does not fit.
pub fn square(a: &[f64], dim: usize, out: &mut [f64]) {
    assert_eq!(a.len(), dim * dim, "a square matrix of {dim} rows");
    multiply(out, [dim; 3], (a, [dim, 1]), (a, [dim, 1]), 0.0, 1.0);
}

fn count<T>(rows: &[T], dim: usize) -> usize {
    assert!(dim > 0 && rows.len().is_multiple_of(dim), "{} values are no rows of {dim}", rows.len());
    rows.len() / dim
}

/// `out = keep out + one a b` for an m x n result and inner size k; matrices come with their [row, column] strides.
fn multiply<T: Copy + PartialEq + Default + 'static>(
    out: &mut [T],
    [m, n, k]: [usize; 3],
    (a, a_strides): (&[T], [usize; 2]),
    (b, b_strides): (&[T], [usize; 2]),
    keep: T,
    one: T,
) {
    assert_eq!(out.len(), m * n, "result of {m} x {n}");
    if m == 0 || n == 0 {
        return;
    }
    let covers = |len, rows: usize, columns: usize, [down, along]: [usize; 2]| {
        rows == 0 || columns == 0 || (rows - 1) * down + (columns - 1) * along < len
    };
    assert!(covers(a.len(), m, k, a_strides) && covers(b.len(), k, n, b_strides), "inner sizes of a product");
    let stride = |strides: [usize; 2], axis: usize| strides[axis] as isize;
    // SAFETY: the assertions above show that every element addressed by sizes and strides lies inside its slice; `out` is
    // borrowed mutably, so it overlaps neither source.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            keep != T::default(),
            a.as_ptr(),
            stride(a_strides, 1),
            stride(a_strides, 0),
            b.as_ptr(),
            stride(b_strides, 1),
            stride(b_strides, 0),
            keep,
            one,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_equal_their_literal_sums() {
        for (m, n, dim) in [(1, 1, 1), (5, 1, 3), (1, 7, 16), (33, 50, 17), (8, 100, 64)] {
            // Small integers: every sum is exact in f32.
            let value = |at: usize| ((at * 37 + 11) % 13) as f32 - 6.0;
            let a: Vec<f32> = (0..m * dim).map(value).collect();
            let b: Vec<f32> = (0..n * dim).map(|at| value(at + 5)).collect();
            let mut out = vec![f32::NAN; m * n];
            rows_with_rows(&a, &b, dim, &mut out);
            for i in 0..m {
                for j in 0..n {
                    let wanted: f32 = (0..dim).map(|p| a[i * dim + p] * b[j * dim + p]).sum();
                    assert_eq!(out[i * n + j], wanted, "{i} {j} of {m} x {n}, {dim}");
                }
            }
            // b as dim rows of n.
            rows_with_columns(&a, &b, dim, &mut out);
            let mut turned = vec![1.0; m * n];
            let upright: Vec<f32> = (0..m * dim).map(|at| a[at % m * dim + at / m]).collect();
            add_columns_with_columns(&upright, &b, [m, n], &mut turned);
            for i in 0..m {
                for j in 0..n {
                    let wanted: f32 = (0..dim).map(|p| a[i * dim + p] * b[p * n + j]).sum();
                    assert_eq!(out[i * n + j], wanted, "{i} {j} of {m} x {n}, {dim}");
                    assert_eq!(turned[i * n + j], 1.0 + wanted, "{i} {j} of {m} x {n}, {dim}");
                }
            }
            let wide: Vec<f64> = a.iter().map(|&x| x.into()).collect();
            let mut moment = vec![1.0; dim * dim];
            add_second_moment(&wide, dim, &mut moment);
            let mut squared = vec![f64::NAN; dim * dim];
            square(&moment, dim, &mut squared);
            for p in 0..dim {
                for q in 0..dim {
                    let wanted: f64 = (0..m).map(|i| wide[i * dim + p] * wide[i * dim + q]).sum();
                    assert_eq!(moment[p * dim + q], 1.0 + wanted);
                    let wanted: f64 = (0..dim).map(|r| moment[p * dim + r] * moment[r * dim + q]).sum();
                    assert_eq!(squared[p * dim + q], wanted);
                }
            }
        }
    }

    #[test]
    fn no_rows_give_no_products() {
        rows_with_rows(&[], &[1.0, 2.0], 2, &mut []);
        let mut moment = [3.0; 4];
        add_second_moment(&[], 2, &mut moment);
        assert_eq!(moment, [3.0; 4]);
    }
}
