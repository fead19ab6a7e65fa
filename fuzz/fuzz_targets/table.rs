#![no_main]
//! `.csv` of features, with and without labels; the first byte chooses.
use libfuzzer_sys::fuzz_target;
use negscale_data::own::table::{Layout, Reading, from_reader};
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let label = (choice & 2 != 0).then_some("label");
    let layout = Layout { unlabelled: choice & 1 != 0, label, ..Layout::default() };
    let _ = from_reader(Path::new("fuzz"), text, Reading { layout, ..Reading::default() });
});
