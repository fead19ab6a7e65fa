//! The small files beside the weights.

use super::bert::Pooling;
use crate::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// `config.json`, as far as it matters.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    pub model_type: String,
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub intermediate_size: usize,
    pub max_position_embeddings: usize,
    pub vocab_size: usize,
    pub type_vocab_size: usize,
    pub layer_norm_eps: f32,
    pub hidden_act: String,
    #[serde(default = "absolute")]
    pub position_embedding_type: String,
}

fn absolute() -> String {
    "absolute".into()
}

/// `sentence_bert_config.json`.
#[derive(Deserialize)]
struct Length {
    max_seq_length: Option<usize>,
}

/// `1_Pooling/config.json`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Modes {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_max_tokens: bool,
    pooling_mode_mean_sqrt_len_tokens: bool,
    pooling_mode_weightedmean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

/// Reads a file of the folder; `None` if there is none.
fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>> {
    let path = folder.join(name);
    let problem = |problem: String| Error::Weights { what: path.display().to_string(), problem };
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| problem(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(problem(error.to_string())),
    }
}

impl Config {
    /// Reads and checks `config.json`.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let problem = |problem: String| Error::Weights { what: path.display().to_string(), problem };
        let config: Self = read(folder, "config.json")?.ok_or_else(|| {
            problem("there is no such file; the folder should hold model.safetensors, tokenizer.json and config.json".into())
        })?;
        let wanted = [
            ("model_type", &config.model_type, "bert"),
            ("hidden_act", &config.hidden_act, "gelu"),
            ("position_embedding_type", &config.position_embedding_type, "absolute"),
        ];
        for (name, found, wanted) in wanted {
            if found != wanted {
                return Err(problem(format!(
                    "{name} is `{found}`, but only `{wanted}` is computed here; export other networks to ONNX"
                )));
            }
        }
        let sizes = [
            ("hidden_size", config.hidden_size),
            ("num_hidden_layers", config.num_hidden_layers),
            ("num_attention_heads", config.num_attention_heads),
            ("intermediate_size", config.intermediate_size),
            ("max_position_embeddings", config.max_position_embeddings),
            ("vocab_size", config.vocab_size),
            ("type_vocab_size", config.type_vocab_size),
        ];
        for (name, size) in sizes {
            // Products of three sizes stay countable.
            if !(1..=1 << 20).contains(&size) {
                return Err(problem(format!("{name} is {size}, which is no size of a network")));
            }
        }
        if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
            return Err(problem(format!(
                "hidden_size {} is not a multiple of num_attention_heads {}",
                config.hidden_size, config.num_attention_heads
            )));
        }
        if !(config.layer_norm_eps >= 0.0 && config.layer_norm_eps < 1.0) {
            return Err(problem(format!("layer_norm_eps is {}", config.layer_norm_eps)));
        }
        Ok(config)
    }

    /// Tokens of a text at most: what `sentence_bert_config.json` says, and not more than there are positions.
    pub fn most_tokens(&self, folder: &Path) -> Result<usize> {
        let length: Option<Length> = read(folder, "sentence_bert_config.json")?;
        let most = length.and_then(|length| length.max_seq_length).unwrap_or(self.max_position_embeddings);
        Ok(most.min(self.max_position_embeddings))
    }
}

/// What `1_Pooling/config.json` says; without it, the mean.
pub(super) fn pooling(folder: &Path) -> Result<Pooling> {
    let Some(modes) = read::<Modes>(folder, "1_Pooling/config.json")? else { return Ok(Pooling::Mean) };
    let others = modes.pooling_mode_max_tokens
        || modes.pooling_mode_mean_sqrt_len_tokens
        || modes.pooling_mode_weightedmean_tokens
        || modes.pooling_mode_lasttoken;
    match (modes.pooling_mode_mean_tokens, modes.pooling_mode_cls_token, others) {
        (true, false, false) => Ok(Pooling::Mean),
        (false, true, false) => Ok(Pooling::First),
        _ => Err(Error::Weights {
            what: folder.join("1_Pooling/config.json").display().to_string(),
            problem: "it should ask for one of pooling_mode_mean_tokens and pooling_mode_cls_token, and for nothing else".into(),
        }),
    }
}
