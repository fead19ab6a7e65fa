#![no_main]
//! `review.jsonl`, read and gone on with.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_review::record::{Record, lines};
use negscale_review::session::Decisions;

fuzz_target!(|data: &[u8]| {
    let path = place::put(&place::folder("record"), "review.jsonl", data);
    let Ok(found) = lines(&path, "x") else { return };
    let again = Record::open(&path, "x").map(|(_, again)| again);
    assert_eq!(again.ok().as_ref(), Some(&found), "read and opened it is the same");
    let decisions = Decisions::of(found);
    for reviewer in decisions.reviewers().values() {
        assert!(reviewer.all().count() <= data.len());
    }
});
