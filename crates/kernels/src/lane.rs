//! Eight numbers at a time: the one abstraction that the convolution kernels are written in, with one body for AVX2 with
//! fused multiply-add and one for any CPU.

/// Some `f32` treated alike.
///
/// # Safety
/// All methods are unsafe for one common reason: an implementation may need instructions that not every CPU has. Call them
/// only inside code that [`dispatch!`] (or its like) compiled for this implementation.
pub(crate) trait Numbers: Copy {
    unsafe fn splat(value: f32) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once where the CPU can.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
}

/// Eight of them.
///
/// # Safety
/// As for [`Numbers`]. `load` and `store` also need eight valid numbers at the pointer (no alignment).
pub(crate) trait Lane: Numbers {
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);

    /// The first `count` (at most 8) numbers; the rest are 0.
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Self {
        let mut whole = [0.0f32; 8];
        for (i, value) in whole.iter_mut().enumerate().take(count) {
            // SAFETY: the caller vouches for `count` numbers at `from`.
            *value = unsafe { *from.add(i) };
        }
        // SAFETY: `whole` holds eight numbers.
        unsafe { Self::load(whole.as_ptr()) }
    }

    /// Stores the first `count` (at most 8) numbers.
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        let mut whole = [0.0f32; 8];
        // SAFETY: `whole` has room for eight numbers.
        unsafe { self.store(whole.as_mut_ptr()) };
        for (i, value) in whole.iter().enumerate().take(count) {
            // SAFETY: the caller vouches for room for `count` numbers at `to`.
            unsafe { *to.add(i) = *value };
        }
    }
}

impl Lane for [f32; 8] {
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for eight numbers at `from`.
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for room for eight numbers at `to`.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }
}

impl Numbers for [f32; 8] {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; 8]
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] - other[i])
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] * other[i])
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        std::array::from_fn(|i| self[i] * factor[i] + term[i])
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use super::{Lane, Numbers};
    use std::arch::x86_64::*;

    // SAFETY (all blocks below): the trait's contract says that the CPU has AVX2 and FMA and that pointers are valid.
    impl Lane for __m256 {
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(to, self) }
        }
    }

    // SAFETY (all blocks below): as above.
    impl Numbers for __m256 {
        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_add_ps(self, other) }
        }
        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_sub_ps(self, other) }
        }
        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_mul_ps(self, other) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_fmadd_ps(self, factor, term) }
        }
    }
}

/// Defines `$name` as a call of the generic function `$body::<L>` with the widest [`Lane`] that may be used. The body must be
/// `#[inline(always)]`, so that it is compiled with the instructions of its lane.
macro_rules! dispatch {
    ($(#[$attribute:meta])* $visible:vis unsafe fn $name:ident = $body:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        $visible unsafe fn $name($($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn wide($($argument: $type),*) {
                    // SAFETY: the caller of `$name` keeps the contract of `$body`; the CPU has what `__m256` needs.
                    unsafe { $body::<std::arch::x86_64::__m256>($($argument),*) }
                }
                if negscale_cpu::has_avx2() {
                    // SAFETY: as above.
                    return unsafe { wide($($argument),*) };
                }
            }
            // SAFETY: the caller keeps the contract of `$body`; arrays need no special instructions.
            unsafe { $body::<[f32; 8]>($($argument),*) }
        }
    };
}
pub(crate) use dispatch;
