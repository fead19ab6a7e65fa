use super::*;
use crate::npy;

fn array(bytes: Vec<u8>, kind: Kind, size: usize, big_endian: bool, shape: &[usize]) -> Result<Array> {
    let element = Element { kind, size, big_endian };
    Array::new(Path::new("a.npy"), None, bytes.into(), element, shape.into(), false)
}

fn first(bytes: &[u8], kind: Kind, big_endian: bool) -> f32 {
    let array = array(bytes.to_vec(), kind, bytes.len(), big_endian, &[1, 1]).unwrap();
    let mut out = [0.0];
    array.into_features().unwrap().read(0, &mut out).unwrap();
    out[0]
}

#[test]
fn every_kind_of_number_is_read_in_both_byte_orders() {
    assert_eq!(first(&1.5f32.to_le_bytes(), Kind::Float, false), 1.5);
    assert_eq!(first(&1.5f32.to_be_bytes(), Kind::Float, true), 1.5);
    assert_eq!(first(&(-2.25f64).to_le_bytes(), Kind::Float, false), -2.25);
    assert_eq!(first(&f16::from_f32(0.5).to_le_bytes(), Kind::Float, false), 0.5);
    assert_eq!(first(&bf16::from_f32(-3.0).to_le_bytes(), Kind::Brain, false), -3.0);
    assert_eq!(first(&(-7i16).to_be_bytes(), Kind::Signed, true), -7.0);
    assert_eq!(first(&[0xFF], Kind::Signed, false), -1.0);
    assert_eq!(first(&[0xFF], Kind::Unsigned, false), 255.0);
    assert_eq!(first(&i64::MIN.to_le_bytes(), Kind::Signed, false), i64::MIN as f32);
    assert_eq!(first(&[2], Kind::Bool, false), 1.0);
}

#[test]
fn fortran_order_gives_the_same_rows() {
    let element = Element { kind: Kind::Unsigned, size: 1, big_endian: false };
    let bytes = vec![1u8, 4, 2, 5, 3, 6];
    let array = Array::new(Path::new("a"), None, bytes.into(), element, vec![2, 3], true).unwrap();
    let mut row = [0.0; 3];
    array.read(1, &mut row).unwrap();
    assert_eq!(row, [4.0, 5.0, 6.0]);
}

#[test]
fn shapes_that_do_not_fit_the_bytes_are_refused_without_overflow() {
    for shape in [&[1usize << 60, 1 << 60][..], &[3, 2], &[1, 2, 1, 9]] {
        let error = array(vec![0; 8], Kind::Float, 4, false, shape).unwrap_err().to_string();
        assert!(error.contains("a.npy") && error.contains("header is wrong"), "{error}");
    }
}

#[test]
fn a_number_that_is_not_finite_is_an_error_with_its_row_and_column() {
    for (bytes, size) in [
        ([1f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat(), 4),
        ([0f64, 1e300].map(f64::to_le_bytes).concat(), 8),
    ] {
        let array = array(bytes, Kind::Float, size, false, &[1, 2]).unwrap();
        let error = array.read(0, &mut [0.0; 2]).unwrap_err().to_string();
        assert!(error.contains("row 0, column 1"), "{error}");
    }
}

#[test]
fn labels_may_be_whole_floats_or_text_but_not_fractions() {
    let whole = array([0f32, 2.0].map(f32::to_le_bytes).concat(), Kind::Float, 4, false, &[2, 1]);
    assert_eq!(whole.unwrap().into_labels().unwrap().words().collect::<Vec<_>>(), ["0", "2"]);
    let text = array(b"cat\0\0dog\0\0".to_vec(), Kind::Text, 5, false, &[2]).unwrap();
    assert_eq!(text.into_labels().unwrap().words().collect::<Vec<_>>(), ["cat", "dog"]);
    let fraction = array(0.5f32.to_le_bytes().to_vec(), Kind::Float, 4, false, &[1]).unwrap();
    assert!(fraction.into_labels().unwrap_err().to_string().contains("row 0"));
    let nothing = array(vec![], Kind::Text, 0, false, &[1 << 60]).unwrap();
    assert!(nothing.into_labels().is_err());
}

fn table(descr: &str, fortran: &str, shape: &str, numbers: &[u8]) -> Result<Array> {
    npy::from_bytes(Path::new("a.npy"), npy::tests::npy(descr, fortran, shape, numbers))
}

#[test]
fn tables_of_labels_have_rows_and_columns_in_either_order() {
    for (fortran, numbers) in [("False", [1, 2, 3, 4, 5, 6]), ("True", [1, 4, 2, 5, 3, 6])] {
        let table = table("'|u1'", fortran, "(2, 3)", &numbers).unwrap();
        assert_eq!(table.label_table().unwrap(), (2, 3));
        assert_eq!(table.label_column(1, 6).unwrap(), [2, 5]);
        assert!(table.label_column(1, 5).unwrap_err().to_string().contains("a.npy, row 1"));
        assert!(table.label_column(3, 9).is_err() && table.read(2, &mut [0.0; 3]).is_err());
    }
    let list = table("'|u1'", "False", "(2,)", &[1, 2]).unwrap();
    assert_eq!(list.label_column(0, 3).unwrap(), [1, 2]);
}

#[test]
fn hostile_tables_of_labels_are_errors() {
    let labels = |bytes| npy::from_bytes(Path::new("a.npy"), bytes)?.label_column(0, 9);
    let whole = npy::tests::npy("'|u1'", "False", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
    let mut long = whole.clone();
    long[8..10].copy_from_slice(&[0xff, 0xff]);
    let mut longer = whole.clone();
    longer[6] = 2;
    longer[8..12].copy_from_slice(&[0xff; 4]);
    let other = |descr, shape, numbers: &[u8]| npy::tests::npy(descr, "False", shape, numbers);
    let mut cases = vec![
        long,
        longer,
        other("'|u1'", "(4294967296, 4294967296)", &[0]),
        other("'|u1'", "(18446744073709551615, 2)", &[0]),
        other("'|u1'", "(18446744073709551615, 0)", &[]),
        other("'|u1'", "(99999999999999999999999,)", &[0]),
        other("'|u1'", "(-1, 2)", &[0]),
        other("'|u1'", "(1, 1, 1)", &[0]),
        other("'|u1'", "()", &[0]),
        other("'|u1'", "(2, 3", &[0; 6]),
        other("'<f8'", "(1,)", &[0; 8]),
        other("'|b1'", "(1,)", &[0]),
        other("'|O'", "(1,)", &[0; 8]),
        other("'|u1', 'shade': (1,)", "(1,)", &[0]),
        [&whole[..], &[7]].concat(),
    ];
    cases.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
    for bytes in cases {
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        assert!(labels(bytes).is_err(), "{shown}");
    }
}

proptest::proptest! {
    #[test]
    fn damaged_tables_of_labels_never_panic(at in 0usize..140, byte: u8, end in 0usize..150) {
        let mut bytes = npy::tests::npy("'|u1'", "False", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
        bytes.truncate(end);
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        if let Ok(table) = npy::from_bytes(Path::new("a.npy"), bytes) {
            for column in 0..7 {
                let _ = table.label_column(column, 6);
            }
        }
    }
}

#[test]
fn every_finite_half_number_is_read_exactly_and_others_not_at_all() {
    let element = Element { kind: Kind::Float, size: 2, big_endian: false };
    for bits in 0..=u16::MAX {
        let (half, mut out) = (f16::from_bits(bits), [0f32]);
        let was_read = element.read_row(&bits.to_le_bytes(), &mut out);
        assert_eq!(was_read, half.is_finite(), "{bits:x}");
        assert!(!was_read || out[0].to_bits() == half.to_f32().to_bits(), "{bits:x}");
    }
}
