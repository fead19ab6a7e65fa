//! The macro of libFuzzer's crate, without libFuzzer: a target becomes two plain functions.

/// A target: `init` once, then `run` for every input.
#[macro_export]
macro_rules! fuzz_target {
    (|$data:ident: &[u8]| $body:block) => {
        $crate::fuzz_target!(init: (), |$data: &[u8]| $body);
    };
    (init: $init:expr, |$data:ident: &[u8]| $body:block) => {
        pub fn init() {
            $init
        }

        pub fn run($data: &[u8]) {
            $body
        }
    };
}
