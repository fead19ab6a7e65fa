//! Scores as bytes: NumPy's file of records.

use super::RowScore;

/// Bytes of a record.
pub(super) const SIZE: usize = 17;

/// One row of a file of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Record {
    pub given: u32,
    pub score: RowScore,
}

impl Record {
    /// Adds its bytes.
    pub fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.score.score.to_le_bytes());
        to.extend_from_slice(&self.score.suggested_probability.to_le_bytes());
        to.extend_from_slice(&self.given.to_le_bytes());
        to.extend_from_slice(&self.score.suggested.to_le_bytes());
        to.push(u8::from(self.score.flag));
    }

    /// From its bytes.
    pub fn read(bytes: &[u8; SIZE]) -> Self {
        let four = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let score = RowScore {
            score: f32::from_le_bytes(four(0)),
            suggested_probability: f32::from_le_bytes(four(4)),
            suggested: u32::from_le_bytes(four(12)),
            flag: bytes[16] != 0,
        };
        Self { given: u32::from_le_bytes(four(8)), score }
    }

    /// Whether it can be one: scores from 0 to 1, classes below `classes`.
    pub fn is_sound(&self, classes: usize) -> bool {
        let unit = 0.0..=1.0;
        unit.contains(&self.score.score)
            && unit.contains(&self.score.suggested_probability)
            && (self.given.max(self.score.suggested) as usize) < classes
    }
}

/// What stands before the records: magic, version 1.0, the header's length, and a dictionary filled up to a multiple of 64 bytes.
pub(super) fn header(rows: u64) -> Vec<u8> {
    let fields = "[('score', '<f4'), ('suggested_probability', '<f4'), ('given', '<u4'), ('suggested', '<u4'), ('flag', '|u1')]";
    let mut text = format!("{{'descr': {fields}, 'fortran_order': False, 'shape': ({rows},), }}");
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_headers_are_numpys() {
        let score = RowScore { score: 0.25, suggested: 7, suggested_probability: 0.75, flag: true };
        let record = Record { given: 1000, score };
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        assert_eq!(Record::read(&bytes.try_into().unwrap()), record);
        assert!(record.is_sound(1001) && !record.is_sound(1000));
        assert!(!Record { score: RowScore { score: f32::NAN, ..score }, ..record }.is_sound(1001));
        for rows in [0, 1, 10_000_000, u64::from(u32::MAX)] {
            let header = header(rows);
            assert_eq!((header.len() % 64, header.last()), (0, Some(&b'\n')));
        }
    }
}
