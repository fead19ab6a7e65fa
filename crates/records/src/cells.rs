//! Text in cells of tables that people open in a spreadsheet.
//!
//! Spreadsheets take a cell for a formula, and run it, if it begins with `=`, `+`, `-`, `@`, a tab, a carriage return, a line
//! feed or one of the full-width forms of these signs, quoted or not. [`guard`] puts an apostrophe in front of such text, and of text
//! that looks as if it had been guarded already; [`unguard`] takes one away again, so that every text comes back as it was.

use std::borrow::Cow;

/// Whether a spreadsheet would take it for a formula, now or with its apostrophes taken off. Spreadsheets drop blanks in front.
fn is_formula(text: &str) -> bool {
    const SIGNS: &[char] = &['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];
    text.trim_start_matches([' ', '\'']).starts_with(SIGNS)
}

/// The text as it is written.
pub fn guard(text: &str) -> Cow<'_, str> {
    if is_formula(text) { format!("'{text}").into() } else { text.into() }
}

/// The text that was written as this.
pub fn unguard(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_are_guarded_and_ordinary_names_are_not_touched() {
        for (text, cell) in [("=1", "'=1"), (" @x", "' @x"), ("'=1", "''=1"), ("cat", "cat"), ("'s", "'s")] {
            assert_eq!(guard(text), cell);
        }
        assert_eq!(unguard("'cat"), "'cat");
    }

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(text in "[ '=+a\t-]{0,6}", any: String) {
            for text in [text, any] {
                let cell = guard(&text);
                prop_assert_eq!(unguard(&cell), text.as_str());
            }
        }
    }
}
