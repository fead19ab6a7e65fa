//! One answer, for all crates of the house, to the question: which instructions may this process use?
//!
//! The answer is found at run time, so one binary runs everywhere. The variable `NEGSCALE_CPU` sets the most that may be used:
//! `portable` (code that runs on any CPU), `avx2`, `avx512`, or `auto` (all that the CPU has; the default). Tests use it to check code on
//! machines that would not take it. What the CPU does not have is never used, whatever the variable says.
//! Libraries below us, such as the matrix products of the `gemm` crate, decide for themselves, so numbers may differ in their last
//! bits between CPUs whatever the variable says; [`instructions`] is what to compare.

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

use std::ffi::OsStr;
use std::sync::OnceLock;

/// The variable that chooses the code path: `portable`, `avx2`, `avx512`, or `auto` (the default).
pub const VARIABLE: &str = "NEGSCALE_CPU";

/// Sets of instructions; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Portable,
    Avx2,
    Avx512,
}

/// What was found, and what the user allows.
#[derive(Debug, Clone, Copy)]
struct Found {
    level: Level,
    bf16: bool,
}

/// Found out once per process.
#[inline]
fn found() -> Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let allowed = most_allowed(std::env::var_os(VARIABLE).as_deref()).unwrap_or_else(|unknown| {
            eprintln!("warning: {unknown}; going on as with auto");
            Level::Avx512
        });
        limit(detect(), allowed)
    })
}

/// What is left of what the CPU has.
fn limit(has: Found, allowed: Level) -> Found {
    let level = has.level.min(allowed);
    Found { level, bf16: has.bf16 && level == Level::Avx512 }
}

/// Whether the 256-bit code (AVX2 with fused multiply-add) may be used: the CPU has it and the user has not forbidden it.
#[inline]
pub fn has_avx2() -> bool {
    found().level >= Level::Avx2
}

/// Whether the 512-bit code (AVX-512 F, BW, DQ and VL) may be used.
#[inline]
pub fn has_avx512() -> bool {
    found().level >= Level::Avx512
}

/// Whether dot products of bf16 pairs (AVX-512 BF16) may be used.
#[inline]
pub fn has_bf16() -> bool {
    found().bf16
}

/// All instructions that have a part in the numbers of this process, for the record: those of our own code, and the widest that
/// libraries below us may choose by themselves. Results of one seed are the same to the last bit only where this is the same.
pub fn instructions() -> String {
    format!("{}, libraries {}", name(), widest())
}

/// The widest instructions of this CPU that libraries look for.
fn widest() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        let has_fma =
            std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        if std::arch::is_x86_feature_detected!("avx512f") && has_fma {
            "avx512"
        } else if has_fma {
            "avx2+fma"
        } else {
            "sse"
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        "neon"
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        std::env::consts::ARCH
    }
}

/// Name of the code path in use, for reports and benchmarks.
pub fn name() -> &'static str {
    match found() {
        Found { level: Level::Portable, .. } => "portable",
        Found { level: Level::Avx2, .. } => "avx2+fma",
        Found { level: Level::Avx512, bf16: false } => "avx512",
        Found { level: Level::Avx512, bf16: true } => "avx512+bf16",
    }
}

/// Reads the value of [`VARIABLE`]. What it does not know is an error to warn of, not to stop for: a misspelt variable must
/// not end a training run, but must not go unnoticed either.
fn most_allowed(value: Option<&OsStr>) -> Result<Level, String> {
    let value = value.map(OsStr::to_string_lossy);
    match value.as_deref().map(str::trim) {
        Some("portable") => Ok(Level::Portable),
        Some("avx2") => Ok(Level::Avx2),
        None | Some("" | "auto" | "avx512") => Ok(Level::Avx512),
        Some(other) => Err(format!("{VARIABLE}={other} is not known (portable, avx2, avx512, auto)")),
    }
}

fn detect() -> Found {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma");
        let avx512 = avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        let level = match (avx2, avx512) {
            (_, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            (false, false) => Level::Portable,
        };
        Found { level, bf16: avx512 && has!("avx512bf16") }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Found { level: Level::Portable, bf16: false }
    }
}

/// Compiles a function twice, for every CPU and for those with AVX2, and calls the right one. Closures inside a function
/// are compiled like the function, which is why this is a macro and not a call with a closure. No operation is reordered or
/// fused, so both give the same bits.
#[macro_export]
macro_rules! for_this_cpu {
    ($(#[$attribute:meta])* $visible:vis fn $name:ident $(<$letter:ident: $bound:ident>)? ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        $visible fn $name $(<$letter: $bound>)? ($($argument: $type),*) $(-> $result)? {
            fn plain $(<$letter: $bound>)? ($($argument: $type),*) $(-> $result)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide $(<$letter: $bound>)? ($($argument: $type),*) $(-> $result)? $body
                if $crate::has_avx2() {
                    // SAFETY: the CPU has AVX2, as was found out.
                    return unsafe { wide($($argument),*) };
                }
            }
            plain($($argument),*)
        }
    };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_sets_the_most_that_may_be_used() {
        for (value, level) in [
            (None, Level::Avx512),
            (Some("auto"), Level::Avx512),
            (Some(""), Level::Avx512),
            (Some("avx512"), Level::Avx512),
            (Some("avx2"), Level::Avx2),
            (Some(" portable "), Level::Portable),
        ] {
            assert_eq!(most_allowed(value.map(OsStr::new)), Ok(level), "{value:?}");
        }
    }

    #[test]
    fn what_the_cpu_lacks_is_not_used_and_bf16_needs_the_512_bit_code() {
        let all = Found { level: Level::Avx512, bf16: true };
        let old = Found { level: Level::Avx2, bf16: false };
        assert!(limit(all, Level::Avx512).bf16);
        for allowed in [Level::Portable, Level::Avx2] {
            let left = limit(all, allowed);
            assert_eq!((left.level, left.bf16), (allowed, false));
        }
        assert_eq!(limit(old, Level::Avx512).level, Level::Avx2);
    }

    #[test]
    fn a_wider_set_includes_the_narrower_ones() {
        assert!(!has_bf16() || has_avx512());
        assert!(!has_avx512() || has_avx2());
    }

    #[test]
    fn a_value_that_is_not_known_or_not_text_is_named() {
        let warning = most_allowed(Some(OsStr::new("fast"))).unwrap_err();
        assert_eq!(warning, "NEGSCALE_CPU=fast is not known (portable, avx2, avx512, auto)");
        #[cfg(unix)]
        {
            let odd: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"portable\xff");
            assert!(most_allowed(Some(odd)).unwrap_err().contains("portable\u{fffd}"));
        }
    }

    #[test]
    fn the_record_names_our_own_code_and_what_libraries_choose() {
        let (ours, libraries) = (name(), widest());
        assert_eq!(instructions(), format!("{ours}, libraries {libraries}"));
        assert!(ours == "portable" || libraries.contains("avx"), "libraries see what we see: {libraries}");
    }

    for_this_cpu! {
        fn sum_of_squares(values: &[f32]) -> f32 {
            values.iter().map(|v| v * v).sum()
        }
    }

    #[test]
    fn a_function_compiled_twice_is_called_like_any_other() {
        assert_eq!(sum_of_squares(&[1.0, 2.0, 3.0]), 14.0);
    }
}
