//! How numbers are written for people.

/// A fraction as a percentage with `digits` after the point; what is not finite as a dash.
pub(crate) fn percent(fraction: f64, digits: usize) -> String {
    if fraction.is_finite() { format!("{:.digits$} %", fraction * 100.0) } else { "–".to_owned() }
}

/// A share that may be small: one digit after the point, more below one percent.
pub(crate) fn share(fraction: f64) -> String {
    percent(fraction, share_digits(fraction))
}

/// The digits a share needs after the point.
pub(crate) fn share_digits(fraction: f64) -> usize {
    match fraction.abs() {
        size if size > 0.0 && size < 0.001 => 3,
        size if size > 0.0 && size < 0.01 => 2,
        _ => 1,
    }
}

/// A sentence whose numbers stay on one line with their unit.
pub(crate) fn together(sentence: &str) -> String {
    sentence.replace(" %", "\u{a0}%")
}

/// About four significant digits, an exponent only for the very large and the very small.
pub(crate) fn plain(number: f64) -> String {
    let size = number.abs();
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "∞".to_owned() } else { "-∞".to_owned() }
    } else if number == 0.0 {
        "0".to_owned()
    } else if !(1e-4..1e6).contains(&size) {
        format!("{number:.2e}")
    } else {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 7) as usize;
        let text = format!("{number:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A duration in the two units that matter.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "–".to_owned();
    }
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A coordinate of a drawing: a tenth of a pixel is enough.
pub(crate) fn place(at: f64) -> String {
    let text = format!("{at:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// A mean that does not mind missing values; NaN if there is nothing to average.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_four_digits() {
        let pairs = [
            (0.123_456, "0.1235"),
            (12.5, "12.5"),
            (1234.56, "1235"),
            (0.02, "0.02"),
            (-3.0, "-3"),
            (1e-7, "1.00e-7"),
            (f64::NAN, "NaN"),
            (100.0, "100"),
        ];
        for (number, text) in pairs {
            assert_eq!(plain(number), text);
        }
    }

    #[test]
    fn small_shares_have_more_digits() {
        let pairs = [(0.0, "0.0 %"), (0.123, "12.3 %"), (0.0034, "0.34 %"), (0.000_21, "0.021 %")];
        for (fraction, text) in pairs {
            assert_eq!(share(fraction), text);
        }
        assert_eq!(share(f64::NAN), "–");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
    }

    #[test]
    fn durations_use_the_units_that_matter() {
        assert_eq!(duration(9.96), "10.0 s");
        assert_eq!(duration(59.97), "1 min 00 s");
        assert_eq!(duration(3725.0), "1 h 02 min");
        assert_eq!(duration(f64::NAN), "–");
    }
}
