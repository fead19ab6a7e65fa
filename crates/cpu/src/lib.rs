//! One answer, for all crates of the house, to the question: which instructions may this process use?
//!
//! The answer is found at run time, so one binary runs everywhere. Setting the variable `NEGSCALE_CPU=portable` makes every
//! crate use the code that runs on any CPU; tests use it to check that code on machines that would not take it.
//! Libraries below us, such as the matrix products of the `gemm` crate, decide for themselves, so numbers may differ in their last
//! bits between CPUs whatever the variable says; [`instructions`] is what to compare.

/// The snippets of the README are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

use std::ffi::OsStr;
use std::sync::OnceLock;

/// The variable that chooses the code path: `portable`, or `auto` (the default).
pub const VARIABLE: &str = "NEGSCALE_CPU";

/// Whether the 256-bit code (AVX2 with fused multiply-add) may be used: the CPU has it and the user has not forbidden it.
/// Found out once per process.
#[inline]
pub fn has_avx2() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let allowed = allows_more_than_portable(std::env::var_os(VARIABLE).as_deref());
        allowed.unwrap_or_else(|unknown| {
            eprintln!("warning: {unknown}; going on as with auto");
            true
        }) && detect()
    })
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
    if has_avx2() { "avx2+fma" } else { "portable" }
}

/// Reads the value of [`VARIABLE`]. What it does not know is an error to warn of, not to stop for: a misspelt variable must
/// not end a training run, but must not go unnoticed either.
fn allows_more_than_portable(value: Option<&OsStr>) -> Result<bool, String> {
    let value = value.map(OsStr::to_string_lossy);
    match value.as_deref().map(str::trim) {
        Some("portable") => Ok(false),
        None | Some("" | "auto") => Ok(true),
        Some(other) => Err(format!("{VARIABLE}={other} is not known (portable, auto)")),
    }
}

fn detect() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
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
    fn only_the_word_portable_forbids_the_wide_code() {
        for value in [None, Some("auto"), Some("")] {
            assert_eq!(allows_more_than_portable(value.map(OsStr::new)), Ok(true), "{value:?}");
        }
        assert_eq!(allows_more_than_portable(Some(OsStr::new(" portable "))), Ok(false));
    }

    #[test]
    fn a_value_that_is_not_known_or_not_text_is_named() {
        let warning = allows_more_than_portable(Some(OsStr::new("fast"))).unwrap_err();
        assert_eq!(warning, "NEGSCALE_CPU=fast is not known (portable, auto)");
        #[cfg(unix)]
        {
            let odd: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"portable\xff");
            assert!(allows_more_than_portable(Some(odd)).unwrap_err().contains("portable\u{fffd}"));
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
