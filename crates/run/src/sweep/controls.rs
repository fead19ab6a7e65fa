//! What is claimed of an arm: its difference to every other arm, in every cell, on the same seeds.
//!
//! A comparison is the claimed arm minus one other, over all cells: a family of paired tests, to which Holm's correction is applied
//! ([`negscale_records::statistics`]). Means are over the pairs alone.

use super::collect::{Axes, Finished, form, mean, once};
use super::pairs::{BySeed, common, difference};
use super::plan::{ARM, SweepPlan};
use crate::Result;
use crate::recipe::{Arm, Arms, SettingList};
use negscale_records::statistics::{CONFIDENCE, holm};
use negscale_report::plot::{Caption, Difference, Differences, Plot, Point};
use negscale_report::table::{Cell, Column, ColumnKind, NumberFormat};
use negscale_report::{Paired, Scale, Table, unlike_pairs};

/// A comparison in a cell.
struct Tested<'a> {
    cells: Vec<Cell>,
    control: &'a Arm,
    claimed: BySeed,
    other: BySeed,
    paired: Paired,
}

/// The claimed arm against every other, in every cell.
pub struct Tests<'a> {
    figure: &'a str,
    arms: &'a Arms,
    /// Settings that tell cells apart.
    keys: Vec<String>,
    tested: Vec<Tested<'a>>,
    unpaired: usize,
    unlike: usize,
}

impl<'a> Tests<'a> {
    /// Over the runs that are done.
    pub fn of(done: &[Finished<'_>], axes: &Axes, figure: &'a str, arms: &'a Arms) -> Self {
        let keys: Vec<String> =
            axes.columns.iter().chain(&axes.rows).filter(|key| *key != ARM).cloned().collect();
        let cells = once(done.iter().map(|run| run.values(&keys)));
        let runs_of = |cell: &Vec<String>, arm: &str| -> Vec<&Finished<'_>> {
            let is_in =
                |run: &&Finished<'_>| run.run.arm.as_deref() == Some(arm) && run.values(&keys) == *cell;
            done.iter().filter(is_in).collect()
        };
        let seeds = |run: &&Finished<'_>| (run.outcome.seed, run.outcome.noise_seed);
        let by_seed = |runs: &[&Finished<'_>]| -> BySeed {
            runs.iter().filter_map(|run| Some((seeds(run), *run.outcome.figures.get(figure)?))).collect()
        };
        let (mut tested, mut unpaired, mut unlike) = (Vec::new(), 0, 0);
        for control in arms.arms.iter().filter(|arm| arm.name != arms.claim) {
            for cell in &cells {
                let (ours, theirs) = (runs_of(cell, &arms.claim), runs_of(cell, &control.name));
                let Some(first) = ours.first().or(theirs.first()) else { continue };
                let (claimed, other) = (by_seed(&ours), by_seed(&theirs));
                let paired = Paired::of(&other, &claimed);
                unpaired += paired.unpaired;
                let partner =
                    |run: &&Finished<'_>| theirs.iter().find(|other| seeds(other) == seeds(run)).copied();
                unlike += ours
                    .iter()
                    .filter(|run| partner(run).is_some_and(|p| !p.outcome.is_like(&run.outcome)))
                    .count();
                tested.push(Tested { cells: first.cells(&keys), control, claimed, other, paired });
            }
        }
        Self { figure, arms, keys, tested, unpaired, unlike }
    }

    /// All comparisons, with their tests.
    pub fn table(&self) -> Result<Table> {
        let Self { arms, figure, keys, .. } = self;
        let (form, unit, _) = form(figure);
        let mut heads = vec![Column::new("difference of", ColumnKind::Text)];
        heads.extend(keys.iter().map(|key| Column::new(key, ColumnKind::Text)));
        heads.push(Column::new(&arms.claim, ColumnKind::Mean));
        heads.push(Column::new("the other", ColumnKind::Mean));
        heads.push(Column::new("difference", ColumnKind::Interval));
        heads.extend(["p", "p by Holm"].map(|head| Column::new(head, ColumnKind::Number)));
        heads.push(Column::new("so it is", ColumnKind::Text));
        let confidence = 100.0 * CONFIDENCE;
        let title = format!(
            "{} against its controls in {figure}{unit}: mean ± standard deviation (number of pairs), and the difference with its {confidence:.0} % interval",
            arms.claim
        );
        let mut table = Table::new(title, heads);
        for family in self.families() {
            let known = family.iter().filter_map(|test| test.paired.differences.p_value());
            let mut corrected = holm(&known.collect::<Vec<_>>()).into_iter();
            for Tested { cells, control, claimed, other, paired } in family {
                let differences = &paired.differences;
                let p = differences.p_value();
                let p_by_holm = p.and_then(|_| corrected.next());
                let number =
                    |p: Option<f64>| p.map_or(Cell::Empty, |p| Cell::Number(p, NumberFormat::plain(4)));
                let mut row = vec![Cell::text(format!("{} - {}", arms.claim, control.name))];
                row.extend(cells.iter().cloned());
                row.extend([mean(&common(claimed, other), form), mean(&common(other, claimed), form)]);
                row.extend([difference(differences, form), number(p), number(p_by_holm)]);
                row.push(Cell::text(match (p_by_holm, differences.mean()) {
                    (Some(p), Some(mean)) if p < 1.0 - CONFIDENCE => {
                        if mean > 0.0 {
                            "above 0"
                        } else {
                            "below 0"
                        }
                    }
                    (Some(_), _) => "open",
                    (None, _) => "too few pairs",
                }));
                table.push(row)?;
            }
        }
        table.note = notes(arms, self.unpaired, self.unlike).join(" ");
        Ok(table)
    }

    /// For each other arm its name and a drawing of the differences in all cells; none where no pair is done.
    pub fn plots(&self) -> Vec<(String, Plot)> {
        let (_, unit, _) = form(self.figure);
        let (scale, x) =
            if unit.is_empty() { (Scale::Plain, "difference") } else { (Scale::Points, "percentage points") };
        let draw = |family: &[Tested<'_>]| {
            let control = &family[0].control.name;
            let caption = Caption::new(
                format!("{}: {} minus {control}", self.figure, self.arms.claim),
                "Mean of the differences by seed with its 95 % interval, and a dot for each seed.",
                x,
                "",
            );
            let row = |test: &Tested<'_>| {
                let differences = &test.paired.differences;
                let mean = differences.mean()?;
                let (low, high) = differences.interval(CONFIDENCE).unwrap_or((mean, mean));
                let words: Vec<&str> = test
                    .cells
                    .iter()
                    .filter_map(|cell| if let Cell::Text(text) = cell { Some(text.as_str()) } else { None })
                    .collect();
                Some(Difference {
                    name: words.join(", "),
                    mean: Point::between(mean, low, high),
                    pairs: differences.values().to_vec(),
                })
            };
            let rows = family.iter().filter_map(row).collect();
            Some((control.clone(), Differences { caption, scale, rows }.draw()?))
        };
        self.families().filter_map(draw).collect()
    }

    /// The comparisons with one other arm each.
    fn families(&self) -> impl Iterator<Item = &[Tested<'a>]> {
        self.tested.chunk_by(|a, b| a.control.name == b.control.name)
    }
}

fn notes(arms: &Arms, unpaired: usize, unlike: usize) -> Vec<String> {
    let mut notes = vec![
        "Student's t over pairs with the same seeds; p is two-sided; Holm's correction is over the cells of each difference."
            .to_owned(),
    ];
    let budget = |arm: &Arm| match (&arm.follows, arms.budget(arm)) {
        (Some(other), _) => format!("{} as chosen for {other}", arm.name),
        (None, budget) if arm.grid.is_empty() && budget > 0 => format!("{} {budget} (declared)", arm.name),
        (None, budget) => format!("{} {budget}", arm.name),
    };
    let budgets: Vec<String> = arms.arms.iter().map(budget).collect();
    notes.push(format!("Runs spent per cell to find an arm's settings: {}.", budgets.join(", ")));
    if arms.arms.iter().any(|arm| !arm.grid.is_empty()) {
        notes.push(chosen_by(arms));
    }
    notes.extend(super::search::budget_warnings(arms));
    if unpaired > 0 {
        notes.push(format!("Runs left out because no partner with the same seeds is done yet: {unpaired}."));
    }
    if unlike > 0 {
        notes.push(unlike_pairs(unlike));
    }
    notes
}

/// By what figure, on which seeds and samples.
fn chosen_by(arms: &Arms) -> String {
    let figure = &arms.search.figure;
    let on = if figure.starts_with("test_") {
        " on the TEST SET: the seeds of this table took no part in the choice, but its test samples did"
    } else {
        ""
    };
    format!("Settings were chosen by {figure} on {} development seeds{on}.", arms.search.seeds.len())
}

/// What was searched, and what came of it; none without a search.
pub fn searches(plan: &SweepPlan) -> Result<Option<Table>> {
    let Some(arms) = plan.arms.as_ref().filter(|_| !plan.choices.is_empty()) else { return Ok(None) };
    let figure = &arms.search.figure;
    let (form, unit, _) = form(figure);
    let text = |head: &str| Column::new(head, ColumnKind::Text);
    let number = |head: &str| Column::new(head, ColumnKind::Number);
    let best = format!("{figure}{unit}");
    let heads = vec![
        text("arm"),
        text("cell"),
        number("settings tried"),
        number("development runs"),
        text("chosen"),
        number(&best),
    ];
    let mut table = Table::new("Searches: settings with the largest mean over the development seeds", heads);
    let count = |count: usize| Cell::Number(count as f64, NumberFormat::plain(0));
    let words = |settings: &SettingList| {
        let all = settings.iter().map(|(path, value)| format!("{path}={}", super::plan::plain(value)));
        all.collect::<Vec<_>>().join(", ")
    };
    for choice in &plan.choices {
        let (chosen, value) = match choice.chosen() {
            Some((settings, value)) => (words(settings), Cell::Number(value, form)),
            None => (format!("{} runs to go", choice.runs.1), Cell::Empty),
        };
        let cell = if choice.group.is_empty() { "all" } else { &choice.group };
        table.push(vec![
            Cell::text(&choice.arm),
            Cell::text(cell),
            count(choice.points.len()),
            count(choice.runs.0),
            Cell::text(chosen),
            value,
        ])?;
    }
    table.note = chosen_by(arms);
    Ok(Some(table))
}
