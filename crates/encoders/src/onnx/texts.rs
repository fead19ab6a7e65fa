//! Networks that take token ids.

use super::{Network, OnnxSettings, inputs, listed, load, problem};
use crate::text::tokens::Tokens;
use crate::{Encoder, Result};
use rten::{NodeId, Value, ValueOrView};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Inputs that are known, and what is put into them for every token; ids by themselves.
const KNOWN: [(&str, Option<i32>); 3] =
    [("input_ids", None), ("attention_mask", Some(1)), ("token_type_ids", Some(0))];

/// A network in an ONNX file that takes the tokens of a text: `input_ids` and, if it wants them, `attention_mask` and `token_type_ids`, each
/// texts x tokens. `tokenizer.json` lies beside the file.
///
/// A text with more tokens than the settings allow is cut after them. The numbers of the output are left as they are.
pub struct OnnxTexts {
    network: Network,
    tokens: Tokens,
    inputs: Vec<(NodeId, Option<i32>)>,
    truncated: AtomicUsize,
}

impl OnnxTexts {
    /// Reads an `.onnx` file and the `tokenizer.json` beside it, and runs the network once. The file's name is the encoder's.
    ///
    /// # Errors
    /// Says why the files cannot be used.
    pub fn open(path: &Path, settings: &OnnxSettings) -> Result<Self> {
        let model = load(path)?;
        let mut found = Vec::new();
        for input in inputs(&model) {
            let Some((_, constant)) = KNOWN.iter().find(|(name, _)| *name == input.name) else {
                let known = listed(KNOWN.iter().map(|(name, _)| *name));
                return Err(problem(
                    path,
                    format!("it takes an input {}, but only {known} are known", input.name),
                ));
            };
            if input.shape.is_some_and(|shape| !matches!(shape[..], [None | Some(1), None])) {
                let wanted =
                    "texts x tokens, both free (dynamic_axes or dynamic_shapes of torch.onnx.export)";
                return Err(problem(path, format!("its input {} should be {wanted}", input.name)));
            }
            found.push((input.node, *constant));
        }
        if found.iter().all(|(_, constant)| constant.is_some()) {
            return Err(problem(path, "a network for texts takes input_ids, and this one does not"));
        }
        let tokens = Tokens::open(&path.with_file_name("tokenizer.json"), settings.most_tokens)?;
        let (ids, _) = tokens.ids("").map_err(|error| problem(path, error))?;
        let trial = values(&found, &ids).map_err(|error| problem(path, error))?;
        let network = Network::new(path, model, settings, trial)?;
        Ok(Self { network, tokens, inputs: found, truncated: AtomicUsize::new(0) })
    }

    /// How many texts were cut since it was opened, because they have more tokens than the settings allow.
    pub fn truncated(&self) -> usize {
        self.truncated.load(Relaxed)
    }
}

fn values(
    inputs: &[(NodeId, Option<i32>)],
    ids: &[u32],
) -> std::result::Result<Vec<(NodeId, ValueOrView<'static>)>, String> {
    let value = |&(node, constant): &(NodeId, Option<i32>)| {
        let numbers = ids.iter().map(|&id| constant.unwrap_or(id as i32)).collect();
        let value: Value = Value::from_shape([1, ids.len()], numbers).map_err(|error| error.to_string())?;
        Ok((node, value.into()))
    };
    inputs.iter().map(value).collect()
}

impl<Text: AsRef<str> + Sync> Encoder<Text> for OnnxTexts {
    fn name(&self) -> &str {
        &self.network.name
    }

    fn width(&self) -> usize {
        self.network.width
    }

    fn truncated(&self) -> usize {
        // The one above, which needs no type of texts.
        Self::truncated(self)
    }

    fn encode(&self, items: &[Text], rows: &mut [f32]) -> Result<()> {
        self.network.encode(items, rows, |text| {
            let (ids, cut) = self.tokens.ids(text.as_ref())?;
            self.truncated.fetch_add(usize::from(cut), Relaxed);
            values(&self.inputs, &ids)
        })
    }
}
