//! The analysis for people.

use anyhow::Result;
use negscale_similarity::drift::Step;
use negscale_similarity::kendall::Orders;
use negscale_similarity::{Analysis, ByRelation, Change, LabelNoise, Mean, Pairs, RELATIONS, Subject};

const NAME: usize = 30;
const CELL: usize = 16;

fn line<T>(name: &str, values: &ByRelation<T>, text: impl Fn(&T) -> String) -> Result<()> {
    say_part!("{name:<NAME$}");
    for value in values.list() {
        say_part!(" {:>CELL$}", value.map_or("-".into(), &text));
    }
    say!("");
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn head(title: &str) -> Result<()> {
    say_part!("\n{title:<NAME$}");
    for name in RELATIONS {
        say_part!(" {name:>CELL$}");
    }
    say!("");
    Ok(())
}

/// Prints it.
pub fn print(analysis: &Analysis) -> Result<()> {
    let Analysis { target, run, clean, .. } = analysis;
    let wrong =
        target.wrong.map_or(String::new(), |wrong| format!(", {} of the labels wrong", percent(wrong)));
    say!(
        "{} ({}): {} samples, {} classes{wrong}",
        target.data,
        target.split,
        target.samples,
        target.classes.len()
    );
    say!(
        "class tree {}: related up to distance {}, unrelated beyond {}",
        target.tree,
        target.eta_min,
        target.eta_max
    );
    if target.skipped > 0 {
        say!("{} samples have all-zero features and are left out of all pairs", target.skipped);
    }
    for (word, subject) in [("run", Some(run)), ("clean run", clean.as_ref())] {
        if let Some(Subject { name, method, noise, accuracy, .. }) = subject {
            let method = method.as_ref().map_or(String::new(), |method| format!(": {method}"));
            let noise = noise.as_ref().map_or(String::new(), |noise| format!(", noise {noise}"));
            let accuracy =
                accuracy.map_or(String::new(), |share| format!(", test accuracy {}", percent(share)));
            say!("{word:<10} {name}{method}{noise}{accuracy}");
        }
    }
    for (by, found) in
        [("true labels", &analysis.label_noise), ("the run's beliefs", &analysis.believed_noise)]
    {
        if let Some(found) = found {
            print_noise(by, found)?;
        }
    }
    let kinds = kinds(&run.similarity);
    let clean_kinds = clean.as_ref().map(|clean| self::kinds(&clean.similarity));
    let change_kinds = analysis.change.as_ref().map(self::kinds);
    for (at, (title, spreads)) in kinds.iter().enumerate() {
        if spreads.list().iter().all(Option::is_none) {
            continue;
        }
        let both = |mean: f64, std: f64| format!("{mean:.4} ±{std:.4}");
        head(title)?;
        line("  pairs", spreads, |s| s.pairs.to_string())?;
        line("  cosine", spreads, |s| both(s.mean, s.std))?;
        line("  (1 + cosine)/2", spreads, |s| both(s.normalised, s.normalised_std))?;
        if let Some(clean) = &clean_kinds {
            line("    clean run", &clean[at].1, |s| both(s.normalised, s.normalised_std))?;
        }
        if let Some(changes) = &change_kinds {
            let changes = &changes[at].1;
            line("    change", changes, |c| format!("{:+.4} ({:+.1} %)", c.normalised, 100.0 * c.relative))?;
            line("  change of a pair's cosine", changes, |c| format!("{:.4} rms", c.rms))?;
            line("  correlation of cosines", changes, |c| {
                c.correlation.map_or("-".into(), |r| format!("{r:.4}"))
            })?;
        }
    }
    if let Some(change) = &analysis.change {
        verdict(change)?;
    }
    print_orders("", run)?;
    if let Some(clean) = clean {
        print_orders("clean run: ", clean)?;
    }
    print_drift(run)?;
    print_steps(run)?;
    print_theory(analysis)
}

fn kinds<T: Copy>(pairs: &Pairs<T>) -> Vec<(&'static str, ByRelation<T>)> {
    let mut all = vec![("all pairs, by given labels", pairs.given)];
    if let Some(known) = &pairs.known {
        all.extend([
            ("all pairs, by true labels", known.truth),
            ("clean-clean", known.by_truth.clean_clean),
            ("clean-noisy, by true labels", known.by_truth.clean_noisy),
            ("clean-noisy, by given labels", known.by_given.clean_noisy),
            ("cross-noise, by true labels", known.cross_noise),
            ("noisy-noisy, by true labels", known.by_truth.noisy_noisy),
        ]);
    }
    all
}

/// Whether similarity of unrelated pairs moved less than that of related ones.
fn verdict(change: &Pairs<Change>) -> Result<()> {
    let by_truth = change.known.as_ref().map(|known| ("true", known.truth));
    for (labels, change) in [("given", change.given)].into_iter().chain(by_truth) {
        let (Some(related), Some(unrelated)) = (change.related, change.unrelated) else { continue };
        let word = |a: f64, b: f64| if a.abs() < b.abs() { "less" } else { "not less" };
        say!(
            "\nBy {labels} labels, the mean similarity of unrelated pairs changed {} than that of related ones ({:+.4} and {:+.4}), \
             and a single unrelated pair {} than a single related one (cosine, rms {:.4} and {:.4}).",
            word(unrelated.normalised, related.normalised),
            unrelated.normalised,
            related.normalised,
            word(unrelated.rms, related.rms),
            unrelated.rms,
            related.rms
        );
    }
    Ok(())
}

fn print_orders(whose: &str, subject: &Subject) -> Result<()> {
    let Some(Orders { kendall, overlap }) = &subject.orders else { return Ok(()) };
    head(&format!("{whose}logits of two samples"))?;
    let print = |name: &str, pairs: &Pairs<Mean>| -> Result<()> {
        let text = |mean: &Mean| format!("{:.4}", mean.mean);
        line(&format!("  {name}, given labels"), &pairs.given, text)?;
        match &pairs.known {
            Some(known) => line(&format!("  {name}, true labels"), &known.truth, text),
            None => Ok(()),
        }
    };
    if let Some(kendall) = kendall {
        print("Kendall tau", kendall)?;
    }
    print("overlap", overlap)
}

/// Wrong labels and pairs by the class tree.
fn print_noise(by: &str, found: &LabelNoise) -> Result<()> {
    head(&format!("labels, by {by}"))?;
    line("  share of the wrong labels", &found.errors, |e| percent(e.share))?;
    line("    by chance", &found.errors, |e| percent(e.chance))?;
    line("  ratio", &found.errors, |e| format!("{:.3}", e.ratio))?;
    line("    95 % interval", &found.errors, |e| format!("{:.3} to {:.3}", e.interval[0], e.interval[1]))?;
    line("  pairs that are what they say", &found.pairs, |p| percent(p.precision))?;
    line("    of all pairs", &found.pairs, |p| percent(p.chance))?;
    say!("{}", found.verdict());
    Ok(())
}

/// The exact first-order change beside what the paper keeps of it.
fn print_drift(subject: &Subject) -> Result<()> {
    let Some(drift) = &subject.drift else { return Ok(()) };
    head("change of cosine, first order")?;
    for (by, steps) in [("given", Some(&drift.given)), ("true", drift.truth.as_ref())] {
        let Some(steps) = steps else { continue };
        line(&format!("  |change|, {by} labels"), steps, |s| format!("{:.3e}", s.absolute))?;
        line("    with its sign", steps, |s| format!("{:+.3e}", s.mean))?;
        line("    if labels were right", steps, |s| s.clean.map_or("-".into(), |x| format!("{x:+.3e}")))?;
        line("    what the paper keeps", steps, |s| format!("{:.3e}", s.paper))?;
    }
    let ratio = |related: Option<f64>, unrelated: Option<f64>| match (related, unrelated) {
        (Some(a), Some(b)) if b > 0.0 => format!("{:.2}", a / b),
        _ => "-".into(),
    };
    let of = |get: fn(&Step) -> f64| {
        ratio(drift.given.related.as_ref().map(get), drift.given.unrelated.as_ref().map(get))
    };
    let measured =
        subject.steps.last().map_or("not recorded".into(), |last| ratio(last.related, last.unrelated));
    say!(
        "Related by unrelated pairs: first order {}, what the paper keeps {}, measured per step {measured}; correlation of the first two over pairs {}",
        of(|s| s.absolute),
        of(|s| s.paper),
        drift.correlation.map_or("-".into(), |r| format!("{r:.2}"))
    );
    Ok(())
}

fn print_steps(subject: &Subject) -> Result<()> {
    let Some(last) = subject.steps.last() else { return Ok(()) };
    let first = &subject.steps[0];
    head("change of cosine per step")?;
    line("  first epoch recorded", first, |x| format!("{x:.2e}"))?;
    line("  last epoch recorded", last, |x| format!("{x:.2e}"))
}

fn print_theory(analysis: &Analysis) -> Result<()> {
    if let Some(agreement) = &analysis.agreement {
        say!(
            "\nClass rankings, run against clean run: Kendall tau distance {:.4}{}{}; {:.1} % have the same top class",
            agreement.kendall,
            agreement.kendall_clean.map_or(String::new(), |x| format!(", {x:.4} where the label is right")),
            agreement.kendall_noisy.map_or(String::new(), |x| format!(", {x:.4} where it is wrong")),
            100.0 * agreement.same_first
        );
    }
    if let Some(moved) = &analysis.perturbation {
        say!(
            "Perturbation of unit features after the best rotation: mean {:.4}, median {:.4}, largest {:.4}{}{}",
            moved.mean,
            moved.median,
            moved.largest,
            moved.mean_clean.map_or(String::new(), |x| format!("; {x:.4} where the label is right")),
            moved.mean_noisy.map_or(String::new(), |x| format!(", {x:.4} where it is wrong")),
        );
    }
    if let Some(bound) = &analysis.bound {
        let number = |x: Option<f64>| x.map_or("undefined".into(), |x| format!("{x:.4}"));
        say!(
            "Lemma: G tau / (lambda SNOP + mu DCSA) = {:.4} x {:.4} / ({} x {:.4} + {} x {:.4}) = {}; {} of the samples within it",
            bound.gradient_largest,
            bound.tau,
            bound.lambda,
            bound.snop,
            bound.mu,
            bound.dcsa,
            number(bound.epsilon),
            bound.within.map_or("none".into(), |share| format!("{:.1} %", 100.0 * share))
        );
        if bound.epsilon.is_some_and(|epsilon| epsilon >= 2.0) {
            say!("  (two unit vectors are at most 2 apart, so a larger bound says nothing)");
        }
        say!(
            "Theorem: errors {:.4} and {:.4} (clean run) differ by {:.4}; smallest clean margin {:.4} ({:.1} % above 0), so the bound is {}",
            bound.error_run,
            bound.error_clean,
            (bound.error_run - bound.error_clean).abs(),
            bound.margin_smallest,
            100.0 * bound.margin_positive,
            bound.error_bound.map_or("undefined: its condition is not met".into(), |x| format!("{x:.4}"))
        );
    }
    Ok(())
}
