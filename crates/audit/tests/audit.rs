//! The audit: order, table and measures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_audit::{Audit, Cells, FLAG_BELOW, area_under_curve, average_precision, precision_at};
use negscale_audit::{Source, Verdict};
use proptest::prelude::*;

fn verdict(given: u32, suggested: u32, clean_probability: f64, given_probability: f32) -> Verdict {
    let suggested_probability = if given == suggested { given_probability } else { 1.0 - given_probability };
    let source = Source::Mixture;
    let score = 1.0 - clean_probability;
    Verdict { given, suggested, clean_probability, source, score, suggested_probability, given_probability }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn four() -> Vec<Verdict> {
    vec![
        verdict(0, 0, 0.75, 1.0),
        verdict(1, 0, 0.25, 0.5),
        verdict(2, 1, 0.25, 0.25),
        verdict(0, 0, 0.75, 1.0),
    ]
}

fn text(audit: &Audit, path_of: impl Fn(usize) -> Option<String>, cells: Cells) -> String {
    let mut bytes = Vec::new();
    audit.write_csv(&mut bytes, path_of, cells).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_most_suspicious_label_comes_first_and_equals_by_index() {
    let audit = Audit::new(&four(), &names(&["a", "b", "c"]), FLAG_BELOW).unwrap();
    assert_eq!(audit.findings().iter().map(|f| f.index).collect::<Vec<_>>(), [2, 1, 0, 3]);
    assert_eq!(audit.findings().iter().map(|f| f.group).collect::<Vec<_>>(), [0, 1, 2, 2]);
    assert_eq!(audit.findings().iter().map(|f| f.flag).collect::<Vec<_>>(), [true, true, false, false]);
}

#[test]
fn the_table_names_classes_and_measures_their_distance() {
    let classes = names(&["airplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]);
    let distance =
        |given: usize, suggested: usize| if given == suggested { 0 } else { (given + suggested) as u32 };
    let verdicts = [verdict(7, 5, 0.125, 0.25), verdict(1, 6, 0.5, 0.5), verdict(3, 3, 1.0, 1.0)];
    let path_of = |index| (index != 1).then(|| format!("train/{index}.png"));
    let audit = Audit::new(&verdicts, &classes, FLAG_BELOW).unwrap().with_distances(distance);
    let wanted = format!(
        "index,path,given,suggested,score,clean_probability,suggested_probability,tree_distance,flag\n\
         0,train/0.png,horse,dog,0.875,0.125,0.75,12,true\n1,,{},frog,0.5,0.5,0.5,7,false\n2,train/2.png,cat,cat,0,1,1,0,false\n",
        classes[1]
    );
    assert_eq!(text(&audit, path_of, Cells::Guarded), wanted);
    let without = Audit::new(&verdicts, &classes, FLAG_BELOW).unwrap();
    assert!(text(&without, path_of, Cells::Guarded).contains("horse,dog,0.875,0.125,0.75,,true\n"));
}

#[test]
fn names_of_any_kind_survive_the_table() {
    let classes = names(&["a,b", "say \"hi\"", "two\nlines", "=1+1", " @SUM(A1)", "-", "plain"]);
    let verdicts: Vec<Verdict> = (0..7).map(|i| verdict(i, i, 0.5, 1.0)).collect();
    let audit = Audit::new(&verdicts, &classes, FLAG_BELOW).unwrap();
    let read = |cells| -> Vec<String> {
        let text = text(&audit, |index| Some(format!("+{index}, \"x\"")), cells);
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = table.records().map(|row| row.unwrap()).collect();
        let path = rows[3][1].to_owned();
        assert!(rows.iter().all(|row| row.len() == 9 && row[2] == row[3]));
        rows.iter().map(|row| row[2].to_owned()).chain([path]).collect()
    };
    let mut exact = classes.clone();
    exact.push("+3, \"x\"".into());
    assert_eq!(read(Cells::Exact), exact);
    let guarded = ["a,b", "say \"hi\"", "two\nlines", "'=1+1", "' @SUM(A1)", "'-", "plain", "'+3, \"x\""];
    assert_eq!(read(Cells::Guarded), guarded);
}

#[test]
fn the_table_is_written_whole() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("audit-whole");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let audit = Audit::new(&four(), &names(&["a", "b", "c"]), FLAG_BELOW).unwrap();
    let path = folder.join("audit.csv");
    audit.save_csv(&path, |_| None, Cells::Guarded).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text(&audit, |_| None, Cells::Guarded));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    assert!(audit.save_csv(folder.join("none").join("audit.csv"), |_| None, Cells::Guarded).is_err());
}

/// A disk with room for so many bytes.
struct Disk(usize);

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.min(bytes.len()) {
            0 => Err(std::io::ErrorKind::StorageFull.into()),
            taken => {
                self.0 -= taken;
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_as_such_wherever_the_table_is_cut() {
    // Long names, so that the table is written in several pieces.
    let classes = names(&["a".repeat(9000).as_str(), "b", "c"]);
    let audit = Audit::new(&four(), &classes, FLAG_BELOW).unwrap();
    let length = text(&audit, |_| None, Cells::Exact).len();
    for room in (0..length).step_by(1000) {
        let error = audit.write_csv(Disk(room), |_| None, Cells::Exact).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "room for {room} of {length}: {error}");
    }
    audit.write_csv(Disk(length), |_| None, Cells::Exact).unwrap();
}

#[test]
fn the_score_decides_the_order_and_the_clean_probability_the_flag() {
    let mut verdicts = four();
    verdicts[0].score = 0.99;
    let audit = Audit::new(&verdicts, &names(&["a", "b", "c"]), FLAG_BELOW).unwrap();
    assert_eq!(audit.findings().iter().map(|f| f.index).collect::<Vec<_>>(), [0, 2, 1, 3]);
    assert!(!audit.findings()[0].flag);
    verdicts[0].score = 1.5;
    let error = Audit::new(&verdicts, &names(&["a", "b", "c"]), FLAG_BELOW).unwrap_err();
    assert!(error.to_string().contains("sample 0 has score 1.5"), "{error}");
}

#[test]
fn corrected_labels_are_sure_suggestions_where_flagged_in_the_order_of_the_data() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("audit-corrected");
    std::fs::create_dir_all(&folder).unwrap();
    let mut verdicts = four();
    verdicts[1] = verdict(1, 0, 0.25, 0.25);
    verdicts[3] = verdict(0, 2, 0.75, 0.25); // another suggestion, but not flagged
    verdicts.push(verdict(2, 0, 0.25, 0.5)); // flagged, but nobody is sure of the suggestion
    let audit = Audit::new(&verdicts, &names(&["a", "=b", "c"]), FLAG_BELOW).unwrap();
    assert_eq!(audit.corrected(), [0, 0, 1, 0, 2]);
    let path = folder.join("corrected.csv");
    audit.save_corrected(&path, |index| (index == 2).then(|| "x, y.png".to_owned())).unwrap();
    let wanted = "index,path,label,given,changed\n0,,a,a,false\n1,,a,'=b,true\n2,\"x, y.png\",'=b,c,true\n3,,a,a,false\n\
                  4,,c,c,false\n";
    assert_eq!(std::fs::read_to_string(&path).unwrap(), wanted);
}

#[test]
fn suggestions_are_taken_over_from_above_seven_tenths() {
    let verdicts = [0.69, 0.7, 0.7001, 0.9]
        .map(|sure| Verdict { suggested_probability: sure, ..verdict(0, 1, 0.1, 1.0 - sure) });
    let audit = Audit::new(&verdicts, &names(&["a", "b"]), FLAG_BELOW).unwrap();
    assert_eq!(audit.corrected(), [0, 0, 1, 1]);
}

#[test]
fn what_a_correction_brings_is_counted_by_hand() {
    let four = [
        Verdict { suggested_probability: 0.75, ..verdict(0, 1, 0.25, 0.25) },
        Verdict { suggested_probability: 1.0, ..verdict(1, 2, 0.0, 0.0) },
        Verdict { suggested_probability: 0.5, ..verdict(2, 0, 0.25, 0.375) }, // flagged, not sure
        verdict(0, 0, 1.0, 1.0),
    ];
    let verdicts = four.repeat(10);
    let classes = names(&["a", "b", "c"]);
    let found = Audit::new(&verdicts, &classes, FLAG_BELOW).unwrap().correction(0.5, [0.4, 0.6]);
    assert_eq!((found.changed, found.expected_precision), (20, Some(0.875)));
    assert_eq!((found.right_before, found.right_after), (0.5, Some(0.5 + (1.75 - 0.25) / 4.0)));
    let more = Audit::new(&verdicts, &classes, FLAG_BELOW).unwrap().correction(0.125, [0.1, 0.2]);
    assert_eq!((more.right_before, more.right_after), (0.875, Some(1.0)), "no more than all can be right");
    let none = Audit::new(&verdicts, &classes, 0.0).unwrap().correction(0.25, [0.2, 0.3]);
    assert_eq!((none.changed, none.expected_precision, none.right_after), (0, None, Some(0.75)));
    let empty = Audit::new(&[], &classes, 0.5).unwrap();
    let nothing = empty.correction(0.0, [0.0, 1.0]);
    assert_eq!((nothing.right_after, empty.cut_off(), empty.flagged()), (Some(1.0), None, 0));
}

#[test]
fn so_many_of_the_most_suspicious_are_flagged_and_the_last_is_the_cut_off() {
    let verdicts = [
        verdict(0, 1, 0.9, 0.75), // its own class is the likelier one
        verdict(1, 2, 0.2, 0.25),
        verdict(2, 0, 0.4, 0.5), // as likely as not
        verdict(0, 2, 0.6, 0.25),
    ];
    let classes = names(&["a", "b", "c"]);
    for (count, cut_off) in [(0, None), (1, Some(0.8)), (2, Some(0.6)), (3, Some(0.4)), (4, Some(1.0 - 0.9))]
    {
        let audit = Audit::flagging(&verdicts, &classes, count).unwrap();
        assert_eq!((audit.flagged(), audit.cut_off()), (count, cut_off));
        let suggested = |index: usize| {
            let finding = audit.findings().iter().find(|finding| finding.index == index).unwrap();
            (finding.flag, finding.verdict.suggested)
        };
        assert_eq!(suggested(0), if count == 4 { (true, 1) } else { (false, 0) });
        assert_eq!(suggested(1), (count >= 1, 2));
        assert_eq!(suggested(2), if count >= 2 { (true, 0) } else { (false, 2) });
        assert_eq!(suggested(3), (count >= 3, 2));
    }
    let all = Audit::flagging(&verdicts, &classes, 99).unwrap();
    assert_eq!(all.flagged(), 4, "no more than there are");
    let own = Audit::flagging(&[verdict(0, 0, 0.1, 0.5)], &names(&["a"]), 1).unwrap();
    assert_eq!((own.flagged(), own.cut_off()), (0, None), "there is nothing else to suggest");
}

#[test]
fn what_does_not_fit_is_refused() {
    let classes = names(&["a", "b", "c"]);
    for (verdicts, below, told) in [
        (vec![verdict(0, 3, 0.5, 0.5)], 0.5, "sample 0"),
        (vec![verdict(0, 0, f64::NAN, 0.5)], 0.5, "clean probability NaN"),
        (vec![], 1.5, "flag_below"),
        (vec![], f64::NAN, "flag_below"),
    ] {
        let error = Audit::new(&verdicts, &classes, below).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let audit = Audit::new(&four(), &classes, FLAG_BELOW).unwrap();
    assert!(audit.measure(&[0; 3]).unwrap_err().to_string().contains("3 true labels for 4 samples"));
}

#[test]
fn measures_of_a_small_audit_are_those_by_hand() {
    // Order: 2 (wrong, suggestion right), 1 (right), then 0 (wrong) and 3 (right) as equals.
    let audit = Audit::new(&four(), &names(&["a", "b", "c"]), FLAG_BELOW).unwrap();
    let truth = [1, 1, 1, 0];
    let m = audit.measure(&truth).unwrap();
    assert_eq!(m.average_precision, Some(0.5 * 1.0 + 0.5 * (2.0 / 4.0)));
    // Clean labels 1 (0.25) and 3 (0.75) against wrong ones 2 (0.25) and 0 (0.75): half, loss, win, half.
    assert_eq!(m.clean_auc, Some(0.5));
    assert_eq!((m.flag_precision, m.flag_recall), (Some(0.5), Some(0.5)));
    assert_eq!(m.suggestion_accuracy, Some(0.5));
    assert_eq!((m.noise_estimated, m.noise_flagged, m.noise_true), (Some(0.5), Some(0.5), Some(0.5)));
    let at = |k| audit.precision_at(k, &truth).unwrap();
    assert_eq!([0, 1, 2, 3, 4, 5].map(at), [None, Some(1.0), Some(0.5), Some(0.5), Some(0.5), None]);
}

#[test]
fn measures_without_a_value_have_none() {
    let classes = names(&["a", "b", "c"]);
    let audit = Audit::new(&four(), &classes, 0.0).unwrap();
    let none_wrong = audit.measure(&[0, 1, 2, 0]).unwrap();
    assert_eq!((none_wrong.average_precision, none_wrong.clean_auc), (None, None));
    assert_eq!((none_wrong.flag_precision, none_wrong.flag_recall), (None, None));
    assert_eq!((none_wrong.suggestion_accuracy, none_wrong.noise_true), (None, Some(0.0)));
    let all_wrong = audit.measure(&[1, 0, 1, 2]).unwrap();
    assert_eq!((all_wrong.average_precision, all_wrong.clean_auc), (Some(1.0), None));
    assert_eq!((all_wrong.flag_recall, all_wrong.suggestion_accuracy), (Some(0.0), Some(0.5)));
    let empty = Audit::new(&[], &classes, 0.5).unwrap().measure(&[]).unwrap();
    assert_eq!((empty.average_precision, empty.noise_true, empty.noise_estimated), (None, None, None));
}

/// The definition read aloud: for every hit, the share of hits among all that score no less.
fn literal_average_precision(scores: &[f64], is_hit: &[bool]) -> Option<f64> {
    let (mut sum, mut hits) = (0.0, 0);
    for i in (0..scores.len()).filter(|&i| is_hit[i]) {
        let listed: Vec<usize> = (0..scores.len()).filter(|&j| scores[j] >= scores[i]).collect();
        sum += listed.iter().filter(|&&j| is_hit[j]).count() as f64 / listed.len() as f64;
        hits += 1;
    }
    (hits > 0).then(|| sum / f64::from(hits))
}

/// All pairs of a hit and a miss.
fn literal_auc(scores: &[f64], is_hit: &[bool]) -> Option<f64> {
    let (mut won, mut pairs) = (0.0, 0);
    for i in (0..scores.len()).filter(|&i| is_hit[i]) {
        for j in (0..scores.len()).filter(|&j| !is_hit[j]) {
            won += if scores[i] > scores[j] {
                1.0
            } else if scores[i] == scores[j] {
                0.5
            } else {
                0.0
            };
            pairs += 1;
        }
    }
    (pairs > 0).then(|| won / f64::from(pairs))
}

/// Mean over both extreme orders of equals and all cyclic ones in between: each equal is as often at each place.
fn literal_precision_at(scores: &[f64], is_hit: &[bool], k: usize) -> f64 {
    let share = |i: usize| {
        let above = scores.iter().filter(|&&s| s > scores[i]).count();
        let equal = scores.iter().filter(|&&s| s == scores[i]).count();
        (k.saturating_sub(above).min(equal)) as f64 / equal as f64
    };
    (0..scores.len()).filter(|&i| is_hit[i]).map(share).sum::<f64>() / k as f64
}

fn same(found: Option<f64>, wanted: Option<f64>) -> bool {
    match (found, wanted) {
        (Some(found), Some(wanted)) => (found - wanted).abs() < 1e-12,
        (found, wanted) => found == wanted,
    }
}

proptest! {
    #[test]
    fn measures_are_those_of_their_literal_definitions(
        rows in prop::collection::vec((prop_oneof![(0..5i32).prop_map(f64::from), -1.0..1.0f64, Just(-0.0)], any::<bool>()), 0..40)
    ) {
        let (scores, is_hit): (Vec<f64>, Vec<bool>) = rows.into_iter().unzip();
        prop_assert!(same(average_precision(&scores, &is_hit), literal_average_precision(&scores, &is_hit)));
        prop_assert!(same(area_under_curve(&scores, &is_hit), literal_auc(&scores, &is_hit)));
        for k in 1..=scores.len() {
            prop_assert!(same(precision_at(&scores, &is_hit, k), Some(literal_precision_at(&scores, &is_hit, k))));
        }
    }

    #[test]
    fn an_audit_lists_every_sample_once_in_order(ws in prop::collection::vec((0..4u8, 0..3u8), 0..40)) {
        let verdicts: Vec<Verdict> =
            ws.iter().map(|&(w, t)| verdict(0, 1, f64::from(w) / 4.0, f32::from(t) / 4.0)).collect();
        let audit = Audit::new(&verdicts, &names(&["a", "b"]), FLAG_BELOW).unwrap();
        let key = |i: usize| (ws[i].0, ws[i].1, i);
        let found: Vec<_> = audit.findings().iter().map(|f| key(f.index)).collect();
        let mut wanted: Vec<_> = (0..ws.len()).map(key).collect();
        wanted.sort();
        prop_assert_eq!(found, wanted);
    }
}
