//! Statistics over repeated runs: mean, deviation, and the paired difference of two methods with its interval.
//!
//! For values $x_1 \dots x_n$: mean $\bar x = \frac1n \sum x_i$, standard deviation $s = \sqrt{\frac{1}{n-1} \sum (x_i - \bar x)^2}$,
//! and, for differences $d_i$ of two methods on the same seed, the confidence interval
//! $\bar d \pm t_{n-1} \, s_d / \sqrt n$, where $t_{n-1}$ is the quantile of Student's distribution with $n - 1$ degrees of freedom.
//! Pairs share what the seed decides (noise, initial weights, order), so their difference varies less than either method.
//!
//! The same differences are tested by Student's paired test: $t = \bar d \sqrt n / s_d$, and $p$ is the probability of a $|T|$ at least
//! that large with $n - 1$ degrees of freedom. Where a claim is tested in several cells, Holm's correction keeps the probability
//! of any false rejection among them below the level: with $p_{(1)} \le \dots \le p_{(m)}$,
//! $\tilde p_{(k)} = \max_{j \le k} \min(1, (m - j + 1) \, p_{(j)})$ (Holm, 1979).
//!
//! A value that is not finite is not counted among the $n$; how many were left out is told. One value has no deviation, one
//! pair no interval.

use std::collections::BTreeMap;

/// Confidence of the intervals that are reported.
pub const CONFIDENCE: f64 = 0.95;

/// Values of one quantity over repeated runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    left_out: usize,
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let (values, others): (Vec<f64>, Vec<f64>) = values.into_iter().partition(|value| value.is_finite());
        Self { values, left_out: others.len() }
    }
}

impl Sample {
    /// The values that are counted.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many values are counted.
    #[must_use]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// How many were not finite.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The mean, if there is a value.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| self.values.iter().sum::<f64>() / self.values.len() as f64)
    }

    /// The standard deviation with divisor $n - 1$, if there are two values.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        (self.count() > 1).then(|| (squares / (self.count() - 1) as f64).sqrt())
    }

    /// The interval that holds the true mean with this confidence (0.95 for 95 %), if there are two values.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let (mean, deviation) = (self.mean()?, self.deviation()?);
        let half = t_quantile(0.5 + 0.5 * confidence, (self.count() - 1) as f64)? * deviation
            / (self.count() as f64).sqrt();
        Some((mean - half, mean + half))
    }

    /// Two-sided $p$ of Student's test that the true mean is 0, if there are two values. Equal values other than 0 have
    /// $p = 0$, zeros alone $p = 1$.
    #[must_use]
    pub fn p_value(&self) -> Option<f64> {
        let (mean, deviation) = (self.mean()?, self.deviation()?);
        if mean == 0.0 {
            return Some(1.0);
        }
        let (freedom, t) = ((self.count() - 1) as f64, mean * (self.count() as f64).sqrt() / deviation);
        Some(incomplete_beta(freedom / (freedom + t * t), 0.5 * freedom, 0.5))
    }
}

/// Holm's adjusted $p$ values of a family of tests, in the order given.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let (mut adjusted, mut least) = (vec![0.0; p_values.len()], 0.0_f64);
    for (rank, &at) in order.iter().enumerate() {
        least = least.max(((p_values.len() - rank) as f64 * p_values[at]).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

/// Differences `b - a` over the keys (seeds) that both have.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// The differences.
    pub differences: Sample,
    /// Keys that only one of the two has.
    pub unpaired: usize,
}

impl Paired {
    /// Pairs two sets of values by their keys.
    #[must_use]
    pub fn of<K: Ord>(a: &BTreeMap<K, f64>, b: &BTreeMap<K, f64>) -> Self {
        let differences: Vec<f64> = a.iter().filter_map(|(key, first)| Some(b.get(key)? - first)).collect();
        let unpaired = a.len() + b.len() - 2 * differences.len();
        Self { differences: differences.into_iter().collect(), unpaired }
    }

    /// Whether the 95 % interval lies above zero (1), below (-1) or around it (0, also where there is none).
    #[must_use]
    pub fn verdict(&self) -> i8 {
        match self.differences.interval(CONFIDENCE) {
            Some((low, _)) if low > 0.0 => 1,
            Some((_, high)) if high < 0.0 => -1,
            _ => 0,
        }
    }
}

/// The quantile of Student's t distribution: `None` unless 0 < `p` < 1 and `freedom` is positive and finite.
#[must_use]
pub fn t_quantile(p: f64, freedom: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && freedom > 0.0 && freedom.is_finite()) {
        return None;
    }
    if p < 0.5 {
        return t_quantile(1.0 - p, freedom).map(|t| -t);
    }
    // P(T > t) = I_x(freedom / 2, 1 / 2) / 2 with x = freedom / (freedom + t^2) falls with t: bracket, then halve.
    let above = |t: f64| 0.5 * incomplete_beta(freedom / (freedom + t * t), 0.5 * freedom, 0.5);
    let wanted = 1.0 - p;
    let (mut low, mut high) = (0.0, 1.0);
    while above(high) > wanted && high < 1e150 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if above(middle) > wanted { low = middle } else { high = middle }
    }
    Some(0.5 * (low + high))
}

/// The regularised incomplete beta function $I_x(a, b)$, by its continued fraction (on the side where it converges fast).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    // Lentz's way: the fraction is a product of ratios, kept away from zero.
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..=10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - before).abs() <= 1e-16 * fraction.abs() {
            break;
        }
    }
    front * fraction
}

/// $\ln \Gamma(x)$ for positive $x$: Stirling's series, after $\Gamma(x + 1) = x \Gamma(x)$ has made $x$ large.
pub fn ln_gamma(mut x: f64) -> f64 {
    let mut before = 0.0;
    while x < 15.0 {
        before -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    before + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// Index of the largest value of a row, the first among equals; 0 for an empty one.
#[must_use]
pub fn argmax(row: &[f32]) -> u32 {
    let mut best = 0;
    for (at, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = at;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        let table = [
            (0.975, 1.0, 12.706_204_736),
            (0.975, 2.0, 4.302_652_730),
            (0.975, 3.0, 3.182_446_305),
            (0.975, 4.0, 2.776_445_105),
            (0.975, 9.0, 2.262_157_163),
            (0.975, 30.0, 2.042_272_456),
            (0.975, 100.0, 1.983_971_519),
            (0.995, 5.0, 4.032_142_984),
            (0.9, 10.0, 1.372_183_641),
            (0.75, 1.0, 1.0),
        ];
        for (p, freedom, wanted) in table {
            let t = t_quantile(p, freedom).unwrap();
            assert!((t - wanted).abs() < 1e-6, "t({p}, {freedom}) = {t}, not {wanted}");
            assert!((t_quantile(1.0 - p, freedom).unwrap() + t).abs() < 1e-6);
        }
        assert!(t_quantile(0.5, 3.0).unwrap().abs() < 1e-9);
        // With many degrees of freedom it is the normal distribution.
        assert!((t_quantile(0.975, 1e6).unwrap() - 1.959_966_4).abs() < 1e-5);
    }

    #[test]
    fn what_has_no_quantile_gets_none() {
        for (p, freedom) in [(0.0, 3.0), (1.0, 3.0), (f64::NAN, 3.0), (0.9, 0.0), (0.9, f64::INFINITY)] {
            assert_eq!(t_quantile(p, freedom), None);
        }
    }

    #[test]
    fn among_equals_the_first_is_the_largest() {
        assert_eq!((argmax(&[0.2, 0.5, 0.5]), argmax(&[]), argmax(&[f32::NEG_INFINITY])), (1, 0, 0));
    }

    #[test]
    fn the_gamma_function_is_the_factorial() {
        let factorial: f64 = (1..=9).map(f64::from).product();
        assert!((ln_gamma(10.0) - factorial.ln()).abs() < 1e-12);
        assert!((ln_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-12);
    }

    #[test]
    fn mean_and_deviation_are_those_by_hand() {
        let sample: Sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!((sample.count(), sample.mean()), (8, Some(5.0)));
        assert!((sample.deviation().unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn an_interval_is_that_by_hand() {
        let sample: Sample = [1.0, 2.0, 3.0].into_iter().collect();
        let (low, high) = sample.interval(0.95).unwrap();
        let half = 4.302_652_729_911 / 3.0_f64.sqrt();
        assert!((low - (2.0 - half)).abs() < 1e-9 && (high - (2.0 + half)).abs() < 1e-9);
    }

    #[test]
    fn the_paired_test_is_that_of_the_textbooks() {
        // Student's own example (1908): hours of sleep gained by the second soporific over the first, t = 4.0621, p = 0.002833.
        let sleep: Sample = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4].into_iter().collect();
        assert!((sleep.p_value().unwrap() - 0.002_832_89).abs() < 1e-7, "{:?}", sleep.p_value());
        // One degree of freedom is Cauchy's law: values 1 and 3 have t = 2 and p = 1 - 2 atan(2) / pi.
        let two: Sample = [1.0, 3.0].into_iter().collect();
        let wanted = 1.0 - 2.0 * 2.0_f64.atan() / std::f64::consts::PI;
        assert!((two.p_value().unwrap() - wanted).abs() < 1e-12);
        // Two degrees: p = 1 - t / sqrt(2 + t^2), here with t = 2 sqrt(3).
        let three: Sample = [-1.0, -2.0, -3.0].into_iter().collect();
        let t = 2.0 * 3.0_f64.sqrt();
        assert!((three.p_value().unwrap() - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-12);
        // p is 0.05 where the 95 % interval ends at 0.
        let (low, _) = three.interval(0.95).unwrap();
        let moved: Sample = three.values().iter().map(|value| value - low).collect();
        assert!((moved.p_value().unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_spread_is_certain_and_one_value_has_no_test() {
        let of = |values: &[f64]| values.iter().copied().collect::<Sample>().p_value();
        assert_eq!(
            (of(&[]), of(&[1.0]), of(&[0.5, 0.5]), of(&[0.0, 0.0])),
            (None, None, Some(0.0), Some(1.0))
        );
    }

    #[test]
    fn holm_corrects_as_by_hand() {
        let near = |found: Vec<f64>, wanted: &[f64]| {
            assert_eq!(found.len(), wanted.len());
            assert!(
                found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12),
                "{found:?}, not {wanted:?}"
            );
        };
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03, 0.06, 0.06, 0.02.
        near(holm(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        near(holm(&[0.4, 0.6, 0.01]), &[0.8, 0.8, 0.03]);
        near(holm(&[0.7, 0.9]), &[1.0, 1.0]);
        near(holm(&[0.04]), &[0.04]);
        near(holm(&[]), &[]);
    }

    #[test]
    fn few_values_and_none_are_no_trouble() {
        let none = Sample::default();
        assert_eq!((none.mean(), none.deviation(), none.interval(0.95)), (None, None, None));
        let one: Sample = [0.5].into_iter().collect();
        assert_eq!((one.mean(), one.deviation(), one.interval(0.95)), (Some(0.5), None, None));
        let same: Sample = [0.5, 0.5].into_iter().collect();
        assert_eq!(same.interval(0.95), Some((0.5, 0.5)));
    }

    #[test]
    fn what_is_not_finite_is_told_and_not_counted() {
        let sample: Sample = [1.0, f64::NAN, 3.0, f64::INFINITY].into_iter().collect();
        assert_eq!((sample.count(), sample.left_out(), sample.mean()), (2, 2, Some(2.0)));
    }

    #[test]
    fn pairs_are_made_of_common_seeds_only() {
        let a = BTreeMap::from([(1, 0.5), (2, 0.75), (3, 0.25), (5, f64::NAN)]);
        let b = BTreeMap::from([(1, 0.625), (2, 0.875), (4, 0.9), (5, 0.5)]);
        let paired = Paired::of(&a, &b);
        assert_eq!(paired.differences.values(), [0.125, 0.125]);
        assert_eq!((paired.unpaired, paired.differences.left_out()), (2, 1));
        assert_eq!(paired.verdict(), 1, "two equal differences have an interval of no width");
        assert_eq!(Paired::of(&b, &a).verdict(), -1);
        let single = Paired::of(&BTreeMap::from([(1, 0.5)]), &b);
        assert_eq!((single.differences.count(), single.verdict()), (1, 0));
    }
}
