//! Texts to token ids, by the `tokenizers` crate.

use crate::{Error, Result};
use std::path::Path;
use tokenizers::{Encoding, PreTokenizerWrapper, Tokenizer, TruncationDirection};

/// Bytes of a text that are tokenised at a time. A token can stand for any number of bytes (a long word is one unknown token, white space
/// is none), so the end of a long text cannot be cut off beforehand; tokenised piece by piece, it is not reached if nobody needs it.
const PIECE: usize = 1 << 11;
/// The same for tokenisers other than BERT's, of some of which a token may reach over white space: longer than nearly all texts.
const LONG_PIECE: usize = 1 << 16;
/// Bytes of a stretch without white space that are looked at.
const STRETCH: usize = 1 << 18;

/// Token ids of texts, as a network wants them.
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    /// Ids of a text at most, with those that are added.
    most: usize,
    /// Ids that it adds by itself.
    added: usize,
    piece: usize,
}

impl Tokens {
    /// Reads a `tokenizer.json`. Texts are cut after `most` tokens and filled up by nothing, whatever the file says.
    pub fn open(path: &Path, most: usize) -> Result<Self> {
        let problem = |problem: String| Error::Weights { what: path.display().to_string(), problem };
        let bytes = std::fs::read(path).map_err(|error| problem(error.to_string()))?;
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| {
            problem(format!("{error}; it should be a tokenizer.json as Hugging Face writes it"))
        })?;
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| problem(error.to_string()))?;
        let is_bert = matches!(tokenizer.get_pre_tokenizer(), Some(PreTokenizerWrapper::BertPreTokenizer(_)));
        let piece = if is_bert { PIECE } else { LONG_PIECE };
        let empty = tokenizer.encode_fast("", true).map_err(|error| problem(error.to_string()))?;
        let added = empty.len();
        if added == 0 || added >= most {
            return Err(problem(format!(
                "an empty text has {added} tokens, but at least one (such as [CLS]) and less than {most} are needed"
            )));
        }
        Ok(Self { tokenizer, most, added, piece })
    }

    /// The largest id that it can give.
    pub fn largest(&self) -> u32 {
        self.tokenizer.get_vocab(true).into_values().max().unwrap_or(0)
    }

    /// The ids of a text, and whether its end was cut off.
    pub fn ids(&self, text: &str) -> std::result::Result<(Vec<u32>, bool), String> {
        let room = self.most - self.added;
        let (mut parts, mut found, mut rest, mut cut) = (Vec::new(), 0, text, false);
        while !rest.is_empty() && found <= room {
            let (piece, next) = self.split(rest);
            let read = &piece[..piece.floor_char_boundary(STRETCH)];
            cut |= read.len() < piece.len();
            let encoding = self.tokenizer.encode_fast(read, false).map_err(|error| error.to_string())?;
            if !encoding.is_empty() {
                found += encoding.len();
                parts.push(encoding);
            }
            rest = next;
        }
        let mut whole = Encoding::merge(parts, false);
        whole.truncate(room, 0, TruncationDirection::Right);
        whole.take_overflowing();
        let done = self.tokenizer.post_process(whole, None, true).map_err(|error| error.to_string())?;
        Ok((done.get_ids().to_vec(), cut || found > room))
    }

    /// The first piece of a text, and the rest, which begins with white space: no token of BERT reaches over it.
    fn split<'a>(&self, text: &'a str) -> (&'a str, &'a str) {
        let from = text.floor_char_boundary(self.piece);
        let end = text[from..].find(char::is_whitespace).map_or(text.len(), |at| from + at);
        text.split_at(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::Tokenizer;

    const FILE: &str = r###"{"version":"1.0","added_tokens":[{"id":0,"special":true,"content":"[PAD]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false},
        {"id":2,"special":true,"content":"[CLS]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false}],
        "truncation":{"max_length":4,"strategy":"LongestFirst","stride":0},
        "padding":{"strategy":{"Fixed":8},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"},
        "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
        "pre_tokenizer":{"type":"BertPreTokenizer"},
        "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
        "pair":[],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
        "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
        "vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"a":4,"##b":5,"!":6,"e":7,"c":8}}}"###;

    fn tokens(most: usize) -> Tokens {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, FILE).unwrap();
        Tokens::open(&path, most).unwrap()
    }

    #[test]
    fn the_length_is_ours_and_not_that_of_the_file() {
        let tokens = tokens(6);
        assert_eq!(tokens.ids("").unwrap(), (vec![2, 3], false));
        assert_eq!(tokens.ids("AB é!").unwrap(), (vec![2, 4, 5, 7, 6, 3], false));
        assert_eq!(tokens.ids("AB é! c").unwrap(), (vec![2, 4, 5, 7, 6, 3], true));
        assert_eq!(tokens.largest(), 8);
    }

    #[test]
    fn long_texts_in_pieces_have_the_tokens_of_the_whole() {
        let tokens = tokens(256);
        let mut whole = Tokenizer::from_bytes(FILE).unwrap();
        whole.with_padding(None);
        let cut = tokenizers::TruncationParams { max_length: 256, ..Default::default() };
        whole.with_truncation(Some(cut)).unwrap();
        for text in [
            "ab ".repeat(5000),
            format!("{}a{}ab!", " ".repeat(5000), "\u{3000}".repeat(5000)),
            format!("{} ab", "a".repeat(100_000)),
            format!("{}\n e\u{301} \u{301}c", "a\u{301}".repeat(3000)),
            format!("ab{}c [CLS] a[PAD]b", "\0 \u{fffd}".repeat(4000)),
            "!e".repeat(3000),
            "\u{4e00}".repeat(3000),
        ] {
            let wanted = whole.encode_fast(text.as_str(), true).unwrap();
            assert_eq!(tokens.ids(&text).unwrap().0, wanted.get_ids(), "{:?}", &text[..20]);
        }
    }

    #[test]
    fn a_hundred_megabytes_are_no_matter() {
        let tokens = tokens(256);
        for unit in ["a", "ab! ", "\u{301}", "\0"] {
            let text = unit.repeat(100_000_000 / unit.len());
            let (ids, cut) = tokens.ids(&text).unwrap();
            assert!(ids.len() <= 256 && cut, "{unit:?}");
        }
    }

    #[test]
    fn what_is_no_tokeniser_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let open = |most| Tokens::open(&path, most).err().unwrap().to_string();
        assert!(open(9).contains("tokenizer.json cannot be used as an encoder: No such file"), "{}", open(9));
        std::fs::write(&path, "{").unwrap();
        assert!(open(9).contains("should be a tokenizer.json as Hugging Face writes it"), "{}", open(9));
        std::fs::write(&path, FILE).unwrap();
        assert!(open(2).contains("an empty text has 2 tokens"), "{}", open(2));
    }
}
