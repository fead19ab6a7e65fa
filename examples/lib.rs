//! Small programs to copy from. Each is run as a test.

#[cfg(test)]
macro_rules! programs {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name;

            #[test]
            fn $name() -> Result<(), Box<dyn std::error::Error>> {
                $name::main()
            }
        )+
    };
}

#[cfg(test)]
programs![audit_embeddings, audit_predictions, train_own_dataset];

/// The first block of Rust in a page.
#[cfg(test)]
fn snippet(page: &str) -> Vec<&str> {
    let lines = page.lines().skip_while(|line| !line.starts_with("```rust")).skip(1);
    lines.take_while(|line| *line != "```").collect()
}

#[test]
fn the_readme_shows_lines_that_are_compiled_as_a_doc_test() {
    let compiled = include_str!("../crates/negscale/src/burn/mod.rs");
    let shown = snippet(include_str!("../README.md"));
    assert!(shown.len() >= 3, "the README has lost its snippet");
    for line in shown {
        assert!(compiled.contains(&format!("//! {line}\n")), "not in the doc test of negscale::burn: {line}");
    }
}
