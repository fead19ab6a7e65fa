//! Which sign separates the fields of a table, and lines that are blank.
//!
//! A quote opens only where a field begins; inside quotes neither separators nor line ends count.

use crate::{Error, Result};
use std::path::Path;

/// Signs that separate fields, the usual one first.
const SIGNS: [u8; 3] = [b',', b';', b'\t'];
/// So many lines of the beginning decide.
const LINES: usize = 50;

/// How a sign is called.
fn name(sign: u8) -> &'static str {
    match sign {
        b',' => "comma",
        b';' => "semicolon",
        _ => "tab",
    }
}

/// The sign that cuts all of the first lines into equally many fields, two or more; where none does, the one that cuts the
/// first line most often. `whole` says that `start` is the whole file; else its last line is cut off and does not count.
pub(super) fn detect(path: &Path, start: &[u8], whole: bool) -> Result<u8> {
    let mut lines = vec![[1usize; SIGNS.len()]];
    let mut scan = Scan::new(None);
    for &byte in start {
        if scan.is_end(byte) {
            if lines.len() > LINES {
                break;
            }
            lines.push([1; SIGNS.len()]);
        } else if let (false, Some(at)) = (scan.quoted, SIGNS.iter().position(|&sign| sign == byte))
            && let Some(line) = lines.last_mut()
        {
            line[at] += 1;
        }
    }
    // What follows the last line end: nothing, or a line that may go on.
    if lines.len() > 1 && (!whole || scan.is_empty) {
        lines.pop();
    }
    let fitting: Vec<usize> = (0..SIGNS.len())
        .filter(|&at| lines[0][at] > 1 && lines.iter().all(|line| line[at] == lines[0][at]))
        .collect();
    match fitting[..] {
        [] => Ok((0..SIGNS.len()).rev().max_by_key(|&at| lines[0][at]).map_or(b',', |at| SIGNS[at])),
        [at] => Ok(SIGNS[at]),
        _ => {
            let names: Vec<&str> = fitting.iter().map(|&at| name(SIGNS[at])).collect();
            let problem = format!(
                "{} could each separate its fields: put fields that hold one of them into quotes, and write numbers with a decimal point",
                names.join(" and ")
            );
            Err(Error::format(path, None, problem))
        }
    }
}

/// Follows a table byte by byte, to know where its lines end.
pub(super) struct Scan {
    /// The one separator; any of [`SIGNS`] while it is not known.
    separator: Option<u8>,
    quoted: bool,
    /// A field begins here.
    begins: bool,
    /// The byte before was a quote that closed.
    closed: bool,
    /// The byte before was a carriage return.
    returned: bool,
    /// Nothing stands on the line yet.
    is_empty: bool,
    line: u64,
    blank: Option<u64>,
}

impl Scan {
    /// At the begin of a table.
    pub fn new(separator: Option<u8>) -> Self {
        Self {
            separator,
            quoted: false,
            begins: true,
            closed: false,
            returned: false,
            is_empty: true,
            line: 1,
            blank: None,
        }
    }

    /// Goes over a byte; whether it ends a line.
    fn is_end(&mut self, byte: u8) -> bool {
        let returned = std::mem::take(&mut self.returned);
        let closed = std::mem::take(&mut self.closed);
        if self.quoted {
            (self.quoted, self.closed) = (byte != b'"', byte == b'"');
            self.line += u64::from(byte == b'\n');
            return false;
        }
        match byte {
            b'\n' if returned => false,
            b'\r' | b'\n' => {
                if self.is_empty {
                    self.blank.get_or_insert(self.line);
                }
                self.line += 1;
                (self.begins, self.is_empty, self.returned) = (true, true, byte == b'\r');
                true
            }
            _ => {
                self.quoted = byte == b'"' && (self.begins || closed);
                self.begins = match self.separator {
                    Some(separator) => byte == separator,
                    None => SIGNS.contains(&byte),
                };
                self.is_empty = false;
                false
            }
        }
    }

    /// Goes over bytes; the number of a blank line that others follow.
    pub fn blank_line(&mut self, bytes: &[u8]) -> Option<u64> {
        bytes.iter().find_map(|&byte| {
            self.is_end(byte);
            self.blank.filter(|_| !self.is_empty)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(text: &str) -> char {
        detect(Path::new("t.csv"), text.as_bytes(), true).unwrap() as char
    }

    #[test]
    fn separators_are_told_by_lines_that_agree_and_quotes_do_not_fool_them() {
        for (text, wanted) in [
            ("a,b\n1,2\n", ','),
            ("a;b\n1,5;2,5\n", ';'),
            ("a\tb\nx, y\t2\n", '\t'),
            ("label\ncat\ndog; small\n", ','),
            ("1,\"a;b\",c\n2,\"c;d\",e", ','),
            ("\"a\nb\",\"c \"\";\"\" d\"\n1,2\n", ','),
            ("a;b;c\n1;2\n", ';'),
            ("a;b\r\n1;2\r\n", ';'),
            ("5\" pipe;b\n6\" pipe;c\n", ';'),
            ("", ','),
        ] {
            assert_eq!(sign(text), wanted, "{text:?}");
        }
        let error = detect(Path::new("t.csv"), b"1,5;2,5;0\n1,5;2,5;1\n", true).unwrap_err().to_string();
        assert!(error.contains("comma and semicolon"), "{error}");
        // The last line is cut short here.
        assert_eq!(detect(Path::new("t.csv"), b"a;b\n1;2\n3", false).unwrap(), b';');
    }

    #[test]
    fn blank_lines_are_numbered_unless_they_are_quoted_or_last() {
        let blank = |text: &str| Scan::new(Some(b',')).blank_line(text.as_bytes());
        for (text, wanted) in [
            ("a\n\nb\n", Some(2)),
            ("a\r\n\r\nb", Some(2)),
            ("a\r\rb", Some(2)),
            ("\na", Some(1)),
            ("a,\"x\n\ny\"\n\nb", Some(4)),
            ("a,\"x\"\"\n\n\"\"y\"\nb\n\n\n", None),
            ("a\nb\n\n\r\n", None),
        ] {
            assert_eq!(blank(text), wanted, "{text:?}");
        }
    }
}
