#![no_main]
//! The folder of a run that somebody sent: settings, metrics and results, as `negscale report` reads them. Two bytes tell how long the results are, two more
//! how long the metrics are; settings follow.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_report::{Outcome, encode_events, read_metrics};

fuzz_target!(|data: &[u8]| {
    let Some((results, rest)) = place::parts(data) else { return };
    let Some((metrics, settings)) = place::parts(rest) else { return };
    let folder = place::folder("run");
    place::put(&folder, "results.json", results);
    let path = place::put(&folder, "metrics.jsonl", metrics);
    place::put(&folder, "settings.toml", settings);
    let _ = Outcome::read(&folder);
    if let Ok(reading) = read_metrics(&path) {
        let _ = encode_events(0, &reading.records);
    }
});
