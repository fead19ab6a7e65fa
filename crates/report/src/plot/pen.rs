//! Writes SVG, escaping every text: no other place of the plots puts markup together.

use crate::number::place;

/// What is drawn so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pen {
    markup: String,
}

impl Pen {
    /// What was drawn.
    pub fn finish(self) -> String {
        self.markup
    }

    fn put(&mut self, words: &[&str]) {
        words.iter().for_each(|word| self.markup.push_str(word));
    }

    /// A group of a class, with a title that browsers show beside the pointer; empty titles are left out.
    pub fn group(&mut self, class: &str, title: &str, draw: impl FnOnce(&mut Self)) {
        self.put(&["<g class=\"", class, "\">"]);
        if !title.is_empty() {
            self.put(&["<title>", &escape(title), "</title>"]);
        }
        draw(self);
        self.put(&["</g>\n"]);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(place);
        self.put(&["<line class=\"", class, "\" x1=\"", &x1, "\" y1=\"", &y1]);
        self.put(&["\" x2=\"", &x2, "\" y2=\"", &y2, "\"/>"]);
    }

    /// A rectangle; `style` holds settings of CSS variables or nothing.
    pub fn rect(&mut self, class: &str, style: &str, at: (f64, f64), size: (f64, f64)) {
        let [x, y, width, height] = [at.0, at.1, size.0.max(0.0), size.1.max(0.0)].map(place);
        self.put(&["<rect class=\"", class, "\" x=\"", &x, "\" y=\"", &y, "\" width=\"", &width]);
        self.put(&["\" height=\"", &height]);
        if !style.is_empty() {
            self.put(&["\" style=\"", style]);
        }
        self.put(&["\"/>"]);
    }

    pub fn path(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            self.put(&["<path class=\"", class, "\" d=\"", path, "\"/>"]);
        }
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), text: &str) {
        let [x, y] = [at.0, at.1].map(place);
        self.put(&["<text class=\"", class, "\" x=\"", &x, "\" y=\"", &y, "\">", &escape(text), "</text>\n"]);
    }

    /// Lines of text below each other.
    pub fn lines(&mut self, class: &str, at: (f64, f64), lines: &[String]) {
        for (number, line) in lines.iter().enumerate() {
            self.text(class, (at.0, at.1 + LINE * number as f64), line);
        }
    }

    /// The mark of a series: shapes differ as colours do, for whoever cannot tell the colours apart.
    pub fn mark(&mut self, series: usize, at: (f64, f64), size: f64) {
        let p = |x: f64, y: f64| format!("{} {}", place(at.0 + x * size), place(at.1 + y * size));
        let path = match series % 4 {
            0 => {
                let radius = place(size);
                let arc = |to: String| format!("A{radius} {radius} 0 1 1 {to}");
                format!("M{}{}{}Z", p(-1.0, 0.0), arc(p(1.0, 0.0)), arc(p(-1.0, 0.0)))
            }
            1 => format!("M{}L{}L{}L{}Z", p(-0.9, -0.9), p(0.9, -0.9), p(0.9, 0.9), p(-0.9, 0.9)),
            2 => format!("M{}L{}L{}Z", p(0.0, -1.25), p(1.15, 0.85), p(-1.15, 0.85)),
            _ => format!("M{}L{}L{}L{}Z", p(0.0, -1.3), p(1.3, 0.0), p(0.0, 1.3), p(-1.3, 0.0)),
        };
        self.path("mark", &path);
    }
}

/// Distance of lines of text.
pub(crate) const LINE: f64 = 16.0;
/// Room for a letter: drawings are shown on phones with letters of 15 units, else of 12.
pub(crate) const LETTER: f64 = 8.2;
/// Room for a letter of the class `small`.
pub(crate) const SMALL: f64 = 6.5;

/// Text as XML, what XML forbids replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(letter),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ if letter.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Letters a text takes, wide ones counting twice.
pub(crate) fn letters(text: &str) -> usize {
    text.chars().map(|c| if c >= '\u{1100}' { 2 } else { 1 }).sum()
}

/// The text, cut to `most` letters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if letters(text) <= most {
        return text.to_owned();
    }
    let mut room = most.saturating_sub(1);
    let kept = text.chars().take_while(|c| {
        let own = if *c >= '\u{1100}' { 2 } else { 1 };
        let fits = own <= room;
        room = room.saturating_sub(own);
        fits
    });
    let kept: String = kept.collect();
    format!("{}…", kept.trim_end())
}

/// The text in at most `lines` lines of at most `most` letters, broken after words if it can be.
pub(crate) fn wrap(text: &str, most: usize, lines: usize) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut line = String::new();
    let words = text.trim().split_inclusive([' ', ':', '-', '_', ',', '/', '+']).collect::<Vec<_>>();
    for (number, word) in words.iter().enumerate() {
        let fits = letters(&line) + letters(word.trim_end()) <= most;
        if !line.is_empty() && !fits {
            if done.len() + 1 == lines {
                let rest = format!("{line}{}", words[number..].concat());
                done.push(cut(rest.trim(), most));
                return done;
            }
            done.push(cut(std::mem::take(&mut line).trim(), most));
        }
        line.push_str(word);
    }
    done.push(cut(line.trim(), most));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup_and_stays_xml() {
        let mut pen = Pen::default();
        pen.text("x", (1.0, 2.04), "<a b=\"1\">&'\u{0}\u{1b}\u{ffff}");
        let wanted = "<text class=\"x\" x=\"1\" y=\"2\">&lt;a b=&quot;1&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}\u{fffd}</text>\n";
        assert_eq!(pen.finish(), wanted);
    }

    #[test]
    fn long_names_are_broken_after_words_and_cut_at_the_end() {
        assert_eq!(wrap("sym:0.5", 10, 2), ["sym:0.5"]);
        assert_eq!(wrap("cifarn:worse", 8, 2), ["cifarn:", "worse"]);
        assert_eq!(wrap("one two three four", 8, 2), ["one two", "three f…"]);
        assert_eq!(wrap("Donaudampfschifffahrt", 8, 2), ["Donauda…"]);
        assert_eq!(wrap("", 8, 2), [""]);
        assert_eq!(cut("鳥の名前", 5), "鳥の…");
    }
}
