//! Writes a report of made-up but plausible numbers: `cargo run --release -p negscale-report --example sample -- report.html`.

use std::path::Path;

use negscale_report::{
    ConfusionRows, CountMatrix, EpochRecord, Figure, Result, RunReport, Separation, SummaryRow, Suspicious,
    Thumbnail, summarise,
};

const CLASSES: [&str; 10] = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
];
/// For each class the one it is most often taken for.
const ALIKE: [usize; 10] = [6, 3, 4, 0, 2, 7, 0, 9, 6, 7];
/// What each class looks like: seven rows of seven cells.
const SHAPES: [&str; 10] = [
    "##...## ####### ####### .#####. .#####. .#####. .#####.",
    ".#####. .#####. .##.##. .##.##. .##.##. .##.##. .##.##.",
    ".##.##. ####### ####### ####### ####### ####### #.###.#",
    "..#.#.. ..###.. ..###.. ..###.. .#####. .#####. #######",
    "###.### ###.### ###.### ###.### ###.### ###.### #.#.#.#",
    "....... ....... ....##. ...#.## .##.#.# ##.#..# #######",
    "##.#.## ####### ####### #.###.# #.###.# #.###.# ..###..",
    "....... ....... .....## #..#### ####### ####### #######",
    "..###.. .#...#. ####### ####### ####### ####### #######",
    "...###. ...###. ...###. ..####. ####### ####### ##..##.",
];

/// A number in 0..1 that depends on its two arguments only.
fn chance(stream: u64, at: u64) -> f64 {
    let mut mixed = (stream << 40 ^ at).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ mixed >> 30).wrapping_mul(factor);
    }
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn record(epoch: u64) -> EpochRecord {
    let time = epoch as f64;
    let jitter = |stream| (chance(stream, epoch) - 0.5) * 0.02;
    let learnt = 1.0 - (-time / 5.0).exp();
    let mut record = EpochRecord::new(
        epoch,
        3.6 + jitter(1) * 10.0,
        0.02 * 0.5 * (1.0 + (time / 40.0 * std::f64::consts::PI).cos()),
    );
    record.losses.insert("cross-entropy".into(), 2.3 - 0.95 * learnt + jitter(2));
    record.losses.insert("negscale: separation".into(), 0.62 * (-time / 9.0).exp() + 0.11 + jitter(3));
    record.losses.insert("negscale: alignment".into(), 0.35 * (-time / 16.0).exp() + 0.05 + jitter(4) / 2.0);
    record.train_accuracy = Some(0.11 + 0.40 * learnt + time * 0.0009 + jitter(5) / 3.0);
    record.test_accuracy = Some(0.22 + 0.64 * learnt - time * 0.0004 + jitter(6));
    record.validation_accuracy = Some(0.16 + 0.32 * learnt - time * 0.0002 + jitter(7));
    record.fit_clean = Some(0.15 + 0.73 * learnt + jitter(8) / 2.0);
    record.fit_wrong_given = Some(0.05 + time * 0.0019 + jitter(9).abs());
    record.fit_wrong_true = Some(0.14 + 0.66 * learnt - time * 0.001 + jitter(10));
    record.separation_auc = Some(0.5 + 0.44 * learnt + jitter(11) / 4.0);
    record.noise_estimate = Some(0.5 - 0.3 * (-time / 3.0).exp() + jitter(12));
    record.selection_precision = Some(0.58 + 0.34 * learnt + jitter(13));
    record.selection_recall = Some(0.70 + 0.22 * learnt + jitter(14));
    for (name, end) in [("same", 0.82), ("related", 0.31), ("unrelated", 0.04)] {
        record.more.insert(format!("similarity {name}"), 0.55 + (end - 0.55) * learnt + jitter(15) / 2.0);
        let step = 0.02 * (1.2 + end) * (-time / 12.0).exp();
        record.more.insert(format!("step change {name}"), step * (1.0 + jitter(16)));
    }
    record
}

fn picture(class: usize, seed: u64) -> Result<Thumbnail> {
    let shape = SHAPES[class].as_bytes();
    let cell = |row: i32, column: i32| {
        let inside = (0..7).contains(&row) && (0..7).contains(&column);
        f64::from(inside && shape[(row * 8 + column) as usize] == b'#')
    };
    let shade = |at: usize| {
        // Between the cells of the grid the light goes over evenly.
        let (y, x) = ((at / 28) as f64 / 4.0 - 0.5, (at % 28) as f64 / 4.0 - 0.5);
        let (top, left) = (y.floor(), x.floor());
        let row = |down: i32| {
            let (r, c) = (top as i32 + down, left as i32);
            cell(r, c) * (left + 1.0 - x) + cell(r, c + 1) * (x - left)
        };
        let cloth = ((row(0) * (top + 1.0 - y) + row(1) * (y - top)) * 2.2 - 0.5).clamp(0.0, 1.0);
        let light = 0.6 + 0.35 * chance(21, seed) - 0.12 * chance(22, seed * 1000 + at as u64) - 0.02 * x;
        (cloth * light * 255.0).clamp(0.0, 255.0) as u8
    };
    Thumbnail::checked(28, 28, 1, (0..28 * 28).map(shade).collect())
}

fn suspicious(rank: usize) -> Result<Suspicious> {
    let at = rank as u64;
    let truth = (chance(31, at) * 10.0) as usize;
    let given = (truth + 1 + (chance(32, at) * 9.0) as usize) % 10;
    let luck = chance(33, at);
    let (given, suggested) = match luck {
        0.0..0.05 => (truth, ALIKE[truth]),
        0.05..0.12 if ALIKE[truth] != given => (given, ALIKE[truth]),
        _ => (given, truth),
    };
    let index = (chance(34, at) * 10_000.0) as usize;
    Ok(Suspicious {
        index,
        path: Some(format!(
            "train/{}/{index:05}.png",
            CLASSES[given].to_lowercase().replace(['/', ' '], "-")
        )),
        given,
        suggested,
        clean_probability: 0.0004 * (at as f64 + 1.0) * (0.5 + chance(35, at)),
        suggested_probability: 0.999 - 0.0015 * at as f64 * (0.4 + chance(36, at)),
        tree_distance: Some(if ALIKE[given] == suggested {
            1.0
        } else {
            2.0 + (chance(37, at) * 2.0).floor()
        }),
        truth: Some(truth),
        thumbnail: Some(picture(truth, at)?),
    })
}

fn sample() -> Result<RunReport> {
    let records: Vec<EpochRecord> = (0..40).map(record).collect();
    let mut summary = summarise(&records);
    summary.push(SummaryRow::new(
        "Audit precision",
        Figure::Fraction(0.9312),
        "flagged labels that are wrong",
    ));
    summary.push(SummaryRow::new("Audit recall", Figure::Fraction(0.8847), "wrong labels that are flagged"));
    let confusion = |at: usize| match (at / 10, at % 10) {
        (row, column) if row == column => 1000 - 100 - (row as u64 * 17) % 40,
        (row, column) if ALIKE[row] == column => 70 + (row as u64 * 13) % 31,
        (row, column) => ((chance(41, (row * 10 + column) as u64) * 9.0) as u64).saturating_sub(3),
    };
    let noise = |at: usize| if at / 10 == at % 10 { 548 } else { 43 + (chance(42, at as u64) * 14.0) as u64 };
    Ok(RunReport {
        relations: None,
        title: "Fashion-MNIST, half of the labels wrong: cross-entropy + negscale".into(),
        when: "2026-11-16 02:50 UTC".into(),
        settings: "[data]\nname = \"fashion-mnist\"\nnoise = \"sym:0.5\"\n\n[train]\nhost = \"cross-entropy\"\nplugin = \
                   \"negscale\"\nnet = \"cnn-small\"\nepochs = 40\nseed = 1\n\n[negscale]\nlambda = 1.0\nmu = 0.5\n"
            .into(),
        summary,
        records,
        class_names: CLASSES.map(String::from).to_vec(),
        confusion: Some((ConfusionRows::True, CountMatrix::checked(10, (0..100).map(confusion).collect())?)),
        noise: Some(CountMatrix::checked(10, (0..100).map(noise).collect())?),
        ranking: None,
        separation: Some(Separation::Known {
            right: (0..5480).map(|at| (1.0 - chance(51, at).powi(5)) as f32).collect(),
            wrong: (0..4520).map(|at| chance(52, at).powi(4) as f32).collect(),
        }),
        flagged: Some(4_213),
        suspicious: (0..437).map(suspicious).collect::<Result<_>>()?,
        command: "negscale train --data fashion-mnist --noise sym:0.5 --host cross-entropy --plugin negscale --seed 1".into(),
        hardware: "2 cores, AVX2, 8 GiB".into(),
        version: "negscale 0.1.0".into(),
    })
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "report.html".to_owned());
    sample()?.write_html(Path::new(&path))?;
    println!("{path}");
    Ok(())
}
