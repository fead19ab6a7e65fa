//! What a value may be, and saying so when it is not.

use toml::Value;

/// What is expected of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Text.
    Text,
    /// A whole number, 0 or larger.
    Whole,
    /// A finite number.
    Number,
    /// A finite number that is kept as written, because with and without a point may mean shares and whole epochs.
    AsWritten,
    /// `true` or `false`.
    Switch,
    /// A list of whole numbers.
    Wholes,
    /// A list of texts.
    Texts,
    /// A list.
    List,
    /// Epochs: a whole number, or a share of all with a point.
    Milestone,
    /// A list of those.
    Milestones,
    /// A number, or a list of two.
    Momentum,
    /// A noise rate: a number, or a word for where it comes from.
    Rate,
    /// A whole number, a share, or `auto`.
    Auto,
}

impl Expected {
    /// By name and default of a setting.
    pub(super) fn of(name: &str, default: &Value) -> Self {
        match default {
            Value::String(_) if name == "rate" => Self::Rate,
            Value::String(word) if word == "auto" && name != "tap" => Self::Auto,
            Value::Integer(_) => Self::Whole,
            Value::Float(_) => Self::AsWritten,
            Value::Boolean(_) => Self::Switch,
            Value::Array(_) => Self::List,
            Value::String(_) | Value::Datetime(_) | Value::Table(_) => Self::Text,
        }
    }

    /// As a person would say it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Text => "a string, such as \"abc\"",
            Self::Whole => "a whole number, 0 or larger",
            Self::Number | Self::AsWritten => "a number, such as 0.5",
            Self::Switch => "true or false",
            Self::Wholes => "a list of whole numbers, such as [256, 128]",
            Self::Texts => "a list of strings, such as [\"a\", \"b\"]",
            Self::List => "a list, such as [1, 2]",
            Self::Milestone => "a whole number of epochs, or a share of all epochs such as 0.5",
            Self::Milestones => "a list of epochs or of shares of all epochs, such as [0.5, 0.75]",
            Self::Auto => "\"auto\", a whole number of epochs, or a share of all epochs such as 0.5",
            Self::Rate => "\"estimate\", \"known\", or a number such as 0.4",
            Self::Momentum => "a number such as 0.9, or for one-cycle two such as [0.85, 0.95]",
        }
    }

    /// The value in the form in which it is kept (a number with a point where one is expected), if it is what is expected.
    pub(super) fn take(self, value: Value) -> Option<Value> {
        let all = |items: &[Value], inner: Self| items.iter().all(|item| inner.take(item.clone()).is_some());
        match (self, &value) {
            (Self::Text, Value::String(_)) | (Self::Switch, Value::Boolean(_)) => Some(value),
            (Self::Auto, Value::String(word)) => (word == "auto").then_some(value),
            (Self::Whole | Self::Milestone | Self::Auto, Value::Integer(number)) => {
                (*number >= 0).then_some(value)
            }
            (Self::AsWritten, Value::Integer(_)) => Some(value),
            (Self::Rate, Value::String(word)) => {
                matches!(word.as_str(), "estimate" | "known").then_some(value)
            }
            (Self::Number | Self::Momentum | Self::Rate, Value::Integer(number)) => {
                Some(Value::Float(*number as f64))
            }
            (
                Self::Number | Self::AsWritten | Self::Milestone | Self::Momentum | Self::Rate | Self::Auto,
                Value::Float(number),
            ) => number.is_finite().then_some(value),
            (Self::List, Value::Array(_)) => Some(value),
            (Self::Texts, Value::Array(items)) => all(items, Self::Text).then_some(value),
            (Self::Wholes, Value::Array(items)) => all(items, Self::Whole).then_some(value),
            (Self::Milestones, Value::Array(items)) => all(items, Self::Milestone).then_some(value),
            (Self::Momentum, Value::Array(items)) => {
                (items.len() == 2 && all(items, Self::Number)).then_some(value)
            }
            _ => None,
        }
    }
}

/// A value as a person would say it.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string \"{text}\""),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Boolean(switch) => switch.to_string(),
        Value::Datetime(date) => format!("the date {date}"),
        Value::Array(_) => format!("the list {value}"),
        Value::Table(_) => "a table".into(),
    }
}
