//! Eight numbers at a time: the one abstraction that the convolution kernels are written in, with one body for AVX2 with
//! fused multiply-add, one for AVX-512 and one for any CPU.
//!
//! AVX-512 has registers of sixteen numbers, and twice as many: products take both ([`Lane::Broad`], [`Lane::ROWS`]), the rest stays at eight.
//! No sum changes its order, so the results are those of AVX2, to the bit.

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
    /// No less than `least` and no more than `most`; what is not a number becomes `least`.
    unsafe fn clamp(self, least: Self, most: Self) -> Self;
}

/// Eight of them.
///
/// # Safety
/// As for [`Numbers`]. `load` and `store` also need eight valid numbers at the pointer (no alignment).
pub(crate) trait Lane: Numbers {
    /// Sixteen numbers.
    type Broad: Numbers;
    /// Rows of a block of products, each of sixteen columns: as many as the registers hold.
    const ROWS: usize;

    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn join(low: Self, high: Self) -> Self::Broad;
    unsafe fn split(both: Self::Broad) -> [Self; 2];
    /// Sixteen numbers in a row.
    #[inline(always)]
    unsafe fn load_broad(from: *const f32) -> Self::Broad {
        // SAFETY: the caller vouches for sixteen numbers at `from`.
        unsafe { Self::join(Self::load(from), Self::load(from.add(8))) }
    }

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

/// Two of anything are as good as one.
impl<N: Numbers> Numbers for [N; 2] {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: called with lanes that the CPU has, here and below.
        unsafe { [N::splat(value); 2] }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { [self[0].add(other[0]), self[1].add(other[1])] }
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { [self[0].sub(other[0]), self[1].sub(other[1])] }
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { [self[0].mul(other[0]), self[1].mul(other[1])] }
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: as above.
        unsafe { [self[0].mul_add(factor[0], term[0]), self[1].mul_add(factor[1], term[1])] }
    }
    #[inline(always)]
    unsafe fn clamp(self, least: Self, most: Self) -> Self {
        // SAFETY: as above.
        unsafe { [self[0].clamp(least[0], most[0]), self[1].clamp(least[1], most[1])] }
    }
}

impl Lane for [f32; 8] {
    type Broad = [Self; 2];
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn join(low: Self, high: Self) -> Self::Broad {
        [low, high]
    }
    #[inline(always)]
    unsafe fn split(both: Self::Broad) -> [Self; 2] {
        both
    }
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
    #[inline(always)]
    unsafe fn clamp(self, least: Self, most: Self) -> Self {
        std::array::from_fn(|i| self[i].max(least[i]).min(most[i]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use super::{Lane, Numbers};
    use std::arch::x86_64::*;

    // SAFETY (all blocks below): the trait's contract says that the CPU has AVX2 and FMA and that pointers are valid.
    impl Lane for __m256 {
        type Broad = [Self; 2];
        const ROWS: usize = 6;

        #[inline(always)]
        unsafe fn join(low: Self, high: Self) -> Self::Broad {
            [low, high]
        }
        #[inline(always)]
        unsafe fn split(both: Self::Broad) -> [Self; 2] {
            both
        }
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
        #[inline(always)]
        unsafe fn clamp(self, least: Self, most: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm256_min_ps(_mm256_max_ps(self, least), most) }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512 {
    use super::{Lane, Numbers};
    use std::arch::x86_64::*;

    /// Eight numbers where registers of sixteen can be had.
    #[derive(Clone, Copy)]
    pub(crate) struct Half(__m256);

    // SAFETY (all blocks below): the trait's contract says that the CPU has AVX-512 and that pointers are valid.
    impl Numbers for Half {
        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_set1_ps(value)) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_add_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_sub_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_mul_ps(self.0, other.0)) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_fmadd_ps(self.0, factor.0, term.0)) }
        }
        #[inline(always)]
        unsafe fn clamp(self, least: Self, most: Self) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_min_ps(_mm256_max_ps(self.0, least.0), most.0)) }
        }
    }

    // SAFETY (all blocks below): see above.
    impl Numbers for __m512 {
        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_add_ps(self, other) }
        }
        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_sub_ps(self, other) }
        }
        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_mul_ps(self, other) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_fmadd_ps(self, factor, term) }
        }
        #[inline(always)]
        unsafe fn clamp(self, least: Self, most: Self) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_min_ps(_mm512_max_ps(self, least), most) }
        }
    }

    impl Lane for Half {
        type Broad = __m512;
        const ROWS: usize = 12;

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: see above.
            unsafe { Self(_mm256_loadu_ps(from)) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(to, self.0) }
        }
        #[inline(always)]
        unsafe fn join(low: Self, high: Self) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low.0), high.0) }
        }
        #[inline(always)]
        unsafe fn split(both: __m512) -> [Self; 2] {
            // SAFETY: see above.
            unsafe { [Self(_mm512_castps512_ps256(both)), Self(_mm512_extractf32x8_ps::<1>(both))] }
        }
        #[inline(always)]
        unsafe fn load_broad(from: *const f32) -> __m512 {
            // SAFETY: see above.
            unsafe { _mm512_loadu_ps(from) }
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
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn widest($($argument: $type),*) {
                    // SAFETY: as above.
                    unsafe { $body::<$crate::lane::avx512::Half>($($argument),*) }
                }
                if negscale_cpu::has_avx512() {
                    // SAFETY: as above.
                    return unsafe { widest($($argument),*) };
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
