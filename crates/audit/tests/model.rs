//! A model of an audit is the same after it was a file, judges rows by models that did not see them, and foreign files are refused.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy knows test functions, but not those that they call

use negscale_audit::crossfit::{
    AboutModel, AuditModel, CrossFitSettings, FrozenAudit, Rows, SampleEstimate, cross_fit_in,
};
use negscale_audit::shards::{RowScore, RowScorer, Sample, SampleSettings};
use negscale_audit::{Predictions, Ranking};
use tempfile::TempDir;

const DIM: usize = 4;

/// Numbers around 0, the same in every run.
fn noise(at: u64) -> f32 {
    let hash = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((hash >> 40) as f32 / (1 << 24) as f32 - 0.5) * 2.0
}

/// Three clouds, of which every seventh label is wrong.
fn data(rows: u64) -> (Vec<f32>, Vec<u32>) {
    let value = |row: u64, column: u64| {
        let centre = if row % 3 == column { 2.0 } else { 0.0 };
        centre + noise(row * 8 + column) + noise(row * 8 + column + 1_000_003)
    };
    let values = (0..rows).flat_map(|row| (0..DIM as u64).map(move |column| value(row, column)));
    let given = (0..rows).map(|row| ((row + u64::from(row % 7 == 0)) % 3) as u32);
    (values.collect(), given.collect())
}

struct Fitted {
    model: AuditModel,
    sample: Sample,
    rows: Vec<u64>,
    predictions: Predictions,
    ranking: Ranking,
}

fn fit(values: &[f32], given: &[u32]) -> Fitted {
    let settings = SampleSettings { rows: 400, at_least: 20, folds: 4, seed: 3 };
    let sample = Sample::new(given, 3, settings).unwrap();
    let rows: Vec<u64> =
        (0..given.len() as u64).filter(|&row| sample.contains(row, given[row as usize])).collect();
    let some: Vec<f32> =
        rows.iter().flat_map(|&row| values[row as usize * DIM..][..DIM].iter().copied()).collect();
    let labels: Vec<u32> = rows.iter().map(|&row| given[row as usize]).collect();
    let folds: Vec<usize> = rows.iter().map(|&row| sample.fold(row) as usize).collect();
    let settings = CrossFitSettings { folds: 4, neighbours: 0, ..CrossFitSettings::new(rows.len(), 3, 1) };
    let fit =
        cross_fit_in(&Rows::new(&some, DIM).unwrap(), &labels, 3, &folds, &settings, &|_| true).unwrap();
    let classes = ["cat", "=dog", "hen \"small\",\n"].map(str::to_owned).to_vec();
    let ranking = Ranking::by(&fit.model, &classes).unwrap();
    let about = AboutModel {
        classes,
        sample: sample.clone(),
        cut_off: ranking.audit.cut_off(),
        estimate: SampleEstimate::new(&ranking.estimate, ranking.audit.flagged()),
        settings: serde_json::json!({ "seed": 1, "share": 0.1 }),
        version: "1".into(),
    };
    let predictions = fit.predictions.clone();
    let model = AuditModel::new(FrozenAudit::new(fit).unwrap(), about).unwrap();
    Fitted { model, sample, rows, predictions, ranking }
}

fn scores(model: &AuditModel, values: &[f32], ids: &[u64], given: &[u32]) -> Vec<RowScore> {
    let mut out = Vec::new();
    model.score(values, ids, given, &mut out).unwrap();
    out
}

#[test]
fn a_model_is_the_same_to_the_bit_after_it_was_a_file() {
    let (values, given) = data(900);
    let model = fit(&values, &given).model;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("audit.safetensors");
    model.save(&path).unwrap();
    let again = AuditModel::load(&path).unwrap();
    assert!(again == model);
    let ids: Vec<u64> = (0..900).collect();
    assert_eq!(scores(&again, &values, &ids, &given), scores(&model, &values, &ids, &given));
    let bytes = std::fs::read(&path).unwrap();
    again.save(&path).unwrap();
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[test]
fn sampled_rows_are_judged_as_in_the_fit_by_models_that_did_not_see_them() {
    let (values, given) = data(900);
    let Fitted { model, sample, rows, predictions, ranking } = fit(&values, &given);
    let ids: Vec<u64> = (0..900).collect();
    let found = scores(&model, &values, &ids, &given);
    assert_eq!(predictions.len(), rows.len());
    let mut flags = 0;
    for finding in ranking.audit.findings() {
        let row = found[rows[finding.index] as usize];
        assert!((f64::from(row.score) - finding.verdict.score).abs() < 1e-3, "{row:?} {finding:?}");
        flags += usize::from(row.flag == finding.flag);
    }
    assert!(flags + 2 >= rows.len(), "{flags} of {}", rows.len());
    // Rows of no fold but their own are judged by its models: the id decides, whatever the row.
    let other = (0..).find(|&id| sample.fold(id) != sample.fold(rows[0])).unwrap();
    let row = &values[rows[0] as usize * DIM..][..DIM];
    let label = [given[rows[0] as usize]];
    assert_ne!(scores(&model, row, &[rows[0]], &label), scores(&model, row, &[other], &label));
    // Most wrong labels are flagged, inside of the sample and outside.
    for is_in in [true, false] {
        let wrong: Vec<u64> =
            (0..900).filter(|row| row % 7 == 0 && rows.binary_search(row).is_ok() == is_in).collect();
        let flagged = wrong.iter().filter(|&&row| found[row as usize].flag).count();
        assert!(flagged * 10 > wrong.len() * 7, "{flagged} of {}", wrong.len());
    }
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let (values, given) = data(900);
    let model = fit(&values, &given).model;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("audit.safetensors");
    model.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        AuditModel::load(&path).err().map_or_else(String::new, |error| error.to_string())
    };
    for keep in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        let said = said(&whole[..keep]);
        assert!(said.contains("audit.safetensors") && said.contains("fit it again"), "{said}");
    }
    let mut bytes = whole.clone();
    // The last number becomes NaN.
    bytes.iter_mut().rev().take(4).for_each(|byte| *byte = 0xff);
    assert!(said(&bytes).contains("damaged"));
    let foreign =
        safetensors::serialize(Vec::<(String, safetensors::tensor::TensorView)>::new(), None).unwrap();
    assert!(said(&foreign).contains("not a model of an audit: give the folder"));
    let text = |bytes: &[u8], from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    assert!(said(&text(&whole, "format\\\":1", "format\\\":9")).contains("form 9"));
    assert!(said(&text(&whole, "pool.weights", "pool.weighty")).contains("`pool.weights` is missing"));
    std::fs::remove_file(&path).unwrap();
    assert!(AuditModel::load(&path).is_err());
}
