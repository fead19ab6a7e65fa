//! The book has a page for every training method, and it is not older than the method's card.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_learn::hosts::METHODS;
use std::path::Path;

#[test]
fn every_method_has_a_page_that_names_all_its_settings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/methods");
    for card in METHODS {
        let path = folder.join(format!("{}.md", card.id));
        let page =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for key in (card.settings)().keys() {
            assert!(page.contains(&format!("`{key}`")), "{}: `{key}` is not on its page", card.id);
        }
        let year = card.paper.rsplit(' ').next().unwrap_or_default();
        assert!(
            card.paper == "-" || page.contains(year),
            "{}: its page says nothing of {}",
            card.id,
            card.paper
        );
    }
}
