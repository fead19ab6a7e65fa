#![no_main]
//! `ledger.parquet`: what a run believed of every label.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_audit::Ledger;

// As with other Parquet files, the crate that unpacks may panic, and that is caught.
fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |data: &[u8]| {
        let path = place::put(&place::folder("ledger"), "ledger.parquet", data);
        let _ = Ledger::load(&path);
    }
);
