//! Why labels are flagged: the rule, and what it comes to in each class and from each source.

use super::evidence::percent;
use super::words::shorten;
use negscale_audit::{Audit, FLAG_BELOW, Finding, GroupFlags, NoiseEstimate};
use negscale_data::Sources;
use negscale_report::SourceRow;

/// Sources that are told of in words.
const SHOWN: usize = 5;

/// Which labels are flagged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    /// As many as are estimated to be wrong, the most suspicious ones.
    AsEstimated,
    /// Those whose probability of being right is below this.
    Below(f64),
}

/// The flags of an audit.
pub struct Flags {
    rule: Rule,
    /// The score of the least suspicious flagged label.
    pub cut_off: Option<f64>,
    samples: usize,
    flagged: usize,
    /// By given class.
    pub classes: Vec<GroupFlags>,
}

/// The flags of the labels of one source.
pub struct SourceFlags<'a> {
    /// Its name; empty for labels without a source.
    pub name: &'a str,
    /// Its flags.
    pub flags: GroupFlags,
    /// The interval of its share of wrong labels.
    pub interval: Option<[f64; 2]>,
}

impl Flags {
    /// The flags of an audit; `below` is the probability asked for, if one was. Without an estimate there is one by default.
    pub fn new(audit: &Audit, below: Option<f64>, has_estimate: bool) -> Self {
        let below = below.or((!has_estimate).then_some(FLAG_BELOW));
        Self {
            rule: below.map_or(Rule::AsEstimated, Rule::Below),
            cut_off: audit.cut_off(),
            samples: audit.findings().len(),
            flagged: audit.flagged(),
            classes: audit.by_class(),
        }
    }

    /// When a label is flagged, in a sentence or two.
    pub fn rule(&self) -> String {
        match (self.rule, self.cut_off) {
            (_, None) => String::new(),
            (Rule::AsEstimated, Some(cut_off)) => format!(
                "As many labels are flagged as are estimated to be wrong, the most suspicious ones: those with a score of {cut_off:.3} or more. \
                 The score knows how often each class is given for another, so one threshold serves all classes; the table has the least suspicious \
                 flagged label of each."
            ),
            (Rule::Below(below), Some(_)) => {
                format!(
                    "A label is flagged if its probability of being right is below {below}, whatever its class."
                )
            }
        }
    }

    /// Why a class is flagged from that score on.
    pub fn of_class(&self, class: usize) -> String {
        let least = self.classes[class].least;
        least.map_or(String::new(), |(_, right)| {
            format!("the label still has a probability of {}", percent(right))
        })
    }

    /// Why a flagged label is above the threshold, for a page that has the table of classes.
    pub fn short_reason(&self, finding: &Finding, names: &[String]) -> String {
        let (verdict, class) = (&finding.verdict, &self.classes[finding.verdict.given as usize]);
        let name = &names[verdict.given as usize];
        let others = format!("as are {} of {} labels {name}", class.flagged, class.labels);
        match (self.rule, self.cut_off) {
            (Rule::AsEstimated, Some(cut_off)) => {
                format!("flagged because its score {:.3} is not below {cut_off:.3}, {others}", verdict.score)
            }
            (Rule::Below(below), _) => format!(
                "flagged because its probability of being right, {:.3}, is below {below}, {others}",
                verdict.clean_probability
            ),
            (Rule::AsEstimated, None) => others,
        }
    }

    /// Why a flagged label is above the threshold.
    pub fn reason(&self, finding: &Finding, names: &[String]) -> String {
        let (verdict, class) = (&finding.verdict, &self.classes[finding.verdict.given as usize]);
        let name = &names[verdict.given as usize];
        let of_class = match class.least {
            Some((score, right)) => format!(
                "of {} labels {name} {} are flagged, the least suspicious with a score of {score:.3}, where the label still has a probability of {}",
                class.labels,
                class.flagged,
                percent(right)
            ),
            None => String::new(),
        };
        match (self.rule, self.cut_off) {
            (Rule::AsEstimated, Some(cut_off)) => format!(
                "flagged because its score {:.3} is among the {} highest of {}, as many as are estimated to be wrong (from {cut_off:.3} on); {of_class}",
                verdict.score, self.flagged, self.samples
            ),
            (Rule::Below(below), _) => format!(
                "flagged because its probability of being right, {:.3}, is below {below}; {of_class}",
                verdict.clean_probability
            ),
            (Rule::AsEstimated, None) => of_class,
        }
    }
}

/// Flags by source, in the order in which sources first occur.
pub fn by_source<'a>(
    audit: &Audit,
    sources: &'a Sources,
    estimate: Option<&NoiseEstimate>,
) -> Vec<SourceFlags<'a>> {
    let found = audit.by_group(sources.names().len(), |finding| sources.of_items()[finding.index] as usize);
    let of_source = |(name, flags): (&'a String, GroupFlags)| SourceFlags {
        name,
        flags,
        interval: estimate.map(|estimate| flags.interval(estimate.rate, estimate.interval)),
    };
    sources.names().iter().zip(found).map(of_source).filter(|source| source.flags.labels > 0).collect()
}

/// The sources with the largest shares of wrong labels as a table; empty without any.
pub fn write_sources(sources: &[SourceFlags]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let mut order: Vec<&SourceFlags> = sources.iter().collect();
    order.sort_by(|a, b| b.flags.share().total_cmp(&a.flags.share()));
    let mut text = format!("\n{:<28}{:>12}{:>12}\n", "source", "samples", "wrong");
    for source in order.iter().take(SHOWN) {
        let wrong = percent(source.flags.share());
        text += &format!("{:<28}{:>12}{wrong:>12}\n", shorten(source.title()), source.flags.labels);
    }
    if order.len() > SHOWN {
        text += &format!("... and {} more in audit.json\n", order.len() - SHOWN);
    }
    text
}

impl SourceFlags<'_> {
    /// Its name for people.
    pub fn title(&self) -> &str {
        if self.name.is_empty() { "(none given)" } else { self.name }
    }

    /// For `audit.json`.
    pub fn figures(&self) -> serde_json::Value {
        serde_json::json!({
            "source": self.name,
            "labels": self.flags.labels,
            "flagged": self.flags.flagged,
            "share": self.flags.share(),
            "interval_95": self.interval,
        })
    }

    /// For the page.
    pub fn row(&self) -> SourceRow {
        SourceRow {
            source: self.title().to_owned(),
            labels: self.flags.labels,
            flagged: self.flags.flagged,
            share: self.flags.share(),
            interval: self.interval,
        }
    }
}
