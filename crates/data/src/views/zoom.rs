//! Views of contrastive learning (SimCLR): a part of any size, mirrored in half of the cases; and its colours changed.
//!
//! A part has 8 % to 100 % of the area and sides in a proportion from 3:4 to 4:3 (uniform in its logarithm), at a uniform place, and is brought
//! to the picture's size; after ten parts that do not fit, the largest middle one of such proportions. Colours: in four of
//! five cases brightness, contrast, colourfulness (factors from 0.6 to 1.4) and hue (up to a tenth of the circle either way), in an order
//! drawn anew; then grey in one of five. torchvision's `RandomResizedCrop`, `ColorJitter` and `RandomGrayscale` by definition, and Pillow's
//! 8-bit arithmetic.

use super::canvas::Scratch;
use super::{crop, enhance, resize};
use crate::draw::Draw;
use crate::{Image, Result, Shape};

/// Smallest share of the area.
const LEAST_AREA: f64 = 0.08;
/// Widest proportion of the sides.
const PROPORTION: f64 = 4.0 / 3.0;
const TRIES: usize = 10;
/// Factors lie this far around 1.
const STRENGTH: f64 = 0.4;
/// Hue moves up to this part of its circle.
const HUE: f64 = 0.1;

/// A part of the picture: left, top, width, height.
fn draw_part(shape: Shape, draw: &mut Draw) -> [usize; 4] {
    let (width, height) = (shape.width as f64, shape.height as f64);
    for _ in 0..TRIES {
        let area = width * height * draw.within(LEAST_AREA, 1.0);
        let proportion = draw.within(-PROPORTION.ln(), PROPORTION.ln()).exp();
        let (w, h) = ((area * proportion).sqrt().round(), (area / proportion).sqrt().round());
        if w >= 1.0 && h >= 1.0 && w <= width && h <= height {
            let (w, h) = (w as usize, h as usize);
            let left = draw.below((shape.width - w + 1) as u64) as usize;
            let top = draw.below((shape.height - h + 1) as u64) as usize;
            return [left, top, w, h];
        }
    }
    let w = width.min((height * PROPORTION).round()).max(1.0) as usize;
    let h = height.min((width * PROPORTION).round()).max(1.0) as usize;
    [(shape.width - w) / 2, (shape.height - h) / 2, w, h]
}

/// A part of any size in place of the picture, mirrored in half of the cases, if `flip`.
pub(super) fn zoom(scratch: &mut Scratch, flip: bool, draw: &mut Draw) -> Result<()> {
    let shape = scratch.shape;
    let [left, top, width, height] = draw_part(shape, draw);
    let row = shape.width * shape.channels;
    let rows = scratch.front.chunks_exact(row).skip(top).take(height);
    let pixels = rows.flat_map(|row| &row[left * shape.channels..(left + width) * shape.channels]);
    let part = Image { shape: Shape { width, height, ..shape }, pixels: pixels.copied().collect() };
    scratch.front = resize::fit(part, shape, resize::Fit::Stretch)?.pixels;
    if flip && draw.chance(0.5) {
        crop::mirror(scratch);
    }
    Ok(())
}

/// Changes colours, and takes them away at times.
pub(super) fn recolour(scratch: &mut Scratch, draw: &mut Draw) {
    match scratch.shape.channels {
        1 => recolour_of::<1>(&mut scratch.front, draw),
        _ => recolour_of::<3>(&mut scratch.front, draw),
    }
}

fn recolour_of<const C: usize>(pixels: &mut [u8], draw: &mut Draw) {
    if draw.chance(0.8) {
        let mut factor = || draw.within(1.0 - STRENGTH, 1.0 + STRENGTH) as f32;
        let factors = [factor(), factor(), factor()];
        let hue = draw.within(-HUE, HUE);
        for which in draw.permutation(4) {
            match which {
                0 => enhance::brightness(pixels, factors[0]),
                1 => enhance::contrast::<C>(pixels, factors[1]),
                2 => enhance::colour::<C>(pixels, factors[2]),
                _ => turn_hue::<C>(pixels, hue),
            }
        }
    }
    if draw.chance(0.2) {
        enhance::colour::<C>(pixels, 0.0);
    }
}

/// Moves the hue by a part of its circle; grey pictures have none.
pub(super) fn turn_hue<const C: usize>(pixels: &mut [u8], by: f64) {
    if C < 3 {
        return;
    }
    let by = (by * 255.0) as i32 as u8;
    for pixel in pixels.as_chunks_mut::<C>().0 {
        let [hue, saturation, value] = to_hsv([pixel[0], pixel[1], pixel[2]]);
        pixel[..3].copy_from_slice(&to_rgb([hue.wrapping_add(by), saturation, value]));
    }
}

/// Hue, saturation and value, each in a byte, rounded down.
fn to_hsv(rgb: [u8; 3]) -> [u8; 3] {
    let [r, g, b] = rgb;
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most == least {
        return [0, 0, most];
    }
    let range = f32::from(most - least);
    let saturation = range / f32::from(most);
    let [r_off, g_off, b_off] = rgb.map(|c| f32::from(most - c) / range);
    let sector = if r == most {
        b_off - g_off
    } else if g == most {
        2.0 + f64::from(r_off) as f32 - b_off
    } else {
        4.0 + f64::from(g_off) as f32 - r_off
    };
    let hue = (f64::from(sector) / 6.0 + 1.0) % 1.0;
    [(hue as f32 as f64 * 255.0) as u8, (f64::from(saturation) * 255.0) as u8, most]
}

/// Back from hue, saturation and value.
fn to_rgb([hue, saturation, value]: [u8; 3]) -> [u8; 3] {
    if saturation == 0 {
        return [value; 3];
    }
    let at = f64::from(hue) * 6.0 / 255.0;
    let (sector, within) = (at.floor(), (at - at.floor()) as f32);
    let share = f64::from(f32::from(saturation) / 255.0);
    let (most, within) = (f64::from(value), f64::from(within));
    let level = |part: f64| (most * (1.0 - part)).round() as u8;
    let (p, q, t) = (level(share), level(share * within), level(share * (1.0 - within)));
    match sector as i32 % 6 {
        0 => [value, t, p],
        1 => [q, value, p],
        2 => [p, value, t],
        3 => [p, q, value],
        4 => [t, p, value],
        _ => [value, p, q],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Purpose;
    use crate::views::Picture;

    #[test]
    fn hue_turns_as_pillow_turns_it() {
        // Pixels, and what Pillow 13 makes of them by HSV with the hue byte moved by 12 and by -25 (torchvision's adjust_hue).
        let golden: [([u8; 3], [u8; 3], [u8; 3]); 32] = [
            ([171, 206, 5], [119, 206, 6], [206, 119, 6]),
            ([206, 120, 131], [206, 130, 120], [206, 120, 183]),
            ([161, 73, 250], [211, 74, 250], [74, 90, 250]),
            ([13, 71, 98], [13, 49, 98], [13, 98, 73]),
            ([146, 104, 33], [146, 134, 33], [146, 36, 33]),
            ([11, 0, 12], [12, 0, 10], [4, 0, 12]),
            ([38, 255, 48], [38, 255, 104], [161, 255, 38]),
            ([167, 192, 60], [132, 192, 60], [192, 138, 60]),
            ([72, 111, 67], [67, 111, 74], [98, 111, 67]),
            ([249, 45, 229], [249, 46, 175], [146, 46, 249]),
            ([204, 216, 29], [152, 216, 30], [216, 117, 30]),
            ([100, 160, 126], [100, 160, 142], [110, 160, 100]),
            ([170, 173, 169], [170, 173, 170], [172, 173, 170]),
            ([15, 245, 142], [15, 245, 204], [26, 245, 15]),
            ([231, 69, 92], [231, 85, 70], [231, 70, 191]),
            ([225, 47, 16], [225, 105, 17], [225, 17, 105]),
            ([95, 173, 31], [58, 173, 31], [173, 165, 31]),
            ([222, 87, 58], [222, 131, 58], [222, 58, 124]),
            ([139, 229, 226], [139, 207, 229], [139, 229, 173]),
            ([223, 78, 4], [223, 138, 4], [223, 4, 56]),
            ([199, 181, 197], [199, 181, 192], [190, 181, 199]),
            ([0, 9, 128], [27, 0, 128], [0, 84, 128]),
            ([85, 111, 238], [100, 86, 238], [86, 204, 238]),
            ([52, 135, 83], [52, 135, 105], [72, 135, 52]),
            ([0, 0, 0], [0, 0, 0], [0, 0, 0]),
            ([255, 255, 255], [255, 255, 255], [255, 255, 255]),
            ([255, 0, 0], [255, 72, 0], [255, 0, 144]),
            ([0, 255, 0], [0, 255, 72], [150, 255, 0]),
            ([0, 0, 255], [72, 0, 255], [0, 150, 255]),
            ([1, 0, 0], [1, 0, 0], [1, 0, 1]),
            ([10, 10, 11], [10, 10, 11], [10, 11, 11]),
            ([254, 255, 255], [254, 255, 255], [254, 255, 254]),
        ];
        for (pixel, forth, back) in golden {
            for (by, wanted) in [(12.3 / 255.0, forth), (-25.2 / 255.0, back)] {
                let mut ours = pixel;
                turn_hue::<3>(&mut ours, by);
                assert_eq!(ours, wanted, "{pixel:?} by {by}");
            }
        }
        let mut grey = [17u8, 200];
        turn_hue::<1>(&mut grey, 0.1);
        assert_eq!(grey, [17, 200]);
    }

    #[test]
    fn parts_lie_inside_and_have_every_size() {
        for shape in [(32, 32), (5, 40), (1, 1), (28, 28)] {
            let shape = Shape { width: shape.0, height: shape.1, channels: 1 };
            let (mut areas, n) = (Vec::new(), 4000);
            for sample in 0..n {
                let [left, top, width, height] =
                    draw_part(shape, &mut Draw::new(1, Purpose::View, 0, sample));
                assert!(width >= 1 && height >= 1);
                assert!(left + width <= shape.width && top + height <= shape.height);
                areas.push((width * height) as f64 / (shape.width * shape.height) as f64);
            }
            if shape.width == 32 {
                let mean = areas.iter().sum::<f64>() / n as f64;
                // Uniform from 0.08 to 1, large parts a little rarer because they may not fit.
                assert!((0.45..0.56).contains(&mean), "{mean}");
                assert!(areas.iter().any(|&a| a < 0.1) && areas.iter().any(|&a| a > 0.9));
            }
        }
    }

    #[test]
    fn a_part_of_one_colour_stays_of_that_colour_and_some_pictures_lose_theirs() {
        let shape = Shape { width: 9, height: 7, channels: 3 };
        let pixels = [200u8, 30, 90].repeat(63);
        let mut scratch = Scratch::new();
        let mut grey = 0;
        for sample in 0..1000 {
            let draw = &mut Draw::new(2, Purpose::View, 0, sample);
            scratch.load(Picture::new(shape, &pixels).unwrap());
            zoom(&mut scratch, true, draw).unwrap();
            assert_eq!(scratch.front, pixels);
            recolour(&mut scratch, draw);
            assert_eq!(scratch.front.len(), pixels.len());
            let first = [scratch.front[0], scratch.front[1], scratch.front[2]];
            assert!(scratch.front.chunks(3).all(|pixel| pixel == first));
            grey += u32::from(first[0] == first[1] && first[1] == first[2]);
        }
        assert!((150..250).contains(&grey), "{grey}");
    }
}
