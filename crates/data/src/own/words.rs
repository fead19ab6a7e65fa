//! Many short texts as one: some bytes each where a `String` takes dozens.

use std::ops::Index;

/// Texts, one after another, and where each ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    text: String,
    ends: Vec<usize>,
}

impl Words {
    /// Adds a text.
    pub fn push(&mut self, word: &str) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> Option<&str> {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start..*self.ends.get(at)?)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| &self[at])
    }
}

impl Index<usize> for Words {
    type Output = str;

    fn index(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start..self.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_in_their_order() {
        let (mut words, texts) = (Words::default(), ["", "a", "", "bcd", "\u{e9}"]);
        assert!(words.is_empty() && words.get(0).is_none());
        texts.iter().for_each(|text| words.push(text));
        assert_eq!(words.iter().collect::<Vec<_>>(), texts);
        assert_eq!((words.len(), words.get(3), words.get(5), &words[4]), (5, Some("bcd"), None, "\u{e9}"));
    }
}
