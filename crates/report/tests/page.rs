//! The page: every text stays text, every number is there, and odd runs still give a page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod markup;

use markup::{HOSTILE, asked_of_the_network, elements, names};
use negscale_report::{
    ConfusionRows, CountMatrix, EpochRecord, Figure, RelationRow, Relations, RunReport, Separation,
    SummaryRow, Suspicious, Thumbnail, summarise,
};

fn records(count: u64) -> Vec<EpochRecord> {
    let record = |epoch: u64| {
        let mut record = EpochRecord::new(epoch, 2.0, 0.05);
        record.losses.insert("cross-entropy".into(), 2.0 / (epoch as f64 + 1.0));
        record.losses.insert("snop".into(), 0.5);
        record.test_accuracy = Some(0.1234 + epoch as f64 / 1000.0);
        record.train_accuracy = Some(0.4);
        record.validation_accuracy = Some(0.3);
        record.fit_clean = Some(0.9);
        record.fit_wrong_given = Some(0.2);
        record.fit_wrong_true = Some(0.7);
        record.separation_auc = Some(0.95);
        record.noise_estimate = Some(0.5);
        record
    };
    (0..count).map(record).collect()
}

fn report() -> RunReport {
    let records = records(12);
    let item = |index: usize| Suspicious {
        index,
        path: Some(format!("train/{index}.png")),
        given: 0,
        suggested: 1,
        clean_probability: 0.015,
        suggested_probability: 0.987,
        tree_distance: Some(3.0),
        truth: Some(index % 2),
        thumbnail: Some(Thumbnail::checked(2, 2, 3, vec![9; 12]).unwrap()),
    };
    RunReport {
        title: "A run".into(),
        when: "today".into(),
        settings: "epochs = 12\n".into(),
        summary: summarise(&records),
        records,
        class_names: vec!["cat".into(), "dog".into()],
        confusion: Some((ConfusionRows::Given, CountMatrix::checked(2, vec![811, 22, 33, 744]).unwrap())),
        noise: Some(CountMatrix::checked(2, vec![655, 5, 6, 656]).unwrap()),
        relations: Some(Relations {
            words: "The errors follow the tree.".into(),
            labels: 777,
            by_truth: true,
            rows: vec![RelationRow {
                relation: "related".into(),
                share: 0.411,
                chance: 0.185,
                interval: [2.19, 2.26],
                pairs: Some([0.528, 0.16]),
            }],
        }),
        ranking: None,
        separation: Some(Separation::Known { right: vec![0.9; 30], wrong: vec![0.1; 20] }),
        flagged: Some(1234),
        suspicious: (0..120).map(item).collect(),
        command: "negscale train --seed 1".into(),
        hardware: "2 cores".into(),
        version: "0.1.0+abc".into(),
    }
}

#[test]
fn every_number_of_the_run_appears() {
    let html = report().to_html().unwrap();
    for text in
        ["13.44 %", "12.99 %", "811", "744", "655", "656", "1.5 %", "98.7 %", "tree distance 3", "2 cores"]
    {
        assert!(html.contains(text), "{text}");
    }
    for text in
        ["A run", "today", "epochs = 12", "negscale train --seed 1", "0.1.0+abc", "train/99.png", "oracle"]
    {
        assert!(html.contains(text), "{text}");
    }
    for text in
        ["The errors follow the tree.", "777 wrong labels", "41.1", "18.5", "2.2 times", "2.2 to 2.3", "52.8"]
    {
        assert!(html.contains(text), "{text}");
    }
    assert!(html.contains("1\u{202f}234 labels look wrong; the 100 most suspicious are shown."));
    assert!(html.contains("50 of 100 are wrong and 50 suggestions are right"));
    assert!(!html.contains("train/100.png"));
    assert_eq!(html.matches("src=\"data:image/png;base64,").count(), 100);
}

#[test]
fn a_card_leads_with_the_suggested_class() {
    let html = report().to_html().unwrap();
    let card = html.split("<li class=\"panel card\">").nth(1).unwrap();
    let at = |text: &str| card.find(text).unwrap();
    assert!(at(">dog<") < at("title=\"label as given\">cat<") && at("98.7 %") < at("1.5 %"));
}

#[test]
fn without_a_count_no_number_of_wrong_labels_is_claimed() {
    let html = RunReport { flagged: None, ..report() }.to_html().unwrap();
    assert!(html.contains("The most suspicious labels, the worst first.") && !html.contains("look wrong"));
}

#[test]
fn every_curve_has_as_many_points_as_records() {
    let html = report().to_html().unwrap();
    let charts = html.split("<figure").skip(1).filter(|figure| figure.contains("class=\"bands\""));
    let mut curves = 0;
    for chart in charts {
        let drawing = chart.split("</svg>").next().unwrap();
        assert_eq!(drawing.matches("<title>").count(), 12);
        for path in drawing.split("<path d=\"").skip(1) {
            assert_eq!(path.split('"').next().unwrap().matches(['M', 'L']).count(), 12);
            curves += 1;
        }
    }
    // Three accuracies, three fits, two losses, the learning rate, two signals.
    assert_eq!(curves, 11);
}

#[test]
fn text_stays_text_everywhere() {
    let plain = report();
    let mut hostile = plain.clone();
    let evil = || HOSTILE.to_owned();
    (hostile.title, hostile.when, hostile.settings) = (evil(), evil(), evil());
    (hostile.command, hostile.hardware, hostile.version) = (evil(), evil(), evil());
    hostile.class_names = vec![evil(), evil()];
    hostile.summary =
        plain.summary.iter().map(|row| SummaryRow { label: evil(), note: evil(), ..row.clone() }).collect();
    for item in &mut hostile.suspicious {
        item.path = Some(evil());
    }
    for record in &mut hostile.records {
        let snop = record.losses.remove("snop").unwrap();
        record.losses.insert(format!("snop{HOSTILE}"), snop);
    }
    let (plain, hostile) = (plain.to_html().unwrap(), hostile.to_html().unwrap());
    // The same elements in the same order: no text became one, in HTML or in SVG.
    assert_eq!(names(&plain), names(&hostile));
    assert!(!hostile.contains("<script") && hostile.contains("{{ 7*7 }}"));
    // No attribute came from a text: what is outside quotes holds no handler.
    for tag in elements(&hostile) {
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains("onload"), "{tag}");
    }
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let html = report().to_html().unwrap();
    assert_eq!(asked_of_the_network(&html), None);
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_run_with_nothing_in_it_still_gives_a_page() {
    let html = RunReport::default().to_html().unwrap();
    assert!(
        html.contains("Untitled run")
            && html.contains("0 epochs")
            && html.contains("No epoch has been recorded")
    );
    assert!(html.contains("Labels were not checked") && html.ends_with("</html>"));
    assert!(!html.contains("<figure"));
}

#[test]
fn one_epoch_is_drawn_as_dots() {
    let mut report = report();
    report.records = records(1);
    let html = report.to_html().unwrap();
    assert!(html.contains("1 epoch<") && html.matches("<circle").count() == 11);
}

#[test]
fn numbers_that_are_not_finite_leave_a_readable_page() {
    let mut report = report();
    for record in &mut report.records {
        record.losses.values_mut().for_each(|loss| *loss = f64::NAN);
        record.test_accuracy = Some(f64::INFINITY);
        record.seconds = f64::NAN;
    }
    report.summary.push(SummaryRow::new("odd", Figure::Fraction(f64::NAN), ""));
    report.suspicious[0].clean_probability = f64::NAN;
    let html = report.to_html().unwrap();
    assert!(html.contains("no finite values") && html.contains("<dd>–</dd>"));
    for tag in elements(&html) {
        for drawn in [" d=\"", " x=\"", " y=\"", " width=\"", " height=\"", " style=\""] {
            if let Some(value) = tag.split(drawn).nth(1) {
                let value = value.split('"').next().unwrap();
                assert!(!value.contains("NaN") && !value.contains("inf"), "{tag}");
            }
        }
    }
}

#[test]
fn a_thousand_classes_show_mix_ups_instead_of_a_table() {
    let mut counts = vec![0; 1_000_000];
    counts[3 * 1000 + 999] = 77;
    let matrix = CountMatrix::checked(1000, counts).unwrap();
    let html = RunReport { confusion: Some((ConfusionRows::True, matrix)), ..RunReport::default() }
        .to_html()
        .unwrap();
    assert!(html.contains("most frequent confusions") && html.contains("class 999") && html.contains("77"));
    assert!(html.len() < 30_000);
}

#[test]
fn one_class_and_labels_beyond_the_names_are_shown_by_number() {
    let matrix = CountMatrix::checked(1, vec![9]).unwrap();
    let item = Suspicious { index: 5, given: 70, suggested: 71, ..Suspicious::default() };
    let report = RunReport {
        confusion: Some((ConfusionRows::True, matrix)),
        suspicious: vec![item],
        ..RunReport::default()
    };
    let html = report.to_html().unwrap();
    for text in
        ["class 0", "class 70", "class 71", "The most suspicious labels, the worst first.", "class=\"blank\""]
    {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_and_the_file_is_replaced_whole() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("report.html");
    RunReport::default().write_html(&path).unwrap();
    report().write_html(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), report().to_html().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
