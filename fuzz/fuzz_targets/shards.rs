#![no_main]
//! What an audit in parts leaves of a shard: two bytes tell how long the manifest is, the scores follow. The hash of the scores is mended, so that
//! damage inside them is met, too.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_audit::Cells;
use negscale_audit::shards::{Shards, hash_file};

fuzz_target!(|data: &[u8]| {
    let Some((manifest, scores)) = place::parts(data) else { return };
    let folder = place::folder("shards");
    let path = place::put(&folder, "shard-1-of-1.scores", scores);
    let text = String::from_utf8_lossy(manifest);
    let hash = hash_file(&path).unwrap_or_default();
    place::put(&folder, "shard-1-of-1.json", text.replace("SCORES", &hash).as_bytes());
    let Ok(shards) = Shards::open(&folder) else { return };
    let classes = shards.counts().classes().len();
    assert!(shards.notes().is_empty(), "one shard is by one model");
    if let Ok(top) = shards.top(5) {
        assert!(top.len() <= 5);
    }
    let names: Vec<String> = (0..classes.min(100)).map(|class| class.to_string()).collect();
    if names.len() == classes {
        let _ = shards.save_rows(&folder.join("rows.csv"), &names, |_| None, Cells::Guarded);
    }
});
