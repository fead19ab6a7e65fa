//! Writes a report that is hard on a page: names that look like markup or never end, one epoch, many classes, samples
//! without pictures: `cargo run --release -p negscale-report --example odd -- odd.html`.

use std::path::Path;

use negscale_report::{
    ConfusionRows, CountMatrix, EpochRecord, Figure, Result, RunReport, Separation, SummaryRow, Suspicious,
    Thumbnail, summarise,
};

const HOSTILE: &str = "<script>alert(1)</script>";
const CLASSES: usize = 60;

/// Names of every awkward kind, in turn.
fn name(class: usize) -> String {
    match class % 6 {
        0 => HOSTILE.to_owned(),
        1 => format!("{}{class}", "Donaudampfschifffahrtsgesellschaft".repeat(3)),
        2 => {
            format!("a class {class} whose name goes on and on, as names from a catalogue of goods often do")
        }
        3 => format!("\"><img src=x onerror=alert({class})>"),
        4 => format!("鳥の名前{class}"),
        _ => format!("اسم {class}"),
    }
}

fn suspicious(rank: usize) -> Result<Suspicious> {
    let (given, suggested) = (rank % 6, (rank + 1) % 6);
    let picture =
        |width: u32, height: u32| Thumbnail::checked(width, height, 1, vec![200; (width * height) as usize]);
    Ok(Suspicious {
        index: rank * 1_000_003,
        path: Some(format!("{}/{rank}.png", "folder-within-folder/".repeat(6))),
        given,
        suggested,
        clean_probability: if rank == 0 { f64::NAN } else { 0.5 },
        suggested_probability: 1.0,
        tree_distance: None,
        truth: (!rank.is_multiple_of(4)).then_some(rank % 3),
        thumbnail: match rank % 3 {
            0 => None,
            1 => Some(picture(64, 3)?),
            _ => Some(picture(1, 1)?),
        },
    })
}

fn odd() -> Result<RunReport> {
    let mut record = EpochRecord::new(0, 100_000.0, 1e-7);
    for term in 0..11 {
        record.losses.insert(name(term), 1234.5 * term as f64);
    }
    record.test_accuracy = Some(1.0);
    record.more.insert(format!("similarity {HOSTILE}"), -1.0);
    record.separation_auc = Some(f64::NAN);
    let records = vec![record];
    let mut summary = summarise(&records);
    summary.push(SummaryRow::new(name(1), Figure::Fraction(0.5), name(2)));
    let mix = |at: usize| ((at * 7919) % 97) as u64 * 1_000_000;
    Ok(RunReport {
        relations: None,
        title: format!("{HOSTILE} {}", name(1)),
        when: "some day".into(),
        settings: format!("{HOSTILE}\nname = \"{}\"\n", name(2).repeat(4)),
        summary,
        records,
        class_names: (0..CLASSES).map(name).collect(),
        confusion: Some((
            ConfusionRows::Given,
            CountMatrix::checked(CLASSES, (0..CLASSES * CLASSES).map(mix).collect())?,
        )),
        noise: Some(CountMatrix::checked(6, (0..36).map(mix).collect())?),
        ranking: None,
        separation: Some(Separation::Unknown(vec![0.5; 9])),
        flagged: None,
        suspicious: (0..13).map(suspicious).collect::<Result<_>>()?,
        command: format!("negscale train --data '{}' --seed 1", name(2).repeat(3)),
        hardware: name(1),
        version: name(3),
    })
}

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "odd.html".to_owned());
    odd()?.write_html(Path::new(&path))?;
    println!("{path}");
    Ok(())
}
