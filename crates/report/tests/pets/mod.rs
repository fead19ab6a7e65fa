//! A made-up audit of cats and dogs.

use negscale_report::plot::RecallCurve;
use negscale_report::{
    AnnotatorRow, AuditReport, ClassRow, ConfusionRow, Correction, CountMatrix, Estimate, Expert, Figure,
    Judging, Member, NextStep, Outlier, RelationRow, Relations, Separation, SourceRow, SummaryRow, Thumbnail,
    WorstLabel,
};

fn picture() -> Option<Thumbnail> {
    Some(Thumbnail::checked(2, 2, 3, vec![9; 12]).unwrap())
}

/// A cat that looks like a dog.
pub fn worst(index: usize) -> WorstLabel {
    WorstLabel {
        index,
        path: Some(format!("train/{index}.png")),
        given: 0,
        suggested: 1,
        score: 0.976,
        suggested_probability: 0.987,
        reasons: vec!["Nine of ten neighbours are dogs.".into()],
        truth: Some(index % 2),
        thumbnail: picture(),
        values: vec![("weight".into(), "31.5 kg".into())],
    }
}

fn member(index: usize, label: usize, split: &str) -> Member {
    Member {
        index,
        path: Some(format!("{split}/{index}.jpg")),
        label,
        split: split.into(),
        thumbnail: picture(),
    }
}

/// An audit with everything in it, each number once.
pub fn report() -> AuditReport {
    let scores = vec![0.9, 0.8, 0.1, 0.05];
    AuditReport {
        title: "Pets".into(),
        when: "today".into(),
        samples: 9_876,
        flagged: 345,
        estimate: Some(Estimate { rate: 0.0412, interval: [0.0301, 0.0567] }),
        cannot_judge: None,
        notes: vec!["The fit still improves.".into()],
        class_names: vec!["cat".into(), "dog".into()],
        classes: vec![
            ClassRow {
                class: 0,
                labels: 5_111,
                flagged: 222,
                share: 0.0513,
                threshold: Some(0.61),
                why: "rare".into(),
            },
            ClassRow {
                class: 1,
                labels: 4_765,
                flagged: 123,
                share: 0.0299,
                threshold: None,
                why: String::new(),
            },
        ],
        flag_rule: "Flagged from the threshold on.".into(),
        confusions: vec![ConfusionRow {
            given: 0,
            probably: 1,
            count: 207,
            share: 0.0405,
            tree_distance: Some(7),
        }],
        matrix: Some(CountMatrix::checked(2, vec![4_901, 210, 135, 4_630]).unwrap()),
        sources: vec![SourceRow {
            source: "web".into(),
            labels: 777,
            flagged: 88,
            share: 0.119,
            interval: Some([0.08, 0.16]),
        }],
        relations: Some(Relations {
            words: "Wrong labels are 3.2 times as often related classes as chance would have it: the errors follow the tree.".into(),
            labels: 345,
            by_truth: false,
            rows: [("related", 0.713, 0.222), ("neutral", 0.17, 0.33), ("unrelated", 0.117, 0.448)]
                .map(|(relation, share, chance)| RelationRow {
                    relation: relation.into(),
                    share,
                    chance,
                    interval: [0.9 * share / chance, 1.1 * share / chance],
                    pairs: Some([if relation == "unrelated" { 0.991 } else { 0.962 }, chance]),
                })
                .to_vec(),
        }),
        worst: (0..120).map(worst).collect(),
        next: vec![NextStep {
            words: "Train again.".into(),
            command: "negscale train --labels corrected.csv".into(),
        }],
        correction: Some(Correction {
            file: "corrected.csv".into(),
            changed: 333,
            expected_precision: Some(0.934),
            unknown: None,
            right_before: Some(9_469.0),
            right_after: Some(9_758.0),
        }),
        duplicates: vec![vec![member(3, 0, "train"), member(4, 1, "test")]],
        outliers: vec![Outlier {
            index: 5,
            path: Some("odd.jpg".into()),
            label: 1,
            score: 8.25,
            thumbnail: picture(),
        }],
        annotators: vec![AnnotatorRow {
            name: "anna".into(),
            labels: 4_321,
            accuracy: 0.953,
            agreement: 0.948,
        }],
        ranking: RecallCurve::of("by score", &scores, &[true, false, true, false]),
        scores: Some(Separation::Known { right: vec![0.1; 30], wrong: vec![0.9; 20] }),
        judging: Some(Judging {
            words: vec!["Five folds.".into()],
            experts: vec![Expert { name: "network".into(), weight: 0.58, note: "small".into() }],
            exponent: Some(1.37),
            seconds: Some(84.2),
        }),
        measures: vec![SummaryRow::new("Average precision", Figure::Fraction(0.9133), "of the ranking")],
        settings: "folds = 5\n".into(),
        command: "negscale audit pets".into(),
        hardware: "2 cores".into(),
        version: "0.1.0+abc".into(),
    }
}
