use super::*;
use crate::Items;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

fn idx(axes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, axes.len() as u8];
    axes.iter().for_each(|axis| bytes.extend(axis.to_be_bytes()));
    bytes.extend(values);
    bytes
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Three pictures of 2 x 1 for training, one for testing.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, bytes: &[u8]| std::fs::write(folder.path().join(file), bytes).unwrap();
    write(FILES[0], &idx(&[3, 1, 2], &[1, 2, 3, 4, 5, 6]));
    write(FILES[1], &idx(&[3], &[0, 9, 4]));
    write(FILES[2], &idx(&[1, 1, 2], &[7, 8]));
    write(FILES[3], &idx(&[1], &[2]));
    folder
}

fn replaced(file: &str, bytes: &[u8]) -> Result<Splits> {
    let folder = folder();
    std::fs::remove_file(folder.path().join(file.trim_end_matches(".gz"))).unwrap();
    std::fs::write(folder.path().join(file), bytes).unwrap();
    mnist(folder.path())
}

#[test]
fn plain_and_gzipped_files_give_the_same() {
    let plain = mnist(folder().path()).unwrap().train;
    assert_eq!(plain.given(), [0, 9, 4]);
    let Items::Images(store) = plain.items() else { panic!("pictures") };
    assert_eq!(store.load(1).unwrap().pixels, [3, 4]);
    assert_eq!(store.shape().unwrap(), Shape { width: 2, height: 1, channels: 1 });
    let images = gz(&idx(&[3, 1, 2], &[1, 2, 3, 4, 5, 6]));
    let packed = replaced("train-images-idx3-ubyte.gz", &images).unwrap().train;
    assert_eq!(plain.fingerprint().unwrap(), packed.fingerprint().unwrap());
}

#[test]
fn broken_files_are_errors_that_name_the_file() {
    let whole = idx(&[3, 1, 2], &[1, 2, 3, 4, 5, 6]);
    let packed = gz(&whole);
    let huge = u32::MAX;
    let mut cases: Vec<Vec<u8>> = vec![
        idx(&[4, 1, 2], &[1, 2, 3, 4, 5, 6]),
        idx(&[2, 1, 2], &[1, 2, 3, 4, 5, 6]),
        idx(&[huge, huge, huge], &[0; 6]),
        idx(&[huge, huge, 1], &[0; 6]),
        idx(&[0, 1, 2], &[]),
        idx(&[3, 0, 2], &[]),
        idx(&[1, 1, 9000], &[0; 9000]),
        idx(&[3], &[1, 2, 3]),
    ];
    cases.extend(cases.clone().iter().map(|bytes| gz(bytes)));
    cases.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
    cases.extend((0..packed.len()).map(|end| packed[..end].to_vec()));
    for bytes in cases {
        let name =
            if bytes.starts_with(&[0x1f]) { "train-images-idx3-ubyte.gz" } else { "train-images-idx3-ubyte" };
        let message = replaced(name, &bytes).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_gzipped_bomb_is_not_unpacked() {
    // 64 MiB of zeros behind a header that tells six bytes: at most one more is unpacked.
    let mut bomb = idx(&[3, 1, 2], &[]);
    bomb.resize(64 << 20, 0);
    let message = replaced("train-images-idx3-ubyte.gz", &gz(&bomb)).unwrap_err().to_string();
    assert!(message.contains("more bytes than the 22"), "{message}");
    // A header that tells more than the file could ever hold is refused before anything is allocated.
    let message = replaced("train-images-idx3-ubyte.gz", &gz(&idx(&[60_000, 28, 28], &[0; 99])))
        .unwrap_err()
        .to_string();
    assert!(message.contains("47040016"), "{message}");
}

#[test]
fn labels_out_of_range_or_of_another_number_are_errors() {
    let message = replaced(FILES[1], &idx(&[3], &[0, 10, 4])).unwrap_err().to_string();
    assert!(
        message.contains("train-labels-idx1-ubyte, record 1") && message.contains("label 10"),
        "{message}"
    );
    let message = replaced(FILES[3], &idx(&[2], &[0, 1])).unwrap_err().to_string();
    assert!(message.contains("2 labels") && message.contains("1 images"), "{message}");
    assert!(replaced(FILES[3], &[]).unwrap_err().to_string().contains(FILES[3]));
}

#[test]
fn mnist_and_fashion_mnist_are_not_taken_for_one_another() {
    let folder = folder();
    let (_, first) = FIRST_LABELS[1];
    std::fs::write(folder.path().join(FILES[0]), idx(&[8, 1, 1], &[0; 8])).unwrap();
    std::fs::write(folder.path().join(FILES[1]), idx(&[8], &first.map(|label| label as u8))).unwrap();
    assert_eq!(fashion_mnist(folder.path()).unwrap().train.classes()[9], "Ankle boot");
    assert!(mnist(folder.path()).unwrap_err().to_string().contains("labels of `fashion-mnist`"));
    assert!(read("kmnist", folder.path(), &MNIST).is_ok());
}

proptest::proptest! {
    #[test]
    fn damaged_headers_never_panic(at in 0usize..22, byte: u8, gzipped: bool) {
        let mut bytes = idx(&[3, 1, 2], &[1, 2, 3, 4, 5, 6]);
        if gzipped {
            bytes = gz(&bytes);
        }
        bytes[at] = byte;
        let _ = replaced("train-images-idx3-ubyte.gz", &bytes);
    }
}
