//! Operations that send every 8-bit level to another one: a table of 256 entries per channel, then one pass.

/// A table of levels.
pub(super) type Table = [u8; 256];

/// The table that changes nothing.
fn unchanged() -> Table {
    std::array::from_fn(|level| level as u8)
}

/// Sends every value through the table of its channel.
fn look_up<const C: usize>(pixels: &mut [u8], tables: &[Table; C]) {
    for pixel in pixels.as_chunks_mut::<C>().0 {
        for (value, table) in pixel.iter_mut().zip(tables) {
            *value = table[*value as usize];
        }
    }
}

/// Sends every value of every channel through one table.
pub(super) fn map(pixels: &mut [u8], table: &Table) {
    for value in pixels {
        *value = table[*value as usize];
    }
}

/// How often each level occurs, by channel.
fn count<const C: usize>(pixels: &[u8]) -> [[u32; 256]; C] {
    let mut counts = [[0; 256]; C];
    for pixel in pixels.as_chunks::<C>().0 {
        for c in 0..C {
            counts[c][pixel[c] as usize] += 1;
        }
    }
    counts
}

/// Stretches each channel so that its darkest level becomes 0 and its brightest 255:
/// level i becomes trunc(i k - lo k), k = 255 / (hi - lo). A channel of one level stays.
pub(super) fn autocontrast<const C: usize>(pixels: &mut [u8]) {
    let mut range = [(255u8, 0u8); C];
    for pixel in pixels.as_chunks::<C>().0 {
        for c in 0..C {
            range[c] = (range[c].0.min(pixel[c]), range[c].1.max(pixel[c]));
        }
    }
    let tables = range.map(|(low, high)| {
        if high <= low {
            return unchanged();
        }
        let scale = 255.0 / (high - low) as f64;
        let offset = -(low as f64) * scale;
        // The conversion to u8 truncates towards zero and clips, as the definition asks.
        std::array::from_fn(|level| (level as f64 * scale + offset) as u8)
    });
    look_up(pixels, &tables);
}

/// Spreads the levels of each channel so that they occur about equally often.
///
/// With h(i) the number of pixels of level i and step = (pixels - h(highest level in use)) div 255, level i becomes
/// min(255, (step div 2 + h(0) + ... + h(i-1)) div step). With one level, or step 0, the channel stays.
pub(super) fn equalize<const C: usize>(pixels: &mut [u8]) {
    let total = (pixels.len() / C) as u32;
    let tables = count::<C>(pixels).map(|counts| {
        let highest = counts.iter().rev().copied().find(|&h| h > 0).unwrap_or(0);
        // One level in use: total = highest, so the step is 0 as well.
        let step = (total - highest) / 255;
        if step == 0 {
            return unchanged();
        }
        let mut sum = step / 2;
        counts.map(|h| {
            let level = (sum / step).min(255) as u8;
            sum += h;
            level
        })
    });
    look_up(pixels, &tables);
}

/// Keeps the top `bits` bits of every value.
pub(super) fn posterize(pixels: &mut [u8], bits: u8) {
    let mask = !(0xffu32 >> bits.min(8)) as u8;
    pixels.iter_mut().for_each(|value| *value &= mask);
}

/// Inverts the values that are not below the threshold.
pub(super) fn solarize(pixels: &mut [u8], threshold: f64) {
    map(
        pixels,
        &std::array::from_fn(
            |level| if (level as f64) < threshold { level as u8 } else { 255 - level as u8 },
        ),
    );
}

/// 255 less every value.
pub(super) fn invert(pixels: &mut [u8]) {
    pixels.iter_mut().for_each(|value| *value = 255 - *value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_of_one_level_is_left_alone() {
        let mut pixels = [9, 1, 7].repeat(300);
        let before = pixels.clone();
        autocontrast::<3>(&mut pixels);
        equalize::<3>(&mut pixels);
        assert_eq!(pixels, before);
    }

    #[test]
    fn autocontrast_spans_all_levels_channel_by_channel() {
        let mut pixels = [10, 100, 20, 100, 30, 100];
        autocontrast::<2>(&mut pixels);
        assert_eq!(pixels, [0, 100, 127, 100, 255, 100]);
    }

    #[test]
    fn posterize_keeps_the_top_bits_for_every_number_of_bits() {
        for (bits, expected) in [(0, 0), (1, 0x80), (4, 0xf0), (7, 0xfe), (8, 0xff), (200, 0xff)] {
            let mut pixels = [255];
            posterize(&mut pixels, bits);
            assert_eq!(pixels[0], expected, "{bits} bits");
        }
    }
}
