//! The weak view's moves: a crop out of the picture with a black border, and a mirror.

use super::canvas::Scratch;
use crate::Shape;
use crate::draw::Draw;

/// Border on each side of an axis when none is set: an eighth of the length, halves up; 4 for 32 pixels.
pub fn default_border(length: usize) -> usize {
    (length + 4) / 8
}

/// Surrounds the picture with `border` (columns, rows) of black on every side and cuts its own size out of that at a
/// uniform place; then mirrors left and right in half of the cases, if `flip`.
pub(super) fn crop_and_flip(scratch: &mut Scratch, border: (usize, usize), flip: bool, draw: &mut Draw) {
    let offset =
        |border: usize, draw: &mut Draw| draw.below(2 * border as u64 + 1) as isize - border as isize;
    let dx = offset(border.0, draw);
    let dy = offset(border.1, draw);
    super::geometry::translate(scratch, dx as f64, dy as f64, 0);
    if flip && draw.chance(0.5) {
        mirror(scratch);
    }
}

/// Exchanges left and right.
pub(super) fn mirror(scratch: &mut Scratch) {
    let Shape { width, channels, .. } = scratch.shape;
    for row in scratch.front.chunks_exact_mut(width * channels) {
        match channels {
            1 => row.reverse(),
            _ => row.as_chunks_mut::<3>().0.reverse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Purpose;
    use crate::views::Picture;
    use std::collections::HashMap;

    #[test]
    fn every_place_and_both_mirrors_come_equally_often() {
        // One bright pixel in the middle tells the place; its left neighbour tells the mirror.
        let shape = Shape { width: 8, height: 8, channels: 1 };
        let mut pixels = [0; 64];
        (pixels[3 * 8 + 3], pixels[3 * 8 + 4]) = (200, 100);
        let picture = Picture::new(shape, &pixels).unwrap();
        let mut scratch = Scratch::new();
        let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
        let n = 18_000;
        for sample in 0..n {
            scratch.load(picture);
            crop_and_flip(&mut scratch, (1, 1), true, &mut Draw::new(5, Purpose::View, 0, sample));
            *seen.entry(scratch.front.clone()).or_default() += 1;
        }
        assert_eq!(seen.len(), 18, "3 x 3 places, 2 mirrors");
        let expected = n as f64 / 18.0;
        let deviation = (expected * (1.0 - 1.0 / 18.0)).sqrt();
        assert!(seen.values().all(|&count| (count as f64 - expected).abs() < 4.5 * deviation), "{seen:?}");
    }

    #[test]
    fn the_border_is_black_and_an_eighth_of_the_side() {
        assert_eq!([32, 28, 64, 224, 3].map(default_border), [4, 4, 8, 28, 0]);
        let shape = Shape { width: 2, height: 1, channels: 3 };
        let mut scratch = Scratch::new();
        scratch.load(Picture::new(shape, &[1, 2, 3, 4, 5, 6]).unwrap());
        mirror(&mut scratch);
        assert_eq!(scratch.front, [4, 5, 6, 1, 2, 3], "colours stay in order");
    }
}
