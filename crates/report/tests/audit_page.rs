//! The page of an audit: it answers with one number, every text stays text, and odd audits still give a page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod markup;
mod pets;

use markup::{HOSTILE, asked_of_the_network, elements, names};
use negscale_report::{
    AnnotatorRow, AuditReport, ClassRow, ConfusionRow, Correction, CountMatrix, Estimate, Expert, Judging,
    Member, NextStep, Outlier, RelationRow, Relations, SourceRow, WorstLabel,
};
use pets::{report, worst};

/// The page as text, with plain spaces.
fn html(report: &AuditReport) -> String {
    report.to_html().unwrap().replace(['\u{a0}', '\u{202f}'], " ")
}

#[test]
fn the_page_leads_with_one_number_and_one_estimate() {
    let html = html(&report());
    assert!(html.contains("<p class=\"answer\"><strong>345</strong> labels look wrong of 9 876.</p>"));
    assert!(html.contains("Estimated share of wrong labels: 4.1 % (3.0 % to 5.7 %)."));
    let heads: Vec<&str> =
        html.split("<h2 id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let wanted = [
        "how-many",
        "where",
        "semantic",
        "worst",
        "next",
        "duplicates",
        "outliers",
        "annotators",
        "truth",
        "ranking",
        "judged",
        "again",
    ];
    assert_eq!(heads, wanted);
}

#[test]
fn every_number_of_the_audit_appears() {
    let html = html(&report());
    let numbers = [
        "5 111",
        "222",
        "5.1 %",
        "0.61",
        "3.0 %",
        ">207<",
        "4.0 %",
        ">7<",
        "4901",
        "135",
        "777",
        "11.9 %",
        "71.3 %",
        "22.2 %",
        "3.2 times",
        "96.2 %",
        "99.1 %",
        "97.6 %",
        "98.7 %",
        "333 labels",
        "93.4 %",
        "9 469",
        "9 758",
        "score 8.25",
        "4 321",
        "95.3 %",
        "94.8 %",
        "91.33 %",
        "0.58",
        "1.37",
        "1 min 24 s",
    ];
    let texts = [
        "Pets",
        "today",
        "The fit still improves.",
        "rare",
        "Flagged from the threshold on.",
        "web",
        "31.5 kg",
        "Nine of ten neighbours are dogs.",
        "Train again.",
        "negscale train --labels corrected.csv",
        "labels disagree",
        "in more than one split",
        "odd.jpg",
        "anna",
        "Five folds.",
        "folds = 5",
        "negscale audit pets",
        "2 cores",
        "0.1.0+abc",
        "train/99.png",
        "50 of 100 are wrong and 50 suggestions are right",
    ];
    for text in numbers.into_iter().chain(texts) {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn a_card_leads_with_the_answer() {
    let html = html(&report());
    let card = html.split("<li class=\"panel worst").nth(1).unwrap();
    let at = |text: &str| card.find(text).unwrap();
    assert!(at(">cat<") < at("probably <strong") && at("probably <strong") < at(">dog<"));
    assert!(at(">dog<") < at("98.7 %") && at("98.7 %") < at("<img") && at("<img") < at("Nine of ten"));
}

#[test]
fn a_hundred_cards_are_shown_and_never_more_than_are_flagged() {
    let cards = |flagged: usize| {
        let html = html(&AuditReport { flagged, ..report() });
        (html.matches("<li class=\"panel worst").count(), html)
    };
    let (count, page) = cards(345);
    assert!(
        count == 100 && page.contains("The hundred worst") && page.contains("100 most suspicious of 345")
    );
    let (count, page) = cards(7);
    assert!(count == 7 && page.contains("All 7 labels that look wrong") && !page.contains("hundred"));
    let (count, page) = cards(0);
    assert!(
        count == 0 && page.contains("None of 9 876 labels looks wrong.") && !page.contains("id=\"worst\"")
    );
    assert!(cards(1).1.contains("<strong>1</strong> label looks wrong of 9 876."));
}

#[test]
fn a_label_without_a_better_one_is_another_class_without_a_probability() {
    let item = WorstLabel { given: 0, suggested: 0, ..worst(0) };
    let html = html(&AuditReport { worst: vec![item], flagged: 1, ..report() });
    let card = html.split("<li class=\"panel worst").nth(1).unwrap();
    assert!(card.contains(">another class<") && !card.contains("98.7 %"));
}

#[test]
fn what_cannot_be_judged_is_said_with_its_reason_and_nothing_hangs_on_it() {
    let why = "there are three labels per class";
    let html = html(&AuditReport { cannot_judge: Some(why.into()), ..report() });
    assert!(html.contains("These labels cannot be judged: there are three labels per class."));
    for left_out in [
        "look wrong",
        "Estimated share",
        "id=\"where\"",
        "id=\"semantic\"",
        "id=\"worst\"",
        "id=\"truth\"",
        "id=\"ranking\"",
        "93.4 %",
    ] {
        assert!(!html.contains(left_out), "{left_out}");
    }
    for kept in
        ["The fit still improves.", "Near-duplicates", "odd.jpg", "anna", "What was tried", "Train again."]
    {
        assert!(html.contains(kept), "{kept}");
    }
}

#[test]
fn text_stays_text_everywhere() {
    let plain = report();
    let mut hostile = plain.clone();
    let evil = || HOSTILE.to_owned();
    (hostile.title, hostile.when, hostile.settings) = (evil(), evil(), evil());
    (hostile.command, hostile.hardware, hostile.version) = (evil(), evil(), evil());
    (hostile.flag_rule, hostile.notes, hostile.class_names) = (evil(), vec![evil()], vec![evil(), evil()]);
    hostile.classes[0].why = evil();
    hostile.sources[0].source = evil();
    hostile.annotators[0].name = evil();
    hostile.outliers[0].path = Some(evil());
    hostile.next = vec![NextStep { words: evil(), command: evil() }];
    if let Some(correction) = &mut hostile.correction {
        correction.file = evil();
    }
    if let Some(relations) = &mut hostile.relations {
        relations.words = evil();
    }
    if let Some(judging) = &mut hostile.judging {
        judging.words = vec![evil()];
        judging.experts = vec![Expert { name: evil(), weight: 1.0, note: evil() }];
    }
    hostile.ranking.as_mut().unwrap().name = evil();
    for row in &mut hostile.measures {
        (row.label, row.note) = (evil(), evil());
    }
    for item in &mut hostile.worst {
        (item.path, item.reasons, item.values) = (Some(evil()), vec![evil()], vec![(evil(), evil())]);
    }
    for (number, member) in hostile.duplicates.iter_mut().flatten().enumerate() {
        (member.path, member.split) = (Some(evil()), format!("{HOSTILE}{number}"));
    }
    let (plain, hostile) = (plain.to_html().unwrap(), hostile.to_html().unwrap());
    assert_eq!(names(&plain), names(&hostile));
    assert!(!hostile.contains("<script") && hostile.contains("{{ 7*7 }}"));
    for tag in elements(&hostile) {
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains("onload"), "{tag}");
    }
    let unjudged = AuditReport { cannot_judge: Some(evil()), ..report() }.to_html().unwrap();
    assert!(!unjudged.contains("<script"));
}

#[test]
fn the_page_asks_nothing_of_the_network() {
    let html = report().to_html().unwrap();
    assert_eq!(asked_of_the_network(&html), None);
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn an_audit_with_nothing_in_it_still_gives_a_page() {
    let page = html(&AuditReport::default());
    assert!(
        page.contains("Untitled audit") && page.contains("There are no labels.") && page.ends_with("</html>")
    );
    assert_eq!(page.matches("<h2").count(), 1);
    let page = html(&AuditReport { samples: 500, ..AuditReport::default() });
    assert!(page.contains("None of 500 labels looks wrong.") && page.matches("<h2").count() == 1);
    let empty_parts = AuditReport {
        samples: 5,
        relations: Some(Relations::default()),
        correction: Some(Correction::default()),
        judging: Some(Judging::default()),
        duplicates: vec![vec![]],
        worst: vec![WorstLabel::default()],
        flagged: 5,
        ..AuditReport::default()
    };
    assert!(html(&empty_parts).contains("class 0") && !html(&empty_parts).contains("NaN"));
}

#[test]
fn a_thousand_classes_give_a_bounded_page_with_the_worst_on_top() {
    let class =
        |class: usize| ClassRow { class, labels: 50, share: class as f64 / 1e3, ..ClassRow::default() };
    let confusion =
        |given: usize| ConfusionRow { given, probably: 0, count: 1 + given, ..ConfusionRow::default() };
    let page = html(&AuditReport {
        samples: 50_000,
        classes: (0..1_000).map(class).collect(),
        confusions: (1..1_000).map(confusion).collect(),
        matrix: Some(CountMatrix::checked(1_000, vec![1; 1_000_000]).unwrap()),
        sources: (0..40).map(|at| SourceRow { source: format!("s{at}"), ..SourceRow::default() }).collect(),
        annotators: vec![AnnotatorRow::default(); 31],
        outliers: vec![Outlier::default(); 32],
        duplicates: vec![vec![Member::default(); 500]; 33],
        ..AuditReport::default()
    });
    let by_class = page.split("id=\"by-class\"").nth(1).unwrap().split("</article>").next().unwrap();
    assert!(by_class.find("class 999<").unwrap() < by_class.find("class 998<").unwrap());
    assert!(by_class.matches("<tr>").count() == 32 && by_class.contains("20 more rows"));
    for text in [
        "970 more classes",
        "969 more confusions",
        "10 more sources",
        "1 more annotator is",
        "2 more outliers",
        "3 more groups",
        "and 494 more",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("class=\"matrix\"") && page.len() < 150_000, "{}", page.len());
}

#[test]
fn thirty_classes_have_a_matrix() {
    let matrix = Some(CountMatrix::checked(30, vec![1; 900]).unwrap());
    let page = html(&AuditReport { samples: 900, matrix, ..AuditReport::default() });
    assert!(page.contains("class=\"matrix\"") && page.contains("class 29"));
}

#[test]
fn rows_without_pictures_show_their_values_instead() {
    let mut item = worst(3);
    item.thumbnail = None;
    item.values = (0..20).map(|at| (format!("f{at}"), at.to_string())).collect();
    let page = html(&AuditReport { samples: 9, flagged: 1, worst: vec![item], ..AuditReport::default() });
    assert!(page.contains("panel worst plain") && page.contains("f7") && !page.contains("f8<"));
    assert!(page.contains("and 12 more") && !page.contains("<img"));
}

#[test]
fn numbers_that_are_not_finite_leave_a_readable_page() {
    let mut odd = report();
    odd.estimate = Some(Estimate { rate: f64::NAN, interval: [f64::NAN, f64::INFINITY] });
    odd.classes[0].share = f64::NAN;
    odd.sources[0].share = f64::INFINITY;
    odd.worst[0].score = f64::NAN;
    odd.annotators[0].accuracy = f64::NAN;
    odd.relations = Some(Relations { rows: vec![RelationRow::default()], ..Relations::default() });
    let page = html(&odd);
    assert!(!page.contains("Estimated share") && page.contains("– times"));
    for tag in elements(&page) {
        for drawn in [" d=\"", " x=\"", " cx=\"", " width=\"", " style=\""] {
            if let Some(value) = tag.split(drawn).nth(1) {
                let value = value.split('"').next().unwrap();
                assert!(!value.contains("NaN") && !value.contains("inf"), "{tag}");
            }
        }
    }
}

#[test]
fn the_same_audit_gives_the_same_bytes_and_the_file_is_replaced_whole() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("report.html");
    AuditReport::default().write_html(&path).unwrap();
    report().write_html(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), report().to_html().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
