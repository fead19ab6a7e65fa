//! Depthwise convolutions: every channel with a window of its own.

use crate::lane::{Lane, Numbers, dispatch};

/// Channels of a step.
const STEP: usize = 16;

/// $y_c = \sum_{rs} w_{crs} x_{c,rs} + b_c$ over a square window of 3 or 5, kept between 0 and 6 (ReLU6).
#[derive(Debug, Clone)]
pub struct Depthwise {
    kernel: usize,
    stride: usize,
    channels: usize,
    /// Channels, filled up to whole steps.
    filled: usize,
    /// `weight[((step * kernel + r) * kernel + s) * 16 + c]`: those of a step of channels lie together.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

/// A row of the result: where it comes from and goes to.
struct Row<'a> {
    layer: &'a Depthwise,
    /// Input rows under the window; null where there is padding.
    rows: [*const f32; 5],
    width: usize,
    /// Columns of padding in front.
    before: usize,
    y: *mut f32,
    out: usize,
}

impl Depthwise {
    /// A layer of weights `[channels, kernel, kernel]` and a bias for every channel.
    ///
    /// # Panics
    /// If the kernel is not 3 or 5, the stride 0, or lengths do not fit.
    pub fn new(weight: &[f32], bias: &[f32], kernel: usize, stride: usize) -> Self {
        let channels = bias.len();
        assert!((kernel == 3 || kernel == 5) && stride > 0, "a window of {kernel}, moved by {stride}");
        assert_eq!(weight.len(), channels * kernel * kernel, "windows of {kernel} for {channels} channels");
        let filled = channels.next_multiple_of(STEP);
        let window = kernel * kernel;
        let mut turned = vec![0.0; filled * window];
        for (c, own) in weight.chunks_exact(window).enumerate() {
            for (at, &value) in own.iter().enumerate() {
                turned[(c / STEP * window + at) * STEP + c % STEP] = value;
            }
        }
        let mut filled_bias = bias.to_vec();
        filled_bias.resize(filled, 0.0);
        Self { kernel, stride, channels, filled, weight: turned, bias: filled_bias }
    }

    /// Rows and columns of the window.
    pub fn kernel(&self) -> usize {
        self.kernel
    }

    /// Steps from one result to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Numbers of a pixel.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// A row of results. `rows` are the input rows under the window, of `width` pixels each, none where there is padding; `before` columns of
    /// padding come in front of them, and as many as the window needs behind.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn row(&self, rows: &[Option<&[f32]>], width: usize, before: usize, y: &mut [f32]) {
        assert_eq!(rows.len(), self.kernel, "a row for every row of the window");
        assert!(
            rows.iter().flatten().all(|row| row.len() == width * self.channels),
            "rows of {width} pixels"
        );
        assert!(
            y.len().is_multiple_of(self.channels),
            "{} numbers are no pixels of {}",
            y.len(),
            self.channels
        );
        let mut places = [std::ptr::null(); 5];
        for (place, row) in places.iter_mut().zip(rows) {
            *place = row.map_or(std::ptr::null(), <[f32]>::as_ptr);
        }
        let out = y.len() / self.channels;
        let row = Row { layer: self, rows: places, width, before, y: y.as_mut_ptr(), out };
        // SAFETY: the lengths are right, as was checked.
        unsafe { fill(&row) }
    }
}

dispatch! {
    /// # Safety
    /// The rows have `width` pixels, and there is room for `out`.
    unsafe fn fill = fill_with(row: &Row)
}

#[inline(always)]
unsafe fn fill_with<L: Lane>(row: &Row) {
    // SAFETY: by contract.
    unsafe {
        match row.layer.kernel {
            3 => fill_window::<L, 3>(row),
            _ => fill_window::<L, 5>(row),
        }
    }
}

#[inline(always)]
unsafe fn fill_window<L: Lane, const K: usize>(row: &Row) {
    let Depthwise { stride, channels, filled, .. } = *row.layer;
    let whole = row.rows[..K].iter().all(|place| !place.is_null());
    // Results whose window lies inside the row.
    let first = row.before.div_ceil(stride).min(row.out);
    let last = match (row.width + row.before).checked_sub(K) {
        Some(room) if whole => (room / stride + 1).clamp(first, row.out),
        _ => first,
    };
    for channel in (0..filled).step_by(STEP) {
        let count = (channels - channel).min(STEP);
        // SAFETY: by contract; `weight` and `bias` are filled up to whole steps.
        unsafe {
            let bias = L::load_broad(row.layer.bias.as_ptr().add(channel));
            let weight = row.layer.weight.as_ptr().add(channel * K * K);
            for x in (0..first).chain(last..row.out) {
                edge::<L, K>(row, x, channel, count, weight, bias);
            }
            if count < STEP {
                for x in first..last {
                    edge::<L, K>(row, x, channel, count, weight, bias);
                }
                continue;
            }
            let mut held = [[bias; K]; K];
            for (r, held) in held.iter_mut().enumerate() {
                for (s, held) in held.iter_mut().enumerate() {
                    *held = L::load_broad(weight.add((r * K + s) * STEP));
                }
            }
            for x in first..last {
                let mut sum = bias;
                let at = (x * stride - row.before) * channels + channel;
                for r in 0..K {
                    let from = row.rows[r].add(at);
                    for s in 0..K {
                        sum = L::load_broad(from.add(s * channels)).mul_add(held[r][s], sum);
                    }
                }
                put::<L>(sum, row.y.add(x * channels + channel), STEP);
            }
        }
    }
}

/// A result whose window reaches over the edge, or whose channels do not fill a step: the same sum without what is not there.
///
/// # Safety
/// As for [`fill`]; `weight` and `bias` are those of the step.
#[inline(always)]
unsafe fn edge<L: Lane, const K: usize>(
    row: &Row,
    x: usize,
    channel: usize,
    count: usize,
    weight: *const f32,
    bias: L::Broad,
) {
    let mut sum = bias;
    // SAFETY: only pixels inside the rows are read, and only their existing channels.
    unsafe {
        for r in 0..K {
            let from = row.rows[r];
            if from.is_null() {
                continue;
            }
            for s in 0..K {
                let column = (x * row.layer.stride + s).wrapping_sub(row.before);
                if column < row.width {
                    let from = from.add(column * row.layer.channels + channel);
                    let value = if count == STEP {
                        L::load_broad(from)
                    } else {
                        let high = count.saturating_sub(8);
                        let above = if high > 0 { L::load_part(from.add(8), high) } else { L::splat(0.0) };
                        L::join(L::load_part(from, count.min(8)), above)
                    };
                    sum = value.mul_add(L::load_broad(weight.add((r * K + s) * STEP)), sum);
                }
            }
        }
        put::<L>(sum, row.y.add(x * row.layer.channels + channel), count);
    }
}

/// Keeps sums between 0 and 6 and stores the first `count`.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn put<L: Lane>(sum: L::Broad, to: *mut f32, count: usize) {
    // SAFETY: by contract.
    unsafe {
        let [low, high] = L::split(sum.clamp(L::Broad::splat(0.0), L::Broad::splat(6.0)));
        if count == STEP {
            low.store(to);
            high.store(to.add(8));
        } else {
            low.store_part(to, count.min(8));
            if count > 8 {
                high.store_part(to.add(8), count - 8);
            }
        }
    }
}
