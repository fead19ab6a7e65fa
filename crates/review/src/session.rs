//! Who has decided what, what comes next, and undoing it.

use crate::decision::{Decided, Decision, Line};
use crate::record::{Lock, Record};
use crate::samples::{Sample, Samples};
use crate::{Error, Result};
use std::collections::{BTreeMap, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

/// No group is accepted in larger pieces.
pub const MOST_AT_ONCE: usize = 200;
/// Longer than that nobody looks at one row: somebody went away.
const LONGEST: u64 = 3_600_000;

/// What holds for a row by one reviewer.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The decision.
    pub decision: Decision,
    /// When it was made, in milliseconds since 1970.
    pub time: u64,
    /// Whether the audit's evidence was seen before.
    pub informed: bool,
}

/// Decisions made at once, with what held before.
#[derive(Debug)]
struct Step {
    number: u64,
    rows: Vec<(u64, Option<Held>)>,
}

/// One reviewer's decisions.
#[derive(Debug, Default)]
pub struct Reviewer {
    held: HashMap<u64, Held>,
    steps: Vec<Step>,
    /// Before this place of the list everything is decided.
    first: usize,
}

impl Reviewer {
    /// What holds for a row.
    #[must_use]
    pub fn held(&self, row: u64) -> Option<&Held> {
        self.held.get(&row)
    }

    /// All decided rows.
    pub fn all(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.held.iter().map(|(row, held)| (*row, held))
    }
}

/// What somebody asks to be decided.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Rows, of which each gets the decision behind it.
    pub rows: Vec<(u64, Decision)>,
    /// How long all of them were looked at.
    pub milliseconds: u64,
    /// Whether the audit's evidence was seen before.
    pub informed: bool,
}

/// Decisions of all reviewers on the rows of one audit.
#[derive(Debug, Default)]
pub struct Decisions {
    reviewers: BTreeMap<String, Reviewer>,
    last_step: u64,
}

impl Decisions {
    /// Those of a record. An undoing of what is not there is passed over.
    #[must_use]
    pub fn of(lines: Vec<Line>) -> Self {
        let mut decisions = Self::default();
        lines.into_iter().for_each(|line| decisions.apply(line));
        decisions
    }

    /// Everybody who has decided something.
    #[must_use]
    pub fn reviewers(&self) -> &BTreeMap<String, Reviewer> {
        &self.reviewers
    }

    /// One reviewer's.
    #[must_use]
    pub fn by(&self, reviewer: &str) -> Option<&Reviewer> {
        self.reviewers.get(reviewer)
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Review { .. } => {}
            Line::Decision(Decided { time, reviewer, step, row, after, informed, .. }) => {
                self.last_step = self.last_step.max(step);
                let reviewer = self.reviewers.entry(reviewer).or_default();
                let before = reviewer.held.insert(row, Held { decision: after, time, informed });
                match reviewer.steps.last_mut().filter(|last| last.number == step) {
                    Some(last) => last.rows.push((row, before)),
                    None => reviewer.steps.push(Step { number: step, rows: vec![(row, before)] }),
                }
            }
            Line::Undo { reviewer, step, .. } => {
                let Some(reviewer) = self.reviewers.get_mut(&reviewer) else { return };
                let Some(last) = reviewer.steps.pop_if(|last| last.number == step) else { return };
                for (row, before) in last.rows.into_iter().rev() {
                    match before {
                        Some(held) => drop(reviewer.held.insert(row, held)),
                        None => drop(reviewer.held.remove(&row)),
                    }
                }
                reviewer.first = 0;
            }
        }
    }
}

/// A group of labels: given as one class, suggested to be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Class as given.
    pub given: u32,
    /// Class that is suggested.
    pub suggested: u32,
    /// Flagged labels of it.
    pub all: usize,
    /// Those that are not decided.
    pub left: usize,
}

/// A review that goes on: rows, decisions and their record.
#[derive(Debug)]
pub struct Session {
    /// The rows to look at.
    pub samples: Samples,
    /// What was decided.
    pub decisions: Decisions,
    record: Record,
}

impl Session {
    /// Goes on where the record ends.
    #[must_use]
    pub fn new(samples: Samples, record: Record, lines: Vec<Line>) -> Self {
        Self { samples, decisions: Decisions::of(lines), record }
    }

    /// Records decisions on rows to look at, as one step.
    ///
    /// # Errors
    /// A row or a class that is unknown, none or too many rows; the record cannot be written. Nothing is decided then.
    pub fn decide(&mut self, reviewer: &str, wish: &Wish) -> Result<()> {
        let refused = |problem: String| Err(Error::Refused(problem));
        let count = wish.rows.len();
        if count == 0 || count > MOST_AT_ONCE {
            return refused(format!("{count} rows at once: from 1 to {MOST_AT_ONCE} can be decided"));
        }
        let lock = self.record.lock()?;
        self.apply_news(&lock)?;
        let (time, step) = (now(), self.decisions.last_step + 1);
        let mut lines = Vec::with_capacity(count);
        for (row, after) in &wish.rows {
            let Some(place) = self.samples.place(*row) else {
                return refused(format!("row {row} is not among those to look at: load the page again"));
            };
            if let Decision::Label(name) = after
                && self.samples.class(name).is_none()
            {
                return refused(format!(
                    "`{}` is no class of the data: choose one from the list",
                    name.escape_debug()
                ));
            }
            let sample = &self.samples.list[place];
            let held = self.decisions.by(reviewer).and_then(|all| all.held(*row));
            let given = || Decision::Label(self.samples.name(sample.given).to_owned());
            lines.push(Line::Decision(Decided {
                time,
                reviewer: reviewer.to_owned(),
                step,
                row: *row,
                before: held.map_or_else(given, |held| held.decision.clone()),
                after: after.clone(),
                milliseconds: wish.milliseconds.min(LONGEST) / count as u64,
                flagged: sample.flagged,
                informed: wish.informed,
            }));
        }
        self.write(&lock, lines)
    }

    /// Takes the reviewer's last step back, and gives its rows; none if there is nothing to take back.
    ///
    /// # Errors
    /// The record cannot be written. Nothing is taken back then.
    pub fn undo(&mut self, reviewer: &str) -> Result<Vec<u64>> {
        let lock = self.record.lock()?;
        self.apply_news(&lock)?;
        let Some(last) = self.decisions.by(reviewer).and_then(|all| all.steps.last()) else {
            return Ok(Vec::new());
        };
        let (step, rows) = (last.number, last.rows.iter().map(|(row, _)| *row).collect());
        self.write(&lock, vec![Line::Undo { time: now(), reviewer: reviewer.to_owned(), step }])?;
        Ok(rows)
    }

    /// Learns what other processes have recorded.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn refresh(&mut self) -> Result<()> {
        self.record.look()?.into_iter().for_each(|line| self.decisions.apply(line));
        Ok(())
    }

    fn apply_news(&mut self, lock: &Lock) -> Result<()> {
        self.record.news(lock)?.into_iter().for_each(|line| self.decisions.apply(line));
        Ok(())
    }

    fn write(&mut self, lock: &Lock, lines: Vec<Line>) -> Result<()> {
        self.record.add(lock, &lines)?;
        lines.into_iter().for_each(|line| self.decisions.apply(line));
        Ok(())
    }

    /// The next rows that the reviewer has not decided.
    pub fn next(&mut self, reviewer: &str, count: usize) -> Vec<&Sample> {
        let Self { samples, decisions, .. } = self;
        let list = &samples.list;
        let Some(reviewer) = decisions.reviewers.get_mut(reviewer) else {
            return list.iter().take(count).collect();
        };
        let is_decided = |sample: &&Sample| reviewer.held.contains_key(&sample.row);
        reviewer.first += list[reviewer.first..].iter().take_while(is_decided).count();
        list[reviewer.first..].iter().filter(|sample| !is_decided(sample)).take(count).collect()
    }

    /// Groups of flagged labels, the one with most undecided ones first.
    #[must_use]
    pub fn groups(&self, reviewer: &str) -> Vec<Group> {
        let decided = self.decisions.by(reviewer);
        let mut groups: BTreeMap<(u32, u32), Group> = BTreeMap::new();
        for sample in self.samples.list.iter().filter(|sample| sample.flagged) {
            let Sample { given, suggested, .. } = *sample;
            let group =
                groups.entry((given, suggested)).or_insert(Group { given, suggested, all: 0, left: 0 });
            group.all += 1;
            group.left += usize::from(decided.is_none_or(|all| all.held(sample.row).is_none()));
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse((group.left, group.all)));
        groups
    }

    /// Undecided flagged labels of a group, but for so many first ones.
    #[must_use]
    pub fn of_group(
        &self,
        reviewer: &str,
        given: u32,
        suggested: u32,
        from: usize,
        count: usize,
    ) -> Vec<&Sample> {
        let decided = self.decisions.by(reviewer);
        let is_left = |sample: &&Sample| {
            sample.flagged
                && (sample.given, sample.suggested) == (given, suggested)
                && decided.is_none_or(|all| all.held(sample.row).is_none())
        };
        self.samples.list.iter().filter(is_left).skip(from).take(count).collect()
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::samples::tests::audit;
    use proptest::prelude::*;
    use std::path::Path;

    pub fn session(folder: &Path, flagged: u64, others: u64) -> Session {
        let (record, lines) = Record::open(&folder.join("r.jsonl"), "x").unwrap();
        Session::new(audit(flagged, others, 0.2), record, lines)
    }

    pub fn wish(rows: &[u64], decision: Decision) -> Wish {
        let rows = rows.iter().map(|row| (*row, decision.clone())).collect();
        Wish { rows, milliseconds: 100, informed: false }
    }

    fn label(name: &str) -> Decision {
        Decision::Label(name.into())
    }

    fn state(session: &Session) -> Vec<(String, u64, Decision)> {
        let of = |(name, reviewer): (&String, &Reviewer)| {
            let rows: Vec<_> =
                reviewer.all().map(|(row, held)| (name.clone(), row, held.decision.clone())).collect();
            rows
        };
        let mut all: Vec<_> = session.decisions.reviewers().iter().flat_map(of).collect();
        all.sort();
        all
    }

    #[test]
    fn the_next_one_is_the_first_undecided_one_of_each_reviewer() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 12, 0);
        let next = |session: &mut Session, who: &str| session.next(who, 1).first().map(|sample| sample.row);
        assert_eq!(next(&mut session, "ann"), Some(0));
        session.decide("ann", &wish(&[0], label("=b"))).unwrap();
        session.decide("ann", &wish(&[1, 2, 4], Decision::Unsure)).unwrap();
        assert_eq!((next(&mut session, "ann"), next(&mut session, "bob")), (Some(3), Some(0)));
        assert_eq!(session.undo("ann").unwrap(), [1, 2, 4]);
        assert_eq!(next(&mut session, "ann"), Some(1));
        assert_eq!(session.undo("ann").unwrap(), [0]);
        assert!(session.undo("ann").unwrap().is_empty() && session.undo("bob").unwrap().is_empty());
    }

    #[test]
    fn reviewers_in_processes_of_their_own_lose_nothing_and_see_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let work = |who: &'static str| {
            let mut own = session(folder.path(), 60, 0);
            for row in 0..60 {
                own.decide(who, &wish(&[row], label(if who == "ann" { "a" } else { "c" }))).unwrap();
                if row % 7 == 3 {
                    assert_eq!(own.undo(who).unwrap(), [row]);
                }
            }
            own
        };
        let mut sessions = std::thread::scope(|scope| {
            let both = ["ann", "bob"].map(|who| scope.spawn(move || work(who)));
            both.map(|one| one.join().unwrap())
        });
        sessions.iter_mut().for_each(|session| session.refresh().unwrap());
        let again = session(folder.path(), 60, 0);
        for one in &sessions {
            assert_eq!(state(one), state(&again));
        }
        // Nine of sixty were taken back.
        assert_eq!(state(&again).len(), 2 * 51);
        let text = std::fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 1 + 2 * (60 + 9));
    }

    #[test]
    fn groups_are_ordered_by_what_is_left_and_hold_flagged_labels_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 12, 30);
        let sizes = |session: &Session| -> Vec<(u32, usize, usize)> {
            session.groups("ann").iter().map(|group| (group.suggested, group.left, group.all)).collect()
        };
        assert_eq!(sizes(&session), [(1, 8, 8), (2, 4, 4)]);
        session.decide("ann", &wish(&[0, 1, 3, 4, 6], label("=b"))).unwrap();
        assert_eq!(sizes(&session), [(2, 4, 4), (1, 3, 8)]);
        let rows: Vec<u64> = session.of_group("ann", 0, 1, 1, 20).iter().map(|sample| sample.row).collect();
        assert_eq!(rows, [9, 10]);
    }

    #[test]
    fn what_is_unknown_is_refused_and_not_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = session(folder.path(), 3, 0);
        for (rows, decision) in [
            (vec![99], Decision::Drop),
            (vec![0], label("z")),
            (vec![], Decision::Drop),
            (vec![0; 999], Decision::Drop),
        ] {
            assert!(matches!(session.decide("ann", &wish(&rows, decision)), Err(Error::Refused(_))));
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("r.jsonl")).unwrap().lines().count(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_restart_anywhere_changes_nothing_and_undoing_all_leaves_nothing(
            deeds in prop::collection::vec((0usize..2, 0u64..6, 0usize..6), 1..30),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut here = session(folder.path(), 6, 0);
            for (who, row, what) in deeds {
                let who = ["ann", "bob"][who];
                match what {
                    0 => drop(here.undo(who).unwrap()),
                    1 => here.decide(who, &wish(&[row], Decision::Drop)).unwrap(),
                    2 => here.decide(who, &wish(&[row, (row + 1) % 6], Decision::Unsure)).unwrap(),
                    _ => here.decide(who, &wish(&[row], label(["a", "=b", "c"][what - 3]))).unwrap(),
                }
                let again = session(folder.path(), 6, 0);
                prop_assert_eq!(state(&here), state(&again));
                if row == 0 {
                    here = again;
                }
            }
            for who in ["ann", "bob"] {
                while !here.undo(who).unwrap().is_empty() {}
            }
            prop_assert!(state(&here).is_empty());
        }
    }
}
