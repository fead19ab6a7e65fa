//! How often flags were right, what they miss, and how far two reviewers agree.
//!
//! A flag was right if the label was changed or its sample dropped. Rows about which somebody is unsure count for nothing here.
//!
//! **What flags miss**: of the labels without a flag, some are shown like flagged ones. Those that were decided without the audit's evidence are
//! a random sample of all of them, so the share of wrong ones among them is an estimate for all.
//!
//! **Intervals** are Wilson's, 95 %. **Agreement** is Cohen's kappa: $(p_o - p_e) / (1 - p_e)$ with $p_o$ the share of rows on which
//! both decide the same, and $p_e$ what that would be if each dealt their decisions at random.
//!
//! **Advice** looks at the last flags before the first undecided row of the list, of which everything is decided: what is accepted by groups
//! further down is chosen, and says nothing of its neighbours in the list. Flags come most suspicious first, so what follows is wrong labels no more
//! often than these, and the upper end of their share's interval times the flags that are left bounds what is still to be found.

use crate::decision::Decision;
use crate::samples::Sample;
use crate::session::{Reviewer, Session};
use serde::Serialize;
use std::collections::BTreeMap;

/// The normal quantile of a 95 % interval.
const Z: f64 = 1.959_963_984_540_054;
/// So many last flags say whether looking on pays.
const LAST: usize = 50;
/// Going on does not pay if it is nearly sure that less than this share of the next flags are wrong labels.
const FEW: f64 = 0.2;
/// It does if it is nearly sure that more than this are.
const MANY: f64 = 0.1;

/// So many of so many, with the interval of the share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub part: usize,
    /// Of how many.
    pub of: usize,
    /// Between which shares the true one probably lies.
    pub interval: [f64; 2],
}

impl Share {
    /// With Wilson's interval.
    #[must_use]
    pub fn new(part: usize, of: usize) -> Self {
        if of == 0 {
            return Self { part, of, interval: [0.0, 1.0] };
        }
        let (n, p) = (of as f64, part as f64 / of as f64);
        let centre = p + Z * Z / (2.0 * n);
        let width = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let end = |sign: f64| ((centre + sign * width) / (1.0 + Z * Z / n)).clamp(0.0, 1.0);
        // Rounding must not leave the share itself outside.
        Self { part, of, interval: [end(-1.0).min(p), end(1.0).max(p)] }
    }
}

/// Agreement of two reviewers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Who.
    pub reviewers: [String; 2],
    /// Rows that both have decided.
    pub rows: usize,
    /// On how many of them alike.
    pub alike: usize,
    /// Cohen's kappa; none where both gave one and the same decision on all.
    pub kappa: Option<f64>,
}

/// A group with how often its flags were right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupShare {
    /// Class as given.
    pub given: String,
    /// Class that is suggested.
    pub suggested: String,
    /// Flags that were right.
    pub right: Share,
}

/// What is known so far of one reviewer's decisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Rows to look at.
    pub rows: usize,
    /// Decided ones.
    pub decided: usize,
    /// About which the reviewer is unsure.
    pub unsure: usize,
    /// Flags that were right, of those decided.
    pub right: Share,
    /// Suggestions that were taken, of the flags that were right.
    pub suggested: Share,
    /// By group, the largest first.
    pub groups: Vec<GroupShare>,
    /// Wrong labels among those without a flag that were decided blindly.
    pub missed: Share,
    /// Labels without a flag.
    pub unflagged: u64,
    /// With everybody else.
    pub agreement: Vec<Agreement>,
    /// What the last flags say about going on.
    pub advice: Option<String>,
}

/// At most so many groups are told.
const GROUPS: usize = 50;

/// The statistics of one reviewer.
#[must_use]
pub fn statistics(session: &Session, reviewer: &str) -> Statistics {
    let (samples, nobody) = (&session.samples, Reviewer::default());
    let own = session.decisions.by(reviewer).unwrap_or(&nobody);
    let (mut decided, mut unsure, mut taken) = (0, 0, 0);
    let (mut missed, mut blind) = (0, 0);
    let mut flags: Vec<bool> = Vec::new();
    // Of `flags`, those before the first undecided row.
    let (mut in_order, mut left) = (None, 0);
    let mut groups: BTreeMap<(u32, u32), (usize, usize)> = BTreeMap::new();
    for sample in &samples.list {
        let Some(held) = own.held(sample.row) else {
            in_order.get_or_insert(flags.len());
            left += usize::from(sample.flagged);
            continue;
        };
        decided += 1;
        let Some(wrong) = is_wrong(&held.decision, sample, &samples.classes) else {
            unsure += 1;
            continue;
        };
        if sample.flagged {
            flags.push(wrong);
            let group = groups.entry((sample.given, sample.suggested)).or_default();
            *group = (group.0 + usize::from(wrong), group.1 + 1);
            taken += usize::from(held.decision == Decision::Label(samples.name(sample.suggested).to_owned()));
        } else if !held.informed {
            blind += 1;
            missed += usize::from(wrong);
        }
    }
    let right = flags.iter().filter(|wrong| **wrong).count();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (_, all))| std::cmp::Reverse(*all));
    let of_group = |((given, suggested), (right, all)): ((u32, u32), (usize, usize))| GroupShare {
        given: samples.name(given).to_owned(),
        suggested: samples.name(suggested).to_owned(),
        right: Share::new(right, all),
    };
    let others = session.decisions.reviewers().iter().filter(|(name, _)| *name != reviewer);
    Statistics {
        rows: samples.list.len(),
        decided,
        unsure,
        right: Share::new(right, flags.len()),
        suggested: Share::new(taken, right),
        groups: groups.into_iter().take(GROUPS).map(of_group).collect(),
        missed: Share::new(missed, blind),
        unflagged: samples.unflagged,
        agreement: others.filter_map(|(name, other)| agreement([reviewer, name], own, other)).collect(),
        advice: advice(&flags[..in_order.unwrap_or(flags.len())], left),
    }
}

/// Whether the label was found to be wrong; nothing of what the reviewer cannot tell.
fn is_wrong(decision: &Decision, sample: &Sample, classes: &[String]) -> Option<bool> {
    match decision {
        Decision::Label(name) => Some(*name != classes[sample.given as usize]),
        Decision::Drop => Some(true),
        Decision::Unsure => None,
    }
}

fn agreement(names: [&str; 2], one: &Reviewer, other: &Reviewer) -> Option<Agreement> {
    let sure = |decision: &Decision| *decision != Decision::Unsure;
    let mut counts: [BTreeMap<&Decision, usize>; 2] = Default::default();
    let (mut rows, mut alike) = (0, 0);
    for (row, held) in one.all() {
        let Some(theirs) = other.held(row).filter(|theirs| sure(&theirs.decision) && sure(&held.decision))
        else {
            continue;
        };
        rows += 1;
        alike += usize::from(theirs.decision == held.decision);
        *counts[0].entry(&held.decision).or_default() += 1;
        *counts[1].entry(&theirs.decision).or_default() += 1;
    }
    let all = rows as f64;
    let both = |(decision, count): (&&Decision, &usize)| {
        *count as f64 * counts[1].get(decision).map_or(0.0, |n| *n as f64)
    };
    let chance = counts[0].iter().map(both).sum::<f64>() / (all * all);
    let kappa = (chance < 1.0).then(|| (alike as f64 / all - chance) / (1.0 - chance));
    (rows > 0).then(|| Agreement { reviewers: names.map(str::to_owned), rows, alike, kappa })
}

/// By flags in the order of the list, of which none is left out, and how many are left behind them.
fn advice(flags: &[bool], left: usize) -> Option<String> {
    let last = flags.len().checked_sub(LAST).map(|from| &flags[from..])?;
    let wrong = last.iter().filter(|wrong| **wrong).count();
    let [low, high] = Share::new(wrong, LAST).interval;
    let share = |share: f64| format!("{:.0} %", 100.0 * share);
    let found = format!(
        "Of the last {LAST} flags in their order {wrong} were wrong labels, which makes {} to {}.",
        share(low),
        share(high)
    );
    let most = (high * left as f64).ceil() as usize;
    Some(match left {
        0 => format!("{found} No flag is left."),
        _ if high < FEW => {
            format!(
                "{found} So among the {left} flags that are left hardly more than {most} are: you may stop."
            )
        }
        _ if low > MANY => format!("{found} {left} flags are left: going on pays."),
        _ => format!(
            "{found} {left} flags are left, with hardly more than {most} wrong labels among them: going on pays if these matter."
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Wish;
    use crate::session::tests::{session, wish};
    use proptest::prelude::*;

    fn label(name: &str) -> Decision {
        Decision::Label(name.into())
    }

    #[test]
    fn flags_groups_and_blind_rows_are_counted_apart() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 12, 30);
        let blind: Vec<u64> = session.samples.list.iter().filter(|s| !s.flagged).map(|s| s.row).collect();
        assert_eq!(blind.len(), 3);
        session.decide("ann", &wish(&[0, 1], label("=b"))).unwrap();
        session.decide("ann", &wish(&[2], label("a"))).unwrap();
        session.decide("ann", &wish(&[3], Decision::Drop)).unwrap();
        session.decide("ann", &wish(&[4], Decision::Unsure)).unwrap();
        session.decide("ann", &wish(&blind[..1], label("a"))).unwrap();
        session.decide("ann", &wish(&blind[1..2], label("c"))).unwrap();
        let informed = Wish { informed: true, ..wish(&blind[2..], label("a")) };
        session.decide("ann", &informed).unwrap();
        let found = statistics(&session, "ann");
        assert_eq!((found.rows, found.decided, found.unsure), (15, 8, 1));
        assert_eq!((found.right, found.suggested), (Share::new(3, 4), Share::new(2, 3)));
        assert_eq!((found.missed, found.unflagged), (Share::new(1, 2), 30));
        let groups: Vec<_> =
            found.groups.iter().map(|g| (g.suggested.as_str(), g.right.part, g.right.of)).collect();
        assert_eq!(groups, [("=b", 3, 3), ("c", 0, 1)]);
        assert!(found.agreement.is_empty() && found.advice.is_none());
        assert_eq!(statistics(&session, "nobody").decided, 0);
    }

    #[test]
    fn kappa_is_cohens() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 10, 0);
        // Seven of ten alike; by chance 0.6 * 0.5 + 0.4 * 0.5 = 0.5.
        session.decide("ann", &wish(&[0, 1, 2, 3, 4, 5], label("a"))).unwrap();
        session.decide("ann", &wish(&[6, 7, 8, 9], label("c"))).unwrap();
        session.decide("bob", &wish(&[0, 1, 2, 3, 6], label("a"))).unwrap();
        session.decide("bob", &wish(&[4, 5, 7, 8, 9], label("c"))).unwrap();
        let [found] = &statistics(&session, "ann").agreement[..] else { panic!("one") };
        assert_eq!((found.rows, found.alike), (10, 7));
        assert!((found.kappa.unwrap() - 0.4).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn one_and_the_same_decision_has_no_kappa() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 2, 0);
        for who in ["ann", "bob"] {
            session.decide(who, &wish(&[0, 1], label("a"))).unwrap();
        }
        assert_eq!(statistics(&session, "bob").agreement[0].kappa, None);
    }

    #[test]
    fn intervals_are_wilsons() {
        let [low, high] = Share::new(8, 10).interval;
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4, "{low} {high}");
        assert_eq!(Share::new(0, 0).interval, [0.0, 1.0]);
    }

    #[test]
    fn advice_follows_the_last_fifty_flags_and_how_sure_their_share_is() {
        let told = |wrong: usize, left: usize| {
            let flags: Vec<bool> = (0..30).map(|_| true).chain((0..LAST).map(|at| at < wrong)).collect();
            advice(&flags, left).unwrap()
        };
        assert!(advice(&[true; LAST - 1], 9).is_none());
        // Wilson: 4 of 50 are 3.2 to 18.8 %, 5 are 4.3 to 21.4, 10 are 11.2 to 33.0.
        assert!(told(4, 100).contains("hardly more than 19 are: you may stop"), "{}", told(4, 100));
        assert!(told(5, 100).contains("22 wrong labels") && told(5, 100).contains("if these matter"));
        assert!(told(10, 100).contains("going on pays."));
        assert!(told(10, 0).contains("No flag is left"));
    }

    #[test]
    fn what_was_accepted_further_down_does_not_count_for_advice() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 200, 0);
        let rows: Vec<u64> = (0..50).collect();
        session.decide("ann", &wish(&rows, label("a"))).unwrap();
        let accepted: Vec<u64> = (80..160).collect();
        session.decide("ann", &wish(&accepted, label("c"))).unwrap();
        let said = statistics(&session, "ann").advice.unwrap();
        assert!(
            said.contains(" 0 were wrong") && said.contains("70 flags") && said.contains("may stop"),
            "{said}"
        );
    }

    proptest! {
        #[test]
        fn intervals_hold_their_share(of in 1usize..5000, part in 0.0f64..=1.0) {
            let part = (part * of as f64) as usize;
            let [low, high] = Share::new(part, of).interval;
            let share = part as f64 / of as f64;
            prop_assert!((0.0..=share).contains(&low) && (share..=1.0).contains(&high));
        }
    }
}
