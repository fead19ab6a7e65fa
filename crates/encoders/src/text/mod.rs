//! Sentence embeddings: a folder as Sentence Transformers writes it, run forward on the CPU.

mod bert;
mod config;
mod numbers;
pub(crate) mod tokens;
mod weights;

use crate::{Encoder, Error, Result};
use bert::Bert;
use negscale_kernels::Precision;
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokens::Tokens;

/// Tokens that go through the network together, on one thread if there is work for the others.
const GROUP: usize = 384;

/// A sentence encoder of BERT's kind, such as `all-MiniLM-L6-v2`: texts to rows of length 1, near each other where texts mean alike.
///
/// The folder holds `model.safetensors`, `tokenizer.json` and `config.json`; `sentence_bert_config.json` (the longest text) and
/// `1_Pooling/config.json` (mean over tokens, or the first token) count where they are there.
///
/// A text that has more tokens than the network takes (256 for MiniLM) is cut after them; [`truncated`](Self::truncated) counts these.
/// An empty text has a row too. Of a stretch without white space that is longer than 256 KiB the end is not read.
///
/// ```no_run
/// use negscale_encoders::{Encoder, Precision, TextEncoder};
///
/// let encoder = TextEncoder::open("minilm".as_ref(), Precision::F32)?;
/// let texts = ["The screen broke after a week.", "Arrived in time, works well."];
/// let mut rows = vec![0.0; texts.len() * Encoder::<&str>::width(&encoder)];
/// encoder.encode(&texts, &mut rows)?;
/// # Ok::<(), negscale_encoders::Error>(())
/// ```
pub struct TextEncoder {
    name: String,
    tokens: Tokens,
    bert: Bert,
    truncated: AtomicUsize,
}

impl TextEncoder {
    /// Reads a folder. Its name is the encoder's.
    ///
    /// `Precision::F32` agrees with the Python reference to six digits. With `Precision::Bf16` rows are off by less than 1 % of their
    /// length, as with PyTorch's autocast; it is the faster one where [`fast_precision`](negscale_kernels::fast_precision) says so, and much slower
    /// elsewhere.
    ///
    /// # Errors
    /// Says which file is missing or not what it should be, and why.
    pub fn open(folder: &Path, precision: Precision) -> Result<Self> {
        let config = config::Config::open(folder)?;
        let pooling = config::pooling(folder)?;
        let tokens = Tokens::open(&folder.join("tokenizer.json"), config.most_tokens(folder)?)?;
        let bert = weights::read(&folder.join("model.safetensors"), &config, pooling, precision)?;
        if tokens.largest() as usize >= bert.vocabulary() {
            return Err(Error::Weights {
                what: folder.display().to_string(),
                problem: format!(
                    "tokenizer.json has a token {}, but the network knows {}: they belong to different networks",
                    tokens.largest(),
                    bert.vocabulary()
                ),
            });
        }
        let name =
            folder.file_name().map_or_else(|| "text".into(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name, tokens, bert, truncated: AtomicUsize::new(0) })
    }

    /// How many texts were cut since it was opened, because they have more tokens than the network takes.
    pub fn truncated(&self) -> usize {
        self.truncated.load(Relaxed)
    }
}

impl<Text: AsRef<str> + Sync> Encoder<Text> for TextEncoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.bert.width
    }

    fn truncated(&self) -> usize {
        // The one above, which needs no type of texts.
        Self::truncated(self)
    }

    fn encode(&self, items: &[Text], rows: &mut [f32]) -> Result<()> {
        let width = self.bert.width;
        assert!(
            Some(rows.len()) == items.len().checked_mul(width),
            "{} numbers for {} rows of {width}",
            rows.len(),
            items.len()
        );
        let ids = |(item, text): (usize, &Text)| {
            let (ids, cut) =
                self.tokens.ids(text.as_ref()).map_err(|problem| Error::Item { item, problem })?;
            self.truncated.fetch_add(usize::from(cut), Relaxed);
            Ok(ids)
        };
        let texts = items.par_iter().enumerate().map(ids).collect::<Result<Vec<_>>>()?;
        // Groups of about as many tokens. Who comes with whom changes nothing, so they may be what suits the threads.
        let total: usize = texts.iter().map(Vec::len).sum();
        let share = total.div_ceil(rayon::current_num_threads());
        let group = share.div_ceil(share.div_ceil(GROUP).max(1));
        let (mut groups, mut texts, mut rows) = (Vec::new(), texts.as_slice(), rows);
        while !texts.is_empty() {
            let mut tokens = 0;
            let count = texts
                .iter()
                .take_while(|text| {
                    tokens += text.len();
                    tokens <= group
                })
                .count()
                .max(1);
            let (some, others) = texts.split_at(count);
            let (first, last) = std::mem::take(&mut rows).split_at_mut(count * width);
            groups.push((some, first));
            (texts, rows) = (others, last);
        }
        groups.into_par_iter().with_max_len(1).for_each(|(texts, rows)| self.bert.forward(texts, rows));
        Ok(())
    }
}
