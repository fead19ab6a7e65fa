//! Damaged copies of good inputs. Copy number `n` is a function of `n` and the good inputs alone.

/// Numbers that file formats trip over, as bytes.
const TRICKY: [&[u8]; 10] = [
    &[0],
    &[0xFF],
    &[0x7F],
    &[0x80],
    &[0, 0, 0, 0],
    &[0xFF; 4],
    &[0xFF; 8],
    &[0, 0, 0, 0x80],
    &[0xFF, 0xFF, 0xFF, 0x7F],
    b"\r\n,\"\t",
];

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `end`; 0 where that is 0.
    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }
}

/// Input `number`: the seeds as they are first, then damaged.
pub fn input(seeds: &[Vec<u8>], number: u64) -> Vec<u8> {
    let whole = usize::try_from(number).ok().and_then(|number| seeds.get(number));
    if let Some(whole) = whole {
        return whole.clone();
    }
    let mut draw = Draw(number);
    let mut bytes = seeds[draw.below(seeds.len())].clone();
    for _ in 0..=draw.below(6) {
        hurt(&mut bytes, seeds, &mut draw);
    }
    bytes
}

/// One damage: a bit, a tricky number, a cut, a piece removed, repeated, or taken from another seed.
fn hurt(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], draw: &mut Draw) {
    let at = draw.below(bytes.len());
    let length = 1 + draw.below(16);
    match draw.below(8) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << draw.below(8),
        2 if !bytes.is_empty() => bytes[at] = draw.next() as u8,
        3 => {
            let tricky = TRICKY[draw.below(TRICKY.len())];
            let end = (at + tricky.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&tricky[..end - at]);
        }
        4 => {
            let tricky = TRICKY[draw.below(TRICKY.len())];
            bytes.splice(at..at, tricky.iter().copied());
        }
        5 => bytes.truncate(at),
        6 => {
            bytes.drain(at..(at + length).min(bytes.len()));
        }
        _ => {
            let other = &seeds[draw.below(seeds.len())];
            let from = draw.below(other.len());
            let piece = &other[from..(from + length).min(other.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
    }
}
