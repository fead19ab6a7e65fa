//! What a page is made of, for tests that it stays one.

/// A text that would do harm as markup.
pub const HOSTILE: &str = "<script>alert(1)</script>\"' onload=x --> ]]> {{ 7*7 }} &amp; </svg></title>";

/// The names of all elements, found by a walk that knows quoted attributes, comments apart; fails on anything that
/// does not look like markup.
pub fn elements(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    let style = html.find("<style>").unwrap()..html.find("</style>").unwrap();
    let text = format!("{}{}", &html[..style.start], &html[style.end..]);
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let mut quoted = false;
        let end = rest.find(|c| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        let (tag, after) = rest.split_at(end.unwrap());
        found.push(tag.trim_end_matches('/').split_whitespace().collect::<Vec<_>>().join(" "));
        rest = after;
    }
    found
}

pub fn names(html: &str) -> Vec<String> {
    elements(html).iter().map(|tag| tag.split(' ').next().unwrap().to_owned()).collect()
}

/// The first word that would ask something of the network.
pub fn asked_of_the_network(html: &str) -> Option<&'static str> {
    let words = ["http:", "https:", "//", "@import", "url(", "<script", "<iframe", "<object"];
    words.into_iter().find(|word| html.match_indices(word).any(|(at, _)| !inside_picture(html, at)))
}

/// Base64 may hold two slashes in a row.
fn inside_picture(html: &str, at: usize) -> bool {
    html[..at].rsplit('"').next().unwrap().starts_with("data:image/png;base64,")
}
