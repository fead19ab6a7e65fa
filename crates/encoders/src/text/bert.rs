//! BERT (Devlin et al., 2019) run forward: token ids in, one row a text out.
//!
//! Of a text with ids $t_1 \dots t_n$, in widths $d$ and heads $h$:
//! $$x_i = N(W_{t_i} + P_i + T_0), \qquad a = \mathrm{attention}(Qx, Kx, Vx), \qquad y = N(x + Oa), \qquad x' = N(y + F_2\,\mathrm{gelu}(F_1 y))$$
//! with word, position and type embeddings $W$, $P$, $T$, affine maps $Q, K, V, O, F_1, F_2$ and layer norms $N$ of their own in each layer. The row of the text is
//! the mean of the last $x_i$ (or the first of them), with length 1.
//!
//! Tokens of several texts lie one after the other, and only attention knows where a text ends: nothing is filled up, so nothing is
//! computed that is thrown away, and no text has a part in the numbers of another.

use super::numbers::{Heads, attend, gelu, norm, unit_mean};
use negscale_kernels::Precision;
use negscale_kernels::conv::Packed;

/// An affine map.
pub(super) struct Affine {
    pub weight: Packed,
    pub bias: Vec<f32>,
}

impl Affine {
    pub fn new(weight: &[f32], bias: Vec<f32>, inputs: usize, precision: Precision) -> Self {
        Self { weight: Packed::new(weight, [bias.len(), inputs], precision), bias }
    }

    fn forward<'a>(
        &self,
        x: &[f32],
        skip: Option<&[f32]>,
        y: &'a mut Vec<f32>,
        rows: usize,
    ) -> &'a mut [f32] {
        // What is there is overwritten: only what is new is set to 0.
        y.resize(rows * self.bias.len(), 0.0);
        self.weight.forward(x, &self.bias, skip, y);
        y
    }
}

/// Scale and shift of a layer norm.
pub(super) struct Norm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

/// One layer.
pub(super) struct Layer {
    /// Queries, keys and values, in this order.
    pub attention: Affine,
    pub output: Affine,
    pub output_norm: Norm,
    pub wide: Affine,
    pub narrow: Affine,
    pub narrow_norm: Norm,
}

/// What a text's row is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The first token.
    First,
}

/// The network.
pub(super) struct Bert {
    pub words: Vec<f32>,
    /// With the embedding of type 0, which all tokens have, added.
    pub positions: Vec<f32>,
    pub norm: Norm,
    pub layers: Vec<Layer>,
    pub width: usize,
    pub heads: usize,
    pub epsilon: f32,
    pub pooling: Pooling,
}

/// Tokens whose wide rows are computed at a time, so that these stay in the second-level cache.
const TOGETHER: usize = 96;

/// Memory that one group after the other uses.
#[derive(Default)]
struct Room {
    x: Vec<f32>,
    y: Vec<f32>,
    heads: Vec<f32>,
    attended: Vec<f32>,
    wide: Vec<f32>,
    scores: Vec<f32>,
}

thread_local! {
    static ROOM: std::cell::Cell<Option<Box<Room>>> = const { std::cell::Cell::new(None) };
}

impl Bert {
    /// Tokens that have words and positions.
    pub fn vocabulary(&self) -> usize {
        self.words.len() / self.width
    }

    /// Writes the row of every text into `rows`. Ids are below [`Self::vocabulary`], and texts have at least one and not more than there
    /// are positions.
    pub fn forward(&self, texts: &[Vec<u32>], rows: &mut [f32]) {
        // Taken and put back: the pool may have this thread work on another group in between, which then has a room of its own.
        let mut room = ROOM.take().unwrap_or_default();
        self.forward_in(&mut room, texts, rows);
        ROOM.set(Some(room));
    }

    fn forward_in(&self, room: &mut Room, texts: &[Vec<u32>], rows: &mut [f32]) {
        let Room { x, y, heads, attended, wide, scores } = room;
        let width = self.width;
        x.clear();
        for text in texts {
            for (&id, position) in text.iter().zip(self.positions.chunks_exact(width)) {
                let word = &self.words[id as usize * width..][..width];
                x.extend(word.iter().zip(position).map(|(w, p)| w + p));
            }
        }
        let tokens = x.len() / width;
        norm(x, &self.norm.weight, &self.norm.bias, self.epsilon);
        for layer in &self.layers {
            let heads = layer.attention.forward(x, None, heads, tokens);
            attended.resize(tokens * width, 0.0);
            let mut first = 0;
            for text in texts {
                let sizes = Heads { tokens: text.len(), heads: self.heads, size: width / self.heads };
                let last = first + text.len();
                let to = &mut attended[first * width..last * width];
                attend(&heads[first * 3 * width..last * 3 * width], sizes, to, scores);
                first = last;
            }
            let y = layer.output.forward(attended, Some(x), y, tokens);
            norm(y, &layer.output_norm.weight, &layer.output_norm.bias, self.epsilon);
            for (y, x) in y.chunks(TOGETHER * width).zip(x.chunks_mut(TOGETHER * width)) {
                let wide = layer.wide.forward(y, None, wide, y.len() / width);
                gelu(wide);
                layer.narrow.weight.forward(wide, &layer.narrow.bias, Some(y), x);
            }
            norm(x, &layer.narrow_norm.weight, &layer.narrow_norm.bias, self.epsilon);
        }
        let mut first = 0;
        for (text, row) in texts.iter().zip(rows.chunks_exact_mut(width)) {
            let last = first + if self.pooling == Pooling::Mean { text.len() } else { 1 };
            unit_mean(&x[first * width..last * width], row);
            first += text.len();
        }
    }
}
