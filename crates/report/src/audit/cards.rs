//! Single samples on the page: labels that look wrong, near-duplicates, outliers.

use super::parts::{Member, Outlier, WorstLabel};
use super::tables::MOST_ROWS;
use super::words;
use crate::card::{Meter, class_name, picture, suggestion, verdict};
use crate::error::Result;
use crate::number::{count, plain};

/// Reasons and values on a card.
const MOST_LINES: usize = 8;
/// Members of a group.
const MOST_MEMBERS: usize = 6;

/// A label that looks wrong.
pub(super) struct WorstCard {
    pub index: String,
    pub path: Option<String>,
    pub given: String,
    pub suggested: String,
    pub probability: Option<String>,
    pub score: Meter,
    pub reasons: Vec<String>,
    pub values: Vec<(String, String)>,
    pub more_values: usize,
    pub verdict: Option<(&'static str, String)>,
    pub picture: Option<String>,
}

impl WorstCard {
    pub fn of(item: &WorstLabel, names: &[String]) -> Result<Self> {
        let (given, suggested) = (item.given, item.suggested);
        Ok(Self {
            index: count(item.index as u64),
            path: item.path.clone(),
            given: class_name(names, given),
            suggested: suggestion(names, given, suggested),
            // The probability of the given class would say the contrary.
            probability: (given != suggested).then(|| Meter::of(item.suggested_probability).text),
            score: Meter::of(item.score),
            reasons: item.reasons.iter().take(MOST_LINES).cloned().collect(),
            values: item.values.iter().take(MOST_LINES).cloned().collect(),
            more_values: item.values.len().saturating_sub(MOST_LINES),
            verdict: item.truth.map(|truth| verdict(names, truth, given, suggested)),
            picture: picture(item.thumbnail.as_ref(), item.index)?,
        })
    }
}

/// A sample with its label.
pub(super) struct Small {
    pub label: String,
    pub origin: String,
    pub note: String,
    pub picture: Option<String>,
}

/// Where a sample is found.
fn origin(index: usize, path: Option<&String>) -> String {
    path.cloned().unwrap_or_else(|| format!("sample {}", count(index as u64)))
}

/// Near-duplicates.
pub(super) struct Group {
    pub size: String,
    pub disagrees: bool,
    pub crosses: bool,
    pub members: Vec<Small>,
    pub more: usize,
}

/// The groups to look at first: labels that disagree, more than one split, many members.
pub(super) fn groups(all: &[Vec<Member>], names: &[String]) -> Result<Vec<Group>> {
    let mut order: Vec<&Vec<Member>> = all.iter().filter(|group| !group.is_empty()).collect();
    order
        .sort_by_key(|group| std::cmp::Reverse((words::disagree(group), words::crosses(group), group.len())));
    let member = |member: &Member| -> Result<Small> {
        Ok(Small {
            label: class_name(names, member.label),
            origin: origin(member.index, member.path.as_ref()),
            note: member.split.clone(),
            picture: picture(member.thumbnail.as_ref(), member.index)?,
        })
    };
    let group = |group: &Vec<Member>| -> Result<Group> {
        Ok(Group {
            size: count(group.len() as u64),
            disagrees: words::disagree(group),
            crosses: words::crosses(group),
            members: group.iter().take(MOST_MEMBERS).map(member).collect::<Result<_>>()?,
            more: group.len().saturating_sub(MOST_MEMBERS),
        })
    };
    order.into_iter().take(MOST_ROWS).map(group).collect()
}

/// The strangest samples.
pub(super) fn outliers(all: &[Outlier], names: &[String]) -> Result<Vec<Small>> {
    let small = |item: &Outlier| -> Result<Small> {
        Ok(Small {
            label: class_name(names, item.label),
            origin: origin(item.index, item.path.as_ref()),
            note: format!("score {}", plain(item.score)),
            picture: picture(item.thumbnail.as_ref(), item.index)?,
        })
    };
    all.iter().take(MOST_ROWS).map(small).collect()
}
