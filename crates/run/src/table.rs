//! The table at the end.

use crate::clock;
use crate::summary::Summary;

/// The results of a run, beside those of its baseline.
pub fn render(summary: &Summary, baseline: Option<&Summary>) -> String {
    let columns: Vec<&Summary> = [Some(summary), baseline].into_iter().flatten().collect();
    let width = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0).max(12);
    let mut text = String::new();
    let mut line = |label: &str, cell: &dyn Fn(&Summary) -> Option<String>| {
        let cells: Vec<Option<String>> = columns.iter().map(|column| cell(column)).collect();
        if cells.iter().all(Option::is_none) {
            return;
        }
        text.push_str(&format!("{label:<40}"));
        for cell in cells {
            text.push_str(&format!("  {:>width$}", cell.unwrap_or_else(|| "-".into())));
        }
        text.push('\n');
    };
    let percent = |value: Option<f64>| value.map(|value| format!("{:.2} %", 100.0 * value));
    line("", &|s| Some(s.name.clone()));
    line("test accuracy, last epoch", &|s| percent(s.test.last.map(|t| t.1)));
    line("test accuracy, mean of last 10", &|s| percent(s.test.last_10.map(|t| t.1)));
    line("test accuracy, best by noisy validation", &|s| percent(s.test.best_by_validation.map(|t| t.1)));
    line("test accuracy, best on test (oracle)", &|s| percent(s.test.best.map(|t| t.1)));
    line("clean labels learnt", &|s| percent(s.last.fit_clean));
    line("wrong labels memorised", &|s| percent(s.last.fit_wrong_given));
    line("wrong labels recovered", &|s| percent(s.last.fit_wrong_true));
    line("wrong labels: average precision", &|s| percent(s.audit?.average_precision));
    line("wrong labels: precision of flags", &|s| percent(s.audit?.flag_precision));
    line("wrong labels: recall of flags", &|s| percent(s.audit?.flag_recall));
    line("wrong labels: true class suggested", &|s| percent(s.audit?.suggestion_accuracy));
    line("labels flagged", &|s| Some(format!("{} of {}", s.flagged, s.samples)));
    line("labels right, before the review", &|s| percent(s.review?.right.map(|[before, _]| before)));
    line("labels right, as trained on", &|s| percent(s.review?.right.map(|[_, now]| now)));
    line("noise, true", &|s| percent(s.noise));
    line("noise, estimated", &|s| percent(s.noise_estimated()));
    let often = |s: &Summary| s.noise_on_tree()?.errors.related;
    line("wrong labels, related classes", &|s| Some(format!("{:.2} x chance", often(s)?.ratio)));
    line("time", &|s| Some(clock::duration(s.seconds)));
    text
}
