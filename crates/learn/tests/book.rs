//! The book has a page for every training method, and it is not older than the method's card.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_learn::hosts::METHODS;
use std::path::Path;

fn page(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/methods");
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_method_has_a_page_that_names_all_its_settings_or_links_to_one_that_does() {
    for card in METHODS {
        let mut text = page(&format!("{}.md", card.id));
        let links: Vec<String> = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
            .map(|(target, _)| target.to_owned())
            .filter(|target| target.ends_with(".md") && !target.contains('/'))
            .collect();
        let year = card.paper.rsplit(' ').next().unwrap_or_default();
        assert!(card.paper == "-" || text.contains(year), "{}: its page misses {}", card.id, card.paper);
        links.iter().for_each(|link| text.push_str(&page(link)));
        for key in (card.settings)().keys() {
            assert!(text.contains(&format!("`{key}`")), "{}: `{key}` is not on its page", card.id);
        }
    }
}
