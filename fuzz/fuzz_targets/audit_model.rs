#![no_main]
//! Models of an audit in parts (`audit.safetensors`), and a row that they judge.
#[path = "support/place.rs"]
mod place;

use libfuzzer_sys::fuzz_target;
use negscale_audit::crossfit::AuditModel;
use negscale_audit::shards::RowScorer;

fuzz_target!(|data: &[u8]| {
    let path = place::put(&place::folder("audit-model"), "audit.safetensors", data);
    let Ok(model) = AuditModel::load(&path) else { return };
    if model.dim() <= 1024 && model.classes() > 0 {
        let mut scores = Vec::new();
        let _ = model.score(&vec![0.5; model.dim()], &[7], &[0], &mut scores);
    }
});
