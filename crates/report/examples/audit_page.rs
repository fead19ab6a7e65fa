//! Writes pages of made-up audits: pictures, rows of a table, hostile names in a thousand classes, and labels that cannot be judged:
//! `cargo run --release -p negscale-report --example audit_page -- FOLDER`.

use std::path::Path;

use negscale_report::plot::RecallCurve;
use negscale_report::{
    AnnotatorRow, AuditReport, ClassRow, ConfusionRow, Correction, CountMatrix, Estimate, Expert, Figure,
    Judging, Member, NextStep, Outlier, RelationRow, Relations, Result, Separation, SourceRow, SummaryRow,
    Thumbnail, WorstLabel,
};

const ANIMALS: [&str; 10] =
    ["cat", "dog", "wolf", "fox", "horse", "deer", "eagle", "duck", "frog", "goldfish"];
/// For each class the one it is most often taken for.
const ALIKE: [usize; 10] = [3, 2, 1, 0, 5, 4, 7, 6, 9, 8];
const COLOURS: [[f64; 3]; 10] = [
    [0.55, 0.45, 0.40],
    [0.65, 0.50, 0.30],
    [0.45, 0.47, 0.50],
    [0.80, 0.40, 0.15],
    [0.40, 0.25, 0.15],
    [0.60, 0.42, 0.25],
    [0.30, 0.22, 0.16],
    [0.25, 0.50, 0.35],
    [0.30, 0.60, 0.20],
    [0.95, 0.60, 0.20],
];
const HOSTILE: &str = "<script>alert(1)</script>";

/// A number in 0..1 that depends on its two arguments only.
fn chance(stream: u64, at: u64) -> f64 {
    let mut mixed = (stream << 40 ^ at).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ mixed >> 30).wrapping_mul(factor);
    }
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// A blot in the colour of its class.
fn picture(class: usize, seed: u64) -> Result<Thumbnail> {
    let (tall, wide) = (0.6 + 0.35 * chance(61, seed), 0.6 + 0.35 * chance(62, seed));
    let byte = |at: usize| {
        let (pixel, channel) = (at / 3, at % 3);
        let (y, x) = ((pixel / 40) as f64 / 20.0 - 1.0, (pixel % 40) as f64 / 20.0 - 1.0);
        let wave = 0.12 * ((class as f64 + 2.0) * y.atan2(x)).sin();
        let inside = (y / tall).hypot(x / wide) < 0.85 + wave;
        let ground = [0.72, 0.80, 0.88][channel] - 0.15 * y;
        let shade = if inside { COLOURS[class % 10][channel] * (1.1 - 0.3 * y) } else { ground };
        ((shade + 0.06 * (chance(63, seed * 9973 + pixel as u64) - 0.5)) * 255.0) as u8
    };
    Thumbnail::checked(40, 40, 3, (0..40 * 40 * 3).map(byte).collect())
}

fn animal(rank: usize) -> Result<WorstLabel> {
    let at = rank as u64;
    let truth = (chance(1, at) * 10.0) as usize;
    let given =
        if chance(2, at) < 0.7 { ALIKE[truth] } else { (truth + 1 + (chance(3, at) * 9.0) as usize) % 10 };
    let given = if rank % 23 == 17 { truth } else { given };
    let suggested = if given == truth { ALIKE[truth] } else { truth };
    let index = (chance(4, at) * 50_000.0) as usize;
    let mut reasons =
        vec![format!("{} of its 10 nearest neighbours are labelled {}.", 7 + rank % 4, ANIMALS[suggested])];
    if rank.is_multiple_of(3) {
        reasons.push(format!("Both models give {} less than 1 %.", ANIMALS[given]));
    }
    if rank.is_multiple_of(5) {
        reasons.push(format!("{} and {} are often confused here.", ANIMALS[given], ANIMALS[suggested]));
    }
    Ok(WorstLabel {
        index,
        path: Some(format!("photos/{}/{index:05}.jpg", ANIMALS[given])),
        given,
        suggested,
        score: 0.9996 - 0.0011 * at as f64,
        suggested_probability: 0.998 - 0.002 * at as f64 * (0.4 + chance(5, at)),
        reasons,
        truth: (rank % 4 == 1).then_some(truth),
        thumbnail: Some(picture(truth, at)?),
        values: Vec::new(),
    })
}

fn step(words: &str, command: &str) -> NextStep {
    NextStep { words: words.into(), command: command.into() }
}

fn member(class: usize, label: usize, split: &str, seed: u64) -> Result<Member> {
    let index = (chance(8, seed) * 50_000.0) as usize;
    Ok(Member {
        index,
        path: Some(format!("{split}/{}/{index:05}.jpg", ANIMALS[label])),
        label,
        split: split.into(),
        thumbnail: Some(picture(class, seed / 8)?),
    })
}

fn groups() -> Result<Vec<Vec<Member>>> {
    let group = |at: u64| {
        let class = (chance(9, at) * 10.0) as usize;
        let size = 2 + (chance(10, at).powi(3) * 7.0) as u64;
        let one = |which: u64| {
            let label = if at.is_multiple_of(3) && which == 1 { ALIKE[class] } else { class };
            member(class, label, if at % 4 == 1 && which == 0 { "test" } else { "train" }, at * 8 + which)
        };
        (0..size).map(one).collect::<Result<Vec<_>>>()
    };
    (0..11).map(group).collect()
}

fn animals() -> Result<AuditReport> {
    let labels = |class: usize| 4_600 + class * 89;
    let share = |class: usize| 0.004 + 0.09 * chance(11, class as u64).powi(2);
    let pair = |given: usize, probably: usize| match () {
        () if given == probably => 0,
        () if ALIKE[given] == probably => (labels(given) as f64 * share(given) * 0.7) as u64,
        () => {
            (labels(given) as f64 * share(given) * 0.08 * chance(12, (given * 10 + probably) as u64)) as u64
        }
    };
    let wrong = |given: usize| (0..10).map(|c| pair(given, c)).sum::<u64>();
    let class = |class: usize| ClassRow {
        class,
        labels: labels(class),
        flagged: wrong(class) as usize,
        share: share(class),
        threshold: Some(0.5 + 0.04 * (class % 5) as f64),
        why: ["", "hard to tell from fox"][usize::from(class == 0)].to_owned(),
    };
    let cell = |at: usize| match (at / 10, at % 10) {
        (given, probably) if given == probably => labels(given) as u64 - wrong(given),
        (given, probably) => pair(given, probably),
    };
    let confusions = (0..100).filter(|at| pair(at / 10, at % 10) > 0).map(|at| ConfusionRow {
        given: at / 10,
        probably: at % 10,
        count: pair(at / 10, at % 10) as usize,
        share: pair(at / 10, at % 10) as f64 / labels(at / 10) as f64,
        tree_distance: Some(if ALIKE[at / 10] == at % 10 { 1 } else { 2 + (at % 2) as u32 }),
    });
    let classes: Vec<ClassRow> = (0..10).map(class).collect();
    let flagged = classes.iter().map(|row| row.flagged).sum();
    let outlier = |at: u64| -> Result<Outlier> {
        let label = (chance(13, at) * 10.0) as usize;
        let index = (chance(14, at) * 50_000.0) as usize;
        let (path, thumbnail) =
            (Some(format!("photos/{}/{index:05}.jpg", ANIMALS[label])), Some(picture(label + 5, at)?));
        Ok(Outlier { index, path, label, score: 9.4 - 0.21 * at as f64, thumbnail })
    };
    let source = |source: &str, labels: usize, share: f64| SourceRow {
        source: source.into(),
        labels,
        flagged: (labels as f64 * share * 0.85) as usize,
        share,
        interval: Some([0.8 * share, 1.3 * share]),
    };
    let annotator = |name: &str, labels: usize, accuracy: f64, agreement: f64| AnnotatorRow {
        name: name.into(),
        labels,
        accuracy,
        agreement,
    };
    let scores: Vec<f64> = (0..2_000)
        .map(|at| if at < 1_900 { chance(15, at).powi(6) } else { 1.0 - chance(16, at).powi(3) })
        .collect();
    let is_wrong: Vec<bool> = (0..2_000).map(|at| at >= 1_900).collect();
    let as_floats = |from: &[f64]| from.iter().map(|score| *score as f32).collect();
    Ok(AuditReport {
        title: "Photographs of ten animals".into(),
        when: "2026-11-18 10:30 UTC".into(),
        samples: (0..10).map(labels).sum(),
        flagged,
        estimate: Some(Estimate { rate: 0.0312, interval: [0.0241, 0.0406] }),
        cannot_judge: None,
        notes: vec![
            "The fit still improves; more passes may help.".into(),
            "Of goldfish there are few clear pictures, so its share is less certain.".into(),
        ],
        class_names: ANIMALS.map(String::from).to_vec(),
        classes,
        flag_rule: "A label is flagged where its score reaches the threshold of its class, from which on more than half are wrong.".into(),
        confusions: confusions.collect(),
        matrix: Some(CountMatrix::checked(10, (0..100).map(cell).collect())?),
        sources: vec![
            source("web search", 21_004, 0.0561),
            source("camera traps", 17_300, 0.0127),
            source("museum", 11_701, 0.0038),
        ],
        relations: Some(Relations {
            words: "Wrong labels are 3.2 times as often related classes as chance would have it: the errors follow the tree.".into(),
            labels: flagged,
            by_truth: false,
            rows: [("related", 0.713, 0.222), ("neutral", 0.17, 0.33), ("unrelated", 0.117, 0.448)]
                .map(|(relation, share, chance)| RelationRow {
                    relation: relation.into(),
                    share,
                    chance,
                    interval: [0.9 * share / chance, 1.1 * share / chance],
                    pairs: Some([0.962, chance]),
                })
                .to_vec(),
        }),
        worst: (0..120).map(animal).collect::<Result<_>>()?,
        next: vec![
            step("Look at the pictures above, and at audit.csv in a spreadsheet. Edit corrected.csv where you know better.", ""),
            step("Train on the corrected labels.", "negscale train --data photos --labels out/corrected.csv"),
            step("Audit again in your pipeline, and fail above 4 % of wrong labels.", "negscale audit photos --check 0.04"),
        ],
        correction: Some(Correction {
            file: "corrected.csv".into(),
            changed: flagged - 41,
            expected_precision: Some(0.931),
            unknown: None,
            right_before: Some(48_445.0),
            right_after: Some(49_544.0),
        }),
        duplicates: groups()?,
        outliers: (0..37).map(outlier).collect::<Result<_>>()?,
        annotators: vec![
            annotator("anna", 12_210, 0.982, 0.971),
            annotator("bert", 20_121, 0.953, 0.948),
            annotator("crowd 17", 17_674, 0.911, 0.902),
        ],
        scores: Some(Separation::Known {
            right: as_floats(&scores[..1_900]),
            wrong: as_floats(&scores[1_900..]),
        }),
        judging: Some(Judging {
            words: vec!["Predictions for each label come from models that did not see it.".into()],
            experts: vec![
                Expert { name: "network".into(), weight: 0.58, note: "2 layers, 5 folds".into() },
                Expert { name: "neighbours".into(), weight: 0.31, note: "votes of 20".into() },
                Expert { name: "gaussians".into(), weight: 0.11, note: String::new() },
            ],
            exponent: Some(1.37),
            seconds: Some(84.2),
        }),
        measures: vec![
            SummaryRow::new("Average precision", Figure::Fraction(0.913), "of the ranking in audit.csv"),
            SummaryRow::new("Flags that are correct", Figure::Fraction(0.931), "precision of the flags"),
            SummaryRow::new("Wrong labels that are flagged", Figure::Fraction(0.872), "recall of the flags"),
        ],
        ranking: RecallCurve::of("by score", &scores, &is_wrong),
        settings: "[data]\ndata = \"photos\"\n\n[audit]\nfolds = 5\nseed = 1\n".into(),
        command: "negscale audit photos --out out --seed 1".into(),
        hardware: "2 cores, AVX2, 8 GiB".into(),
        version: "negscale 0.1.0".into(),
    })
}

/// Two classes, rows of a table, few wrong labels, nothing else.
fn table() -> AuditReport {
    let row = |at: u64| WorstLabel {
        index: (chance(21, at) * 1_400.0) as usize,
        given: (at % 2) as usize,
        suggested: if at == 5 { 1 } else { 1 - (at % 2) as usize },
        score: 0.98 - 0.03 * at as f64,
        suggested_probability: 0.97 - 0.04 * at as f64,
        reasons: vec!["Amount and age are far from those of its class.".into()],
        values: ["amount", "age", "country", "channel", "hour", "items", "returns", "visits", "a", "b"]
            .iter()
            .enumerate()
            .map(|(n, name)| ((*name).to_owned(), format!("{:.1}", 90.0 * chance(22 + n as u64, at))))
            .collect(),
        ..WorstLabel::default()
    };
    let class = |class: usize, labels: usize, flagged: usize, share: f64| ClassRow {
        class,
        labels,
        flagged,
        share,
        ..ClassRow::default()
    };
    AuditReport {
        title: "payments.csv".into(),
        samples: 1_400,
        flagged: 9,
        estimate: Some(Estimate { rate: 0.0071, interval: [0.0008, 0.0152] }),
        class_names: vec!["honest".into(), "fraud".into()],
        classes: vec![class(0, 1_310, 2, 0.0019), class(1, 90, 7, 0.083)],
        worst: (0..9).map(row).collect(),
        ..AuditReport::default()
    }
}

/// Names of every awkward kind, in turn.
fn name(class: usize) -> String {
    match class % 5 {
        0 => HOSTILE.to_owned(),
        1 => format!("{}{class}", "Donaudampfschifffahrtsgesellschaft".repeat(3)),
        2 => {
            format!("a class {class} whose name goes on and on, as names from a catalogue of goods often do")
        }
        3 => format!("\"><img src=x onerror=alert({class})>"),
        _ => format!("اسم {class}"),
    }
}

/// A thousand classes, each text hostile or endless.
fn odd() -> Result<AuditReport> {
    let mut odd = animals()?;
    (odd.title, odd.class_names) = (format!("{HOSTILE} {}", name(1)), (0..1_000).map(name).collect());
    odd.notes = (0..5).map(name).collect();
    odd.classes = (0..1_000)
        .map(|class| ClassRow {
            class,
            labels: 50,
            flagged: class % 9,
            share: chance(31, class as u64),
            threshold: Some(0.5),
            why: name(class),
        })
        .collect();
    odd.matrix = None;
    odd.confusions = (0..1_000)
        .map(|given| ConfusionRow {
            given,
            probably: (given + 1) % 1_000,
            count: given % 7,
            share: f64::NAN,
            tree_distance: None,
        })
        .collect();
    odd.sources = (0..50)
        .map(|at| SourceRow { source: name(at), labels: at, flagged: 0, share: 0.0, interval: None })
        .collect();
    odd.annotators =
        (0..50).map(|at| AnnotatorRow { name: name(at), accuracy: 0.5, ..AnnotatorRow::default() }).collect();
    for (rank, label) in odd.worst.iter_mut().enumerate() {
        label.path = Some(format!("{}/{rank}.png", "folder-within-folder/".repeat(6)));
        label.reasons = (0..3).map(|at| name(rank + at)).collect();
        label.values = (0..3).map(|at| (name(rank + at), name(rank + at + 1))).collect();
        label.given = rank % 5;
        label.suggested = (rank + 1) % 5;
    }
    odd.next = vec![step(&name(2), &format!("negscale audit '{}'", name(2).repeat(3)))];
    Ok(odd)
}

fn unjudged() -> Result<AuditReport> {
    Ok(AuditReport {
        cannot_judge: Some(
            "no model predicts held-out labels better than the most frequent class does".into(),
        ),
        notes: vec!["There are 3 labels per class; at least 20 are needed.".into()],
        next: vec![step("Look at the features first.", "negscale data inspect photos")],
        ..animals()?
    })
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let pages = [
        ("audit", animals()?),
        ("audit-table", table()),
        ("audit-odd", odd()?),
        ("audit-unjudged", unjudged()?),
    ];
    for (name, page) in pages {
        let path = Path::new(&folder).join(format!("{name}.html"));
        page.write_html(&path)?;
        println!("{}", path.display());
    }
    Ok(())
}
