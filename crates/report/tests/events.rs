//! TensorBoard events against the bytes of TensorBoard's own writer, and against a decoder that shares no code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_report::{EpochRecord, encode_events, write_events};

fn records() -> Vec<EpochRecord> {
    let mut first = EpochRecord::new(0, 12.5, 0.02);
    first.losses.insert("cross-entropy".into(), 2.25);
    first.test_accuracy = Some(0.5);
    let mut second = EpochRecord::new(300, 11.0, 0.002);
    second.losses.insert("cross-entropy".into(), f64::NAN);
    second.losses.insert("größe".into(), -1e-3);
    second.separation_auc = Some(0.875);
    vec![first, second]
}

#[test]
fn the_bytes_are_those_of_tensorboards_own_writer() {
    // Made once by tests/golden/events.py with tensorboard 2.21.
    let golden = include_bytes!("golden/events.tfevents");
    assert_eq!(encode_events(1_700_000_000, &records()), golden);
}

#[test]
fn an_independent_decoder_finds_every_number() {
    let bytes = encode_events(1_700_000_000, &records());
    let events = frames(&bytes);
    assert_eq!(events.len(), 3);
    assert_eq!(fields(events[0])[1].1, b"brain.Event:2");
    let mut clock = 1_700_000_000.0;
    for (event, record) in events[1..].iter().zip(records()) {
        clock += record.seconds;
        let event = fields(event);
        assert_eq!(f64::from_le_bytes(event[0].1.try_into().unwrap()), clock);
        let step = event.iter().find(|field| field.0 == 2).map_or(0, |field| varint(&mut &field.1[..]));
        assert_eq!(step, record.epoch);
        let found: Vec<(String, f32)> = fields(event.iter().find(|field| field.0 == 5).unwrap().1)
            .iter()
            .map(|value| {
                let value = fields(value.1);
                let tag = String::from_utf8(value[0].1.to_vec()).unwrap();
                (tag, f32::from_le_bytes(value[1].1.try_into().unwrap()))
            })
            .collect();
        assert_eq!(found.len(), record.scalars().len());
        for ((tag, number), (wanted_tag, wanted)) in found.into_iter().zip(record.scalars()) {
            assert_eq!(tag, wanted_tag);
            assert_eq!(number.to_bits(), (wanted as f32).to_bits(), "{tag}");
        }
    }
}

#[test]
fn writing_again_replaces_the_file_and_leaves_nothing_else() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = write_events(folder.path(), 1_700_000_000, "desk/1", &records()[..1]).unwrap();
    assert_eq!(path.file_name().unwrap(), "events.out.tfevents.1700000000.desk-1");
    assert_eq!(write_events(folder.path(), 1_700_000_000, "desk/1", &records()).unwrap(), path);
    assert_eq!(frames(&std::fs::read(&path).unwrap()).len(), 3);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Splits a TFRecord file, checking every checksum bit by bit.
fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(12);
        let length = u64::from_le_bytes(head[..8].try_into().unwrap()) as usize;
        assert_eq!(u32::from_le_bytes(head[8..].try_into().unwrap()), masked_checksum(&head[..8]));
        let (data, rest) = rest.split_at(length);
        let (check, rest) = rest.split_at(4);
        assert_eq!(u32::from_le_bytes(check.try_into().unwrap()), masked_checksum(data));
        found.push(data);
        bytes = rest;
    }
    found
}

fn masked_checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    (!crc).rotate_left(17).wrapping_add(0xa282_ead8)
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Field numbers and raw contents of a protocol buffer.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let length = match key & 7 {
            0 => bytes.iter().position(|b| *b < 0x80).unwrap() + 1,
            1 => 8,
            2 => varint(&mut bytes) as usize,
            5 => 4,
            other => panic!("kind {other}"),
        };
        let (content, rest) = bytes.split_at(length);
        found.push((key >> 3, content));
        bytes = rest;
    }
    found
}
