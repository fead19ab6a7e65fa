#![no_main]
//! Files of predictions; the first byte chooses the kind of file and what is expected of it.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_data::own::predictions::{Expected, read};

// The crate that unpacks Parquet may panic on malformed pages, and ours catches that; libFuzzer's own hook would end the run first.
fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| {})),
    |data: &[u8]| {
        let Some((choice, bytes)) = data.split_first() else { return };
        let end = ["npy", "csv", "tsv", "parquet"][usize::from(choice % 4)];
        let path = place::put(&place::folder("predictions"), &format!("p.{end}"), bytes);
        let classes = ["cat", "dog"].map(String::from);
        let ids = ["a", "b", "c"].map(String::from);
        let expected = Expected {
            rows: (choice & 4 != 0).then_some(3),
            classes: (choice & 8 != 0).then_some(&classes[..]),
            ids: (choice & 16 != 0).then_some(&ids[..]),
        };
        if let Ok(found) = read(&path, expected) {
            assert_eq!(found.values.len(), found.rows * found.width());
            assert!(found.values.iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
);
