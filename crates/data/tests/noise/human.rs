use crate::material::{cifar10_names, cifar100_names, numbered, real, real_embeddings, real_labels, vectors};
use negscale_data::Dataset;
use negscale_data::noise::{NoiseContext, apply};

fn context() -> NoiseContext {
    NoiseContext::from_environment()
}

#[test]
fn human_labels_have_their_published_rates() {
    let (Some(_), Some(ten)) = (real("cifar-n"), real_embeddings("cifar10", cifar10_names())) else { return };
    let rates = [
        ("aggre", 9.01),
        ("worse", 40.21),
        ("worst", 40.21),
        ("random1", 17.23),
        ("random2", 18.12),
        ("random3", 17.64),
    ];
    for (name, percent) in rates {
        let noise = apply(&format!("cifarn:{name}").parse().unwrap(), &ten, 5, &context()).unwrap();
        assert!((100.0 * noise.achieved - percent).abs() < 0.005, "{name}: {}", noise.achieved);
        assert!((noise.nominal.unwrap() - noise.achieved).abs() < 3e-4);
        assert_eq!(noise.seed, 0);
    }
    let Some(hundred) = real_embeddings("cifar100", cifar100_names()) else { return };
    let fine = apply(&"cifarn:fine".parse().unwrap(), &hundred, 5, &context()).unwrap();
    assert!((100.0 * fine.achieved - 40.20).abs() < 0.005, "{}", fine.achieved);
    let of = negscale_data::noise::cifar::superclasses_of(hundred.classes()).unwrap();
    let coarse = hundred.given().iter().map(|&label| of[label as usize]).collect();
    let twenty = Dataset::new("coarse", numbered(20), hundred.items().clone(), coarse, None).unwrap();
    let coarse = apply(&"cifarn:coarse".parse().unwrap(), &twenty, 5, &context()).unwrap();
    assert!((100.0 * coarse.achieved - 26.40).abs() < 0.005, "{}", coarse.achieved);
}

#[test]
fn a_data_set_in_another_order_or_size_is_found_out() {
    let (Some(_), Some(mut labels)) = (real("cifar-n"), real_labels("cifar10")) else { return };
    let error = |labels: Vec<u32>, classes| {
        let data = Dataset::new("mine", numbered(classes), vectors(labels.len(), 1), labels, None).unwrap();
        apply(&"cifarn:worse".parse().unwrap(), &data, 0, &context()).unwrap_err().to_string()
    };
    assert!(error(labels[..100].to_vec(), 10).contains("before taking a part"));
    assert!(error(labels.clone(), 100).contains("use `cifarn:fine`"));
    let at = (7..labels.len()).find(|&i| labels[i] != labels[i + 1]).unwrap();
    labels.swap(at, at + 1);
    let message = error(labels, 10);
    assert!(
        message.contains(&format!("item {at} has true class")) && message.contains("2 of 50000 rows"),
        "{message}"
    );
}

#[test]
fn a_missing_or_broken_table_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let data = Dataset::new("mine", numbered(10), vectors(3, 1), vec![1, 2, 3], None).unwrap();
    let context = NoiseContext { folders: vec![folder.path().into()], ..NoiseContext::default() };
    let run = || apply(&"cifarn:aggre".parse().unwrap(), &data, 0, &context);
    let missing = run().unwrap_err().to_string();
    assert!(missing.contains("cifar10n_labels.npy") && missing.contains("NEGSCALE_DATA"), "{missing}");
    let table = |shape: &str, rows: &[[u8; 6]]| {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(rows.iter().flatten());
        std::fs::write(folder.path().join("cifar10n_labels.npy"), bytes).unwrap();
    };
    table("(3, 6)", &[[1, 4, 0, 0, 0, 0], [2, 2, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]]);
    assert_eq!(run().unwrap().labels, [4, 2, 3]);
    table("(3, 6)", &[[1, 14, 0, 0, 0, 0], [2, 2, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0]]);
    assert!(run().unwrap_err().to_string().contains("row 0: label 14 in column 1 is not a class"));
    table("(3, 6)", &[[1; 6], [2; 6]]);
    assert!(run().unwrap_err().to_string().contains("does not fit the"));
    table("(3, 18446744073709551615)", &[]);
    assert!(run().unwrap_err().to_string().contains("does not fit the"));
    table("(2, 6)", &[[1; 6], [2; 6]]);
    assert!(run().unwrap_err().to_string().contains("2 rows of 6 labels"));
}
