//! Sixteen numbers at a time, with dot products of bf16 pairs: one body for AVX-512 BF16, one for any CPU, the same to the bit.
//!
//! bf16 is the upper half of an `f32`. The instruction `vdpbf16ps` takes, for each of sixteen sums, two products: first that of the second
//! members of the pairs, then that of the first, each added with one rounding (to nearest, ties to even); numbers below the
//! smallest normal one count as 0, in the factors, the sums and the results. So does the software body. Both fuse
//! multiply-adds in the transforms too, so the results agree in every bit, but for the payload of a not-a-number.

use crate::lane::Numbers;

/// Two neighbouring bf16 of a sum.
pub(in crate::conv) type Pair = [u16; 2];

/// The nearest bf16 (ties to even). Not-a-number stays so; numbers below the smallest normal one become 0.
#[inline(always)]
pub(in crate::conv) fn round(value: f32) -> u16 {
    let bits = value.to_bits();
    if bits & 0x7f80_0000 == 0 {
        return (bits >> 16) as u16 & 0x8000;
    }
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The number that a bf16 is.
#[inline(always)]
pub(in crate::conv) fn widen(value: u16) -> f32 {
    f32::from_bits(u32::from(value) << 16)
}

/// Sixteen `f32` treated alike.
///
/// # Safety
/// As for [`crate::lane::Lane`]: methods are called only inside code that [`dispatch_pairs!`] compiled for this implementation, and pointers
/// are valid for sixteen numbers (or for `count`).
pub(in crate::conv) trait Wide: Numbers {
    /// Sixteen pairs.
    type Pairs: Copy;

    unsafe fn load(from: *const f32) -> Self;
    /// The first `count` numbers; the rest are 0.
    unsafe fn load_part(from: *const f32, count: usize) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn store_part(self, to: *mut f32, count: usize);
    /// Rounded, sixteen in a row.
    unsafe fn store_rounded(self, to: *mut u16);
    /// Rounded, each `self` beside its `second`.
    unsafe fn pair(self, second: Self) -> Self::Pairs;
    /// Rounded, neighbours in pairs: first those of `self`, then those of `further`.
    unsafe fn neighbours(self, further: Self) -> Self::Pairs;
    /// Pair `i` of row `j` becomes pair `j` of row `i`.
    unsafe fn transpose(rows: [Self::Pairs; 16]) -> [Self::Pairs; 16];
    unsafe fn splat_pair(from: *const Pair) -> Self::Pairs;
    unsafe fn load_pairs(from: *const Pair) -> Self::Pairs;
    unsafe fn store_pairs(pairs: Self::Pairs, to: *mut Pair);
    /// The sums with both products of each pair added.
    unsafe fn dot(self, left: Self::Pairs, right: Self::Pairs) -> Self;
}

/// 0 (with its sign) for numbers below the smallest normal one.
#[inline(always)]
fn flush(value: f32) -> f32 {
    if value.to_bits() & 0x7f80_0000 == 0 { f32::from_bits(value.to_bits() & 0x8000_0000) } else { value }
}

impl Wide for [f32; 16] {
    type Pairs = [Pair; 16];

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for sixteen numbers.
        unsafe { from.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Self {
        let mut whole = [0.0; 16];
        for (i, value) in whole.iter_mut().enumerate().take(count) {
            // SAFETY: the caller vouches for `count` numbers.
            *value = unsafe { *from.add(i) };
        }
        whole
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for room.
        unsafe { to.cast::<Self>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        for (i, value) in self.iter().enumerate().take(count) {
            // SAFETY: the caller vouches for room for `count` numbers.
            unsafe { *to.add(i) = *value };
        }
    }
    #[inline(always)]
    unsafe fn store_rounded(self, to: *mut u16) {
        // SAFETY: the caller vouches for room.
        unsafe { to.cast::<[u16; 16]>().write_unaligned(self.map(round)) }
    }
    #[inline(always)]
    unsafe fn pair(self, second: Self) -> Self::Pairs {
        std::array::from_fn(|i| [round(self[i]), round(second[i])])
    }
    #[inline(always)]
    unsafe fn neighbours(self, further: Self) -> Self::Pairs {
        let at = |i: usize| round(if i < 16 { self[i] } else { further[i - 16] });
        std::array::from_fn(|i| [at(2 * i), at(2 * i + 1)])
    }
    #[inline(always)]
    unsafe fn transpose(rows: [Self::Pairs; 16]) -> [Self::Pairs; 16] {
        std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
    }
    #[inline(always)]
    unsafe fn splat_pair(from: *const Pair) -> Self::Pairs {
        // SAFETY: the caller vouches for a pair.
        [unsafe { from.read_unaligned() }; 16]
    }
    #[inline(always)]
    unsafe fn load_pairs(from: *const Pair) -> Self::Pairs {
        // SAFETY: the caller vouches for sixteen pairs.
        unsafe { from.cast::<Self::Pairs>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_pairs(pairs: Self::Pairs, to: *mut Pair) {
        // SAFETY: the caller vouches for room.
        unsafe { to.cast::<Self::Pairs>().write_unaligned(pairs) }
    }
    #[inline(always)]
    unsafe fn dot(self, left: Self::Pairs, right: Self::Pairs) -> Self {
        std::array::from_fn(|i| {
            let second = widen(left[i][1]).mul_add(widen(right[i][1]), flush(self[i]));
            flush(widen(left[i][0]).mul_add(widen(right[i][0]), flush(second)))
        })
    }
}

impl Numbers for [f32; 16] {
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; 16]
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
        std::array::from_fn(|i| self[i].mul_add(factor[i], term[i]))
    }
    #[inline(always)]
    unsafe fn clamp(self, least: Self, most: Self) -> Self {
        std::array::from_fn(|i| self[i].max(least[i]).min(most[i]))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{Pair, Wide};
    use std::arch::x86_64::*;
    use std::mem::transmute;

    /// The first `count` of sixteen.
    #[inline(always)]
    fn mask(count: usize) -> __mmask16 {
        ((1u32 << count.min(16)) - 1) as __mmask16
    }

    // SAFETY (all blocks below): the trait's contract says that the CPU has AVX-512 with BF16 and that pointers are valid.
    impl Wide for __m512 {
        type Pairs = __m512i;

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: see above.
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn load_part(from: *const f32, count: usize) -> Self {
            // SAFETY: see above; what the mask leaves out is not touched.
            unsafe { _mm512_maskz_loadu_ps(mask(count), from) }
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: see above.
            unsafe { _mm512_storeu_ps(to, self) }
        }
        #[inline(always)]
        unsafe fn store_part(self, to: *mut f32, count: usize) {
            // SAFETY: see above; what the mask leaves out is not touched.
            unsafe { _mm512_mask_storeu_ps(to, mask(count), self) }
        }
        #[inline(always)]
        unsafe fn store_rounded(self, to: *mut u16) {
            // SAFETY: see above; both types are sixteen bf16.
            unsafe {
                _mm256_storeu_si256(to.cast(), transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(self)))
            }
        }
        #[inline(always)]
        unsafe fn pair(self, second: Self) -> __m512i {
            // SAFETY: see above; both types are 32 bf16.
            unsafe {
                // First all of `self`, then all of `second`; taken alternately.
                let both = transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(second, self));
                let mut order = [0u16; 32];
                for i in 0..16 {
                    order[2 * i] = i as u16;
                    order[2 * i + 1] = 16 + i as u16;
                }
                _mm512_permutexvar_epi16(transmute::<[u16; 32], __m512i>(order), both)
            }
        }
        #[inline(always)]
        unsafe fn neighbours(self, further: Self) -> __m512i {
            // SAFETY: see above; both types are 32 bf16.
            unsafe { transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(further, self)) }
        }
        #[inline(always)]
        unsafe fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
            // SAFETY: see above.
            unsafe {
                // Blocks of 4 x 4 first: of rows 4 b, ..., 4 b + 3, result 4 b + i has column 4 q + i in quarter q.
                let mut blocks = rows;
                for b in (0..16).step_by(4) {
                    let (low, further_low) = (
                        _mm512_unpacklo_epi32(rows[b], rows[b + 1]),
                        _mm512_unpacklo_epi32(rows[b + 2], rows[b + 3]),
                    );
                    let (high, further_high) = (
                        _mm512_unpackhi_epi32(rows[b], rows[b + 1]),
                        _mm512_unpackhi_epi32(rows[b + 2], rows[b + 3]),
                    );
                    blocks[b] = _mm512_unpacklo_epi64(low, further_low);
                    blocks[b + 1] = _mm512_unpackhi_epi64(low, further_low);
                    blocks[b + 2] = _mm512_unpacklo_epi64(high, further_high);
                    blocks[b + 3] = _mm512_unpackhi_epi64(high, further_high);
                }
                // Then the quarters: column 4 q + i is quarter q of results i, 4 + i, 8 + i and 12 + i.
                let mut columns = rows;
                for i in 0..4 {
                    let even = _mm512_shuffle_i32x4::<0x88>(blocks[i], blocks[4 + i]);
                    let odd = _mm512_shuffle_i32x4::<0xdd>(blocks[i], blocks[4 + i]);
                    let further_even = _mm512_shuffle_i32x4::<0x88>(blocks[8 + i], blocks[12 + i]);
                    let further_odd = _mm512_shuffle_i32x4::<0xdd>(blocks[8 + i], blocks[12 + i]);
                    columns[i] = _mm512_shuffle_i32x4::<0x88>(even, further_even);
                    columns[4 + i] = _mm512_shuffle_i32x4::<0x88>(odd, further_odd);
                    columns[8 + i] = _mm512_shuffle_i32x4::<0xdd>(even, further_even);
                    columns[12 + i] = _mm512_shuffle_i32x4::<0xdd>(odd, further_odd);
                }
                columns
            }
        }
        #[inline(always)]
        unsafe fn splat_pair(from: *const Pair) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
        }
        #[inline(always)]
        unsafe fn load_pairs(from: *const Pair) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_loadu_si512(from.cast()) }
        }
        #[inline(always)]
        unsafe fn store_pairs(pairs: __m512i, to: *mut Pair) {
            // SAFETY: see above.
            unsafe { _mm512_storeu_si512(to.cast(), pairs) }
        }
        #[inline(always)]
        unsafe fn dot(self, left: __m512i, right: __m512i) -> Self {
            // SAFETY: see above; both types are 32 bf16.
            unsafe {
                _mm512_dpbf16_ps(
                    self,
                    transmute::<__m512i, __m512bh>(left),
                    transmute::<__m512i, __m512bh>(right),
                )
            }
        }
    }
}

/// Defines `$name` as a call of `$body::<W>` with the hardware's [`Wide`] where there is one, else with the software's. The body must be
/// `#[inline(always)]`, so that it is compiled with the instructions of its lanes.
macro_rules! dispatch_pairs {
    ($(#[$attribute:meta])* $visible:vis unsafe fn $name:ident = $body:ident ($($argument:ident: $type:ty),* $(,)?)) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        $visible unsafe fn $name($($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn hard($($argument: $type),*) {
                    // SAFETY: the caller of `$name` keeps the contract of `$body`; the CPU has what `__m512` needs.
                    unsafe { $body::<std::arch::x86_64::__m512>($($argument),*) }
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                unsafe fn fused($($argument: $type),*) {
                    // SAFETY: the caller keeps the contract of `$body`; arrays need no special instructions.
                    unsafe { $body::<[f32; 16]>($($argument),*) }
                }
                if negscale_cpu::has_bf16() {
                    // SAFETY: as above.
                    return unsafe { hard($($argument),*) };
                }
                if negscale_cpu::has_avx2() {
                    // SAFETY: as above.
                    return unsafe { fused($($argument),*) };
                }
            }
            // SAFETY: the caller keeps the contract of `$body`; arrays need no special instructions.
            unsafe { $body::<[f32; 16]>($($argument),*) }
        }
    };
}
pub(in crate::conv) use dispatch_pairs;
