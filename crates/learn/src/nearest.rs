//! The name a person probably meant.

/// The names most like `name`, best first, at most three; equals keep their order.
pub fn nearest<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = all.into_iter().collect();
    all.sort_by_key(|other| distance(name, other));
    all.truncate(3);
    all
}

/// Number of letters to insert, delete or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_finds_the_name_that_was_meant() {
        let names = ["cross-entropy", "co-teaching", "rolr"];
        assert_eq!(nearest("corss-entropy", names)[0], "cross-entropy");
        assert_eq!(nearest("roll", names)[0], "rolr");
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
