#![no_main]
//! Files of labels, as text and as `.csv`, and the vocabulary that is made of them.
use libfuzzer_sys::fuzz_target;
use negscale_data::own::Header;
use negscale_data::own::label_file::{Asked, from_csv, from_text};
use negscale_data::own::labels::Vocabulary;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let columns = [
        from_text(Path::new("fuzz"), data, Header::Auto).ok().map(|file| file.given().clone()),
        from_csv(Path::new("fuzz"), data, Asked::default()).ok().map(|file| file.given().clone()),
    ];
    for column in columns.iter().flatten() {
        if let Ok(vocabulary) = Vocabulary::of(&[column]) {
            assert_eq!(vocabulary.apply(column).map(|labels| labels.len()), Ok(column.len()));
        }
    }
});
