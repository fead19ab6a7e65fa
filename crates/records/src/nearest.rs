//! Which name was probably meant.

/// The three names most like this one, best first, by the number of letters to insert, delete or replace (Levenshtein).
pub fn nearest<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = all.into_iter().collect();
    all.sort_by_key(|other| strsim::levenshtein(name, other));
    all.truncate(3);
    all
}

/// A question after the name that was meant, where one is near enough; nothing else.
pub fn did_you_mean<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> String {
    let near = |other: &&str| strsim::levenshtein(name, other) <= (name.len() / 3).max(2);
    let found = nearest(name, all).into_iter().find(near);
    found.map_or(String::new(), |other| format!("did you mean `{other}`? "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keyboard_finds_the_name_that_was_meant_and_nonsense_finds_none() {
        let names = ["cifar10", "cifar100", "mnist"];
        assert_eq!(nearest("mmist", names)[0], "mnist");
        assert_eq!(did_you_mean("cifra10", names), "did you mean `cifar10`? ");
        assert_eq!(did_you_mean("images/of/cats", names), "");
    }
}
