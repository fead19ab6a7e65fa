//! Odd names in every form, exact numbers, emphasis.

use super::*;

fn mean(mean: f64, deviation: Option<f64>, count: usize) -> Cell {
    Cell::Mean { mean, deviation, count, form: NumberFormat::percent(2) }
}

fn table(names: [&str; 2]) -> Table {
    let columns = vec![
        Column::new("method", ColumnKind::Text),
        Column::new("sym:0.5", ColumnKind::Mean).best(Best::Largest),
        Column::new("gain", ColumnKind::Interval),
        Column::new("seconds", ColumnKind::Number).best(Best::Smallest),
    ];
    let mut table = Table::new("Accuracy_last", columns).with_note("50 % & more");
    let gain = Cell::Interval {
        value: -0.01,
        ends: Some((-0.025, 0.005)),
        count: 5,
        form: NumberFormat::percent(1),
    };
    table
        .push(vec![
            Cell::text(names[0]),
            mean(0.871, Some(0.0034), 5),
            gain,
            Cell::Number(1.5, NumberFormat::plain(1)),
        ])
        .unwrap();
    let row = vec![
        Cell::text(names[1]),
        mean(0.9, None, 1),
        Cell::Empty,
        Cell::Number(f64::NAN, NumberFormat::plain(1)),
    ];
    table.push(row).unwrap();
    table
}

#[test]
fn text_is_aligned_and_marks_the_best() {
    let wanted = "\
Accuracy_last
method                     sym:0.5                  gain  seconds
-----------------------------------------------------------------
rolr             87.10 ± 0.34 (5)   -1.0 [-2.5, 0.5] (5)      1.5
rolr + negscale         90.00 (1)*                     –        –
50 % & more
";
    assert_eq!(table(["rolr", "rolr + negscale"]).to_text(), wanted);
}

#[test]
fn csv_has_exact_numbers_each_in_a_column_of_its_own() {
    let mut table = table(["a,b", "say \"hi\"\nthere"]);
    let third = 1.0 / 3.0;
    let row = vec![Cell::text(""), mean(third, Some(0.1 + 0.2), 7), Cell::Empty, Cell::Empty];
    table.push(row).unwrap();
    let lines = "method,sym:0.5 mean,sym:0.5 sd,sym:0.5 n,gain,gain low,gain high,gain n,seconds
\"a,b\",0.871,0.0034,5,-0.01,-0.025,0.005,5,1.5
\"say \"\"hi\"\"\nthere\",0.9,,1,,,,,NaN
,0.3333333333333333,0.30000000000000004,7,,,,,
";
    assert_eq!(table.to_csv(), lines);
    assert_eq!("0.3333333333333333".parse(), Ok(third));
}

#[test]
fn a_spreadsheet_finds_no_formula_in_names() {
    for name in ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx", "  =1", "＝1"] {
        let text = table([name, "plain"]).to_csv();
        assert!(text.contains(&format!("'{name}")), "{name:?}: {text}");
    }
    assert!(!table(["a=1", "b-c"]).to_csv().contains('\''));
}

#[test]
fn markdown_keeps_every_sign_and_every_row_on_its_line() {
    let text = table(["a|b\nc", "<script>*x*_y_`z`[l](u)&amp;"]).to_markdown();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert_eq!(rows[1], "| --- | ---: | ---: | ---: |");
    assert!(rows[2].starts_with("| a\\|b c | 87.10 ± 0.34 (5) | -1.0 \\[-2.5, 0.5\\] (5) |"), "{text}");
    assert!(
        rows[3].starts_with("| \\<script\\>\\*x\\*\\_y\\_\\`z\\`\\[l\\](u)\\&amp; | **90.00 (1)** |"),
        "{text}"
    );
    assert!(text.starts_with("**Accuracy\\_last**\n\n") && text.ends_with("\n50 % \\& more\n"), "{text}");
}

#[test]
fn latex_escapes_every_sign_that_means_something() {
    let text = table(["a_b & 5% {x} \\y", "[opt] #1 ~^<>|\"$ --"]).to_latex();
    let first = "a\\_b \\& 5\\% \\{x\\} \\textbackslash{}y & $87.10 \\pm 0.34$ (5) & $-1.0\\ [-2.5, 0.5]$ (5) & $1.5$ \\\\\n";
    let second = "{[}opt{]} \\#1 \\textasciitilde{}\\textasciicircum{}\\textless{}\\textgreater{}\\textbar{}\\textquotedbl{}\\$ {-}{-} & \
                  $\\mathbf{90.00}$ (1) & -- & $\\textrm{--}$ \\\\\n";
    assert!(text.contains(first), "{text}");
    assert!(text.contains(second), "{text}");
    assert!(
        text.contains("\\begin{tabular}{lrrr}\n\\toprule\n") && text.contains("\\caption{Accuracy\\_last}")
    );
    assert!(text.contains("50 \\% \\& more"), "{text}");
}

#[test]
fn a_row_that_does_not_fit_is_refused() {
    let error = table(["a", "b"]).push(vec![Cell::Empty]).unwrap_err().to_string();
    assert!(error.contains("4 columns") && error.contains("1 cells"), "{error}");
}

#[test]
fn a_row_apart_is_never_the_best() {
    let mut table = Table::new("", vec![Column::new("x", ColumnKind::Number).best(Best::Largest)]);
    let cell = |value: f64| vec![Cell::Number(value, NumberFormat::plain(0))];
    table.push(cell(1.0)).unwrap();
    table.push_apart(cell(3.0)).unwrap();
    table.push(cell(2.0)).unwrap();
    let marks: Vec<bool> = table.shown().iter().map(|row| row[0].1).collect();
    assert_eq!(marks, [false, false, true]);
    assert!(table.push_apart(Vec::new()).is_err());
}

#[test]
fn equals_are_both_best_and_a_single_value_is_not() {
    let mut table = Table::new("", vec![Column::new("x", ColumnKind::Number).best(Best::Largest)]);
    table.push(vec![Cell::Number(1.0, NumberFormat::plain(0))]).unwrap();
    assert!(!table.to_markdown().contains("**"));
    table.push(vec![Cell::Number(1.0, NumberFormat::plain(0))]).unwrap();
    table.push(vec![Cell::Number(f64::NAN, NumberFormat::plain(0))]).unwrap();
    assert_eq!(table.to_markdown().matches("**1**").count(), 2);
}

#[test]
fn zero_has_no_sign() {
    assert_eq!(NumberFormat::percent(1).write(-0.000_01).as_deref(), Some("0.0"));
    assert_eq!(NumberFormat::percent(1).write(f64::INFINITY), None);
}
