//! EfficientNet-Lite0 without its classifier (Tan and Le, ICML 2019; the variant without squeeze-and-excitation, with ReLU6).
//!
//! Stem (3x3, stride 2), sixteen blocks, head (1x1), mean over all places. A block widens the channels by a 1x1 convolution, looks around in
//! each by a depthwise one, and narrows them by a 1x1 convolution; where nothing changes in size, its input is added. Every convolution is
//! followed by a batch norm, $\gamma (v - m)/\sqrt{s + 10^{-3}} + \beta$, which is folded into weights and bias, and all but the narrowing by
//! ReLU6. Padding is TensorFlow's: zeros, the odd one behind.
//!
//! A few pictures go through the network at a time. While maps are large, a block makes some rows of its output after another, so that what
//! it widens stays in the caches; small maps of several pictures are taken together, so that weights are read once for all.

use super::resize::{self, SIDE};
use super::weights::State;
use crate::{Encoder, Error, Picture, Result};
use negscale_kernels::inference::{Depthwise, Point};
use rayon::prelude::*;
use std::path::Path;

/// What users call it.
pub const EFFICIENTNET_LITE0: &str = "efficientnet-lite0";
/// Numbers in a row.
const WIDTH: usize = 1280;
/// Pictures that go through the network together.
const GROUP: usize = 8;
/// Pixels of output that a block makes at a time, at least, where there are so many.
const BAND: usize = 128;
/// Maps of at most this side are taken together.
const SMALL: usize = 8;

/// Window, stride, widening, channels, blocks.
pub(super) const STAGES: [(usize, usize, usize, usize, usize); 7] = [
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
];

/// Gives a tensor by its name and shape.
pub(super) type Read<'a> = &'a mut dyn FnMut(&str, &[usize]) -> Result<Vec<f32>>;

/// Pictures to rows of 1,280 numbers.
pub struct EfficientNetLite0 {
    stem: Point,
    blocks: Vec<Block>,
    head: Point,
}

struct Block {
    widen: Option<Point>,
    around: Depthwise,
    narrow: Point,
    adds_input: bool,
}

/// Numbers that begin where a line of the cache does.
#[derive(Default)]
struct Buffer(Vec<f32>);

impl Buffer {
    /// So many of them, with whatever the last user left there.
    fn take(&mut self, length: usize) -> &mut [f32] {
        if self.0.len() < length + 16 {
            self.0 = vec![0.0; length + 16];
        }
        let start = self.0.as_ptr().align_offset(64).min(16);
        &mut self.0[start..start + length]
    }
}

/// Work space of a thread.
#[derive(Default)]
struct Work {
    between: Vec<f32>,
    picture: Buffer,
    windows: Buffer,
    wide: Buffer,
    around: Buffer,
    maps: [Buffer; 2],
    group: [Buffer; 2],
}

impl EfficientNetLite0 {
    /// The network with weights of a file, as `negscale data get efficientnet-lite0` fetches it.
    ///
    /// # Errors
    /// Says what is wrong with the file.
    pub fn open(path: &Path) -> Result<Self> {
        let state = State::open(path)?;
        Self::new(&path.display().to_string(), &mut |name, shape| state.read(name, shape))
    }

    /// The network with the tensors that `read` gives by name and shape.
    pub(super) fn new(what: &str, read: Read) -> Result<Self> {
        let mut unit =
            |conv: String, norm: String, shape: [usize; 4]| folded(what, read, &conv, &norm, shape);
        let (mut weight, bias) = unit("_conv_stem".into(), "_bn0".into(), [32, 3, 3, 3])?;
        // From channels, rows, columns to rows, columns, channels.
        for filter in weight.chunks_exact_mut(27) {
            let turned: Vec<f32> = (0..27).map(|at| filter[at % 3 * 9 + at / 3]).collect();
            filter.copy_from_slice(&turned);
        }
        let stem = Point::new(&weight, &bias, true);
        let mut blocks = Vec::new();
        let mut inputs = 32;
        for (window, stride, widening, outputs, count) in STAGES {
            for first in (0..count).map(|n| n == 0) {
                let (stride, wide, n) = (if first { stride } else { 1 }, inputs * widening, blocks.len());
                let name = |part: &str| format!("_blocks.{n}.{part}");
                let widen = match widening {
                    1 => None,
                    _ => {
                        let (weight, bias) = unit(name("_expand_conv"), name("_bn0"), [wide, inputs, 1, 1])?;
                        Some(Point::new(&weight, &bias, true))
                    }
                };
                let (weight, bias) = unit(name("_depthwise_conv"), name("_bn1"), [wide, 1, window, window])?;
                let around = Depthwise::new(&weight, &bias, window, stride);
                let (weight, bias) = unit(name("_project_conv"), name("_bn2"), [outputs, wide, 1, 1])?;
                let narrow = Point::new(&weight, &bias, false);
                blocks.push(Block { widen, around, narrow, adds_input: stride == 1 && inputs == outputs });
                inputs = outputs;
            }
        }
        let (weight, bias) = unit("_conv_head".into(), "_bn1".into(), [WIDTH, inputs, 1, 1])?;
        Ok(Self { stem, blocks, head: Point::new(&weight, &bias, true) })
    }

    /// The rows of a few pictures.
    fn encode_group(&self, pictures: &[Picture], rows: &mut [f32], work: &mut Work) {
        let Work { between, picture: prepared, windows, wide, around, maps, group } = work;
        let [mut group, mut other] = group.each_mut();
        let large = self.large();
        let (side, channels) = self.map_after(large);
        let size = side * side * channels;
        for (picture, out) in pictures.iter().zip(group.take(pictures.len() * size).chunks_exact_mut(size)) {
            let prepared = prepared.take(SIDE * SIDE * 3);
            resize::prepare(picture, between, prepared);
            let [mut map, mut next] = maps.each_mut();
            let mut side = SIDE / 2;
            self.begin(prepared, windows, map.take(side * side * self.stem.outputs()));
            for (n, block) in self.blocks[..large].iter().enumerate() {
                let (x, to) = (side * side * block.inputs(), block.side_after(side));
                let y = match n + 1 == large {
                    true => &mut *out,
                    false => next.take(to * to * block.narrow.outputs()),
                };
                block.apply(map.take(x), 1, side, y, wide, around);
                side = to;
                std::mem::swap(&mut map, &mut next);
            }
        }
        let mut side = side;
        for block in &self.blocks[large..] {
            let to = block.side_after(side);
            let (x, y) = (side * side * block.inputs(), to * to * block.narrow.outputs());
            let together = (BAND / (to * to)).max(1);
            let x_all = group.take(pictures.len() * x);
            let y_all = other.take(pictures.len() * y);
            for (x_some, y_some) in x_all.chunks(together * x).zip(y_all.chunks_mut(together * y)) {
                block.apply(x_some, x_some.len() / x, side, y_some, wide, around);
            }
            side = to;
            std::mem::swap(&mut group, &mut other);
        }
        let places = side * side;
        let x_all = group.take(pictures.len() * places * self.head.inputs());
        let features = other.take(pictures.len() * places * WIDTH);
        self.head.apply(x_all, None, features);
        for (row, map) in rows.chunks_exact_mut(WIDTH).zip(features.chunks_exact(places * WIDTH)) {
            row.fill(0.0);
            for place in map.chunks_exact(WIDTH) {
                row.iter_mut().zip(place).for_each(|(sum, value)| *sum += value);
            }
            row.iter_mut().for_each(|sum| *sum /= places as f32);
        }
    }

    /// Blocks whose maps are taken one picture after the other.
    fn large(&self) -> usize {
        (1..=self.blocks.len()).find(|&n| self.map_after(n).0 <= SMALL).unwrap_or(self.blocks.len())
    }

    /// Side and channels of the map after so many blocks.
    fn map_after(&self, blocks: usize) -> (usize, usize) {
        self.blocks[..blocks]
            .iter()
            .fold((SIDE / 2, 0), |(side, _), block| (block.side_after(side), block.narrow.outputs()))
    }

    /// The stem: windows of 3 x 3 pixels, two pixels apart, no padding in front and one behind.
    fn begin(&self, picture: &[f32], windows: &mut Buffer, y: &mut [f32]) {
        let side = SIDE / 2;
        let windows = windows.take(side * 27);
        for (row, out) in y.chunks_exact_mut(side * self.stem.outputs()).enumerate() {
            windows.fill(0.0);
            for r in (0..3).filter(|r| 2 * row + r < SIDE) {
                let from = &picture[(2 * row + r) * SIDE * 3..][..SIDE * 3];
                for (x, window) in windows.chunks_exact_mut(27).enumerate() {
                    let pixels = &from[6 * x..(6 * x + 9).min(SIDE * 3)];
                    window[9 * r..9 * r + pixels.len()].copy_from_slice(pixels);
                }
            }
            self.stem.apply(windows, None, out);
        }
    }
}

impl Block {
    fn inputs(&self) -> usize {
        self.widen.as_ref().map_or(self.around.channels(), Point::inputs)
    }

    fn side_after(&self, side: usize) -> usize {
        side.div_ceil(self.around.stride())
    }

    /// The block over the maps of some pictures: of one in bands of rows, of several as wholes.
    fn apply(
        &self,
        x: &[f32],
        pictures: usize,
        side: usize,
        y: &mut [f32],
        wide: &mut Buffer,
        around: &mut Buffer,
    ) {
        let (kernel, stride) = (self.around.kernel(), self.around.stride());
        let (out, channels) = (self.side_after(side), self.around.channels());
        let before = ((out - 1) * stride + kernel).saturating_sub(side) / 2;
        let band = if pictures > 1 { out } else { BAND.div_ceil(out).min(out) };
        // Rows that are kept widened: a ring in which the rows of a band and those under its windows have room.
        let kept = if pictures > 1 { pictures * side } else { ((band - 1) * stride + kernel).min(side) };
        let (row_in, row_wide) = (side * self.inputs(), side * channels);
        let row_out = out * self.narrow.outputs();
        let wide = wide.take(if self.widen.is_some() { kept * row_wide } else { 0 });
        let around = around.take(pictures * band * out * channels);
        let mut widened = 0;
        for first in (0..out).step_by(band) {
            let rows = band.min(out - first);
            if let Some(widen) = &self.widen {
                let needed = match pictures {
                    1 => ((first + rows - 1) * stride + kernel - before).min(side),
                    _ => kept,
                };
                while widened < needed {
                    let slot = widened % kept;
                    let run = (needed - widened).min(kept - slot);
                    let from = &x[widened * row_in..(widened + run) * row_in];
                    widen.apply(from, None, &mut wide[slot * row_wide..(slot + run) * row_wide]);
                    widened += run;
                }
            }
            for (n, to) in
                around[..pictures * rows * out * channels].chunks_exact_mut(out * channels).enumerate()
            {
                let (picture, row) = (n / rows, first + n % rows);
                let mut under = [None; 5];
                for (r, under) in under[..kernel].iter_mut().enumerate() {
                    let at = (row * stride + r).wrapping_sub(before);
                    *under = (at < side).then(|| {
                        let at = picture * side + at;
                        match self.widen {
                            Some(_) => &wide[at % kept * row_wide..][..row_wide],
                            None => &x[at * row_wide..][..row_wide],
                        }
                    });
                }
                self.around.row(&under[..kernel], side, before, to);
            }
            let these = first * row_out..(first + pictures * rows) * row_out;
            let skip = self.adds_input.then(|| &x[these.clone()]);
            self.narrow.apply(&around[..pictures * rows * out * channels], skip, &mut y[these]);
        }
    }
}

/// A convolution's weights and bias with the norm that follows folded into them.
fn folded(what: &str, read: Read, conv: &str, norm: &str, shape: [usize; 4]) -> Result<(Vec<f32>, Vec<f32>)> {
    let outputs = shape[0];
    let mut weight = read(&format!("{conv}.weight"), &shape)?;
    let mut of_norm = |part: &str| read(&format!("{norm}.{part}"), &[outputs]);
    let (gamma, beta) = (of_norm("weight")?, of_norm("bias")?);
    let (mean, variance) = (of_norm("running_mean")?, of_norm("running_var")?);
    if variance.iter().any(|&v| v < 0.0) {
        let problem = format!("`{norm}.running_var` holds negative numbers; it is damaged");
        return Err(Error::Weights { what: what.into(), problem });
    }
    let mut bias = Vec::with_capacity(outputs);
    for (o, filter) in weight.chunks_exact_mut(shape[1..].iter().product()).enumerate() {
        let factor = f64::from(gamma[o]) / (f64::from(variance[o]) + 1e-3).sqrt();
        filter.iter_mut().for_each(|w| *w = (f64::from(*w) * factor) as f32);
        bias.push((f64::from(beta[o]) - f64::from(mean[o]) * factor) as f32);
    }
    Ok((weight, bias))
}

impl Encoder<Picture<'_>> for EfficientNetLite0 {
    fn name(&self) -> &str {
        EFFICIENTNET_LITE0
    }

    fn width(&self) -> usize {
        WIDTH
    }

    fn encode(&self, items: &[Picture<'_>], rows: &mut [f32]) -> Result<()> {
        assert_eq!(rows.len(), items.len() * WIDTH, "a row for every picture");
        for (item, picture) in items.iter().enumerate() {
            let size = picture.width.checked_mul(picture.height).and_then(|n| n.checked_mul(3));
            if size != Some(picture.pixels.len()) || picture.pixels.is_empty() {
                let (width, height, bytes) = (picture.width, picture.height, picture.pixels.len());
                let problem = format!("{bytes} bytes are no picture of {width} x {height} pixels");
                return Err(Error::Item { item, problem });
            }
        }
        // Few pictures are shared among the threads too.
        let group = items.len().div_ceil(rayon::current_num_threads()).clamp(1, GROUP);
        items
            .par_chunks(group)
            .zip(rows.par_chunks_mut(group * WIDTH))
            .for_each_init(Work::default, |work, (some, rows)| self.encode_group(some, rows, work));
        Ok(())
    }
}
