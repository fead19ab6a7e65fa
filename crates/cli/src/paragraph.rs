//! Text for people, in lines that fit.

/// Columns that a line may have.
pub const WIDTH: usize = 110;

/// A heading of so many columns with text beside it; what does not fit goes on below, indented alike. A heading that is
/// too long has a line of its own. Words longer than a line are not broken.
pub fn beside(indent: usize, heading: &str, column: usize, text: &str) -> String {
    let start = indent + column;
    let mut line = format!("{:indent$}{heading}", "");
    let mut lines = Vec::new();
    if heading.chars().count() + 1 > column && !text.is_empty() {
        lines.push(std::mem::take(&mut line));
    }
    let mut used = line.chars().count();
    let mut is_first = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_first && used + 1 + length > WIDTH {
            lines.push(std::mem::take(&mut line));
            (used, is_first) = (0, true);
        }
        if is_first {
            line += &" ".repeat(start.saturating_sub(used));
            used = used.max(start);
            is_first = false;
        } else {
            line.push(' ');
            used += 1;
        }
        line += word;
        used += length;
    }
    lines.push(line);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_no_word_is_lost() {
        let text = "a wörd and another ".repeat(30);
        for heading in ["name", "a-name-that-is-much-longer-than-its-column"] {
            let written = beside(2, heading, 20, &text);
            assert!(written.lines().all(|line| line.chars().count() <= WIDTH));
            assert!(written.lines().skip(1).all(|line| line.starts_with(&" ".repeat(22))));
            let expected: Vec<&str> = [heading].into_iter().chain(text.split_whitespace()).collect();
            assert_eq!(written.split_whitespace().collect::<Vec<_>>(), expected);
        }
        assert_eq!(beside(0, "name", 6, "text"), "name  text");
        assert_eq!(beside(1, "name", 6, ""), " name");
    }
}
