//! What every key means, in a line.

use super::value::Expected::{
    self, Milestone, Milestones, Momentum, Number, Switch, Text, Texts, Whole, Wholes,
};

/// Name, what is expected, default as text, meaning.
pub(super) type Row = (&'static str, Expected, &'static str, &'static str);

/// Text for a default that is no value.
pub(super) const UNSET: &str = "-";

/// Keys outside tables, in the order in which they are written.
pub(super) const TOP: &[Row] = &[
    ("data", Text, super::DEFAULT_DATA, "data to learn from: a known name (`negscale data list`) or a path"),
    ("data_dir", Text, UNSET, "folder to look in first for known data"),
    (
        "labels",
        Text,
        UNSET,
        "file of labels, for an array or instead of those of the data: .npy, .csv (joined by index, path or id), or .txt with one a line",
    ),
    (
        "header",
        Text,
        UNSET,
        "whether the labels file, or the table where there is none, begins with a header: yes or no; auto as the file tells",
    ),
    ("label_column", Text, UNSET, "column (or array) of the labels"),
    ("truth_column", Text, UNSET, "column (or array) of the true labels, if known; only to judge by"),
    ("image_column", Text, UNSET, "column of the pictures in Parquet"),
    (
        "array",
        Text,
        UNSET,
        "array of the features in .npz and .safetensors, or column of lists of numbers in Parquet",
    ),
    ("feature_columns", Texts, UNSET, "columns of the features in a table; all others without it"),
    ("ignore_columns", Texts, UNSET, "columns of a table that are left out"),
    (
        "id_column",
        Text,
        UNSET,
        "column of ids in a table: no feature, but named in audit.csv; none if there is none",
    ),
    ("test", Text, UNSET, "file or folder to be judged by"),
    ("test_labels", Text, UNSET, "file of labels for the test data"),
    ("class_names", Text, UNSET, "file of class names, one a line"),
    (
        "skip_unreadable",
        Switch,
        "false",
        "leave out pictures that cannot be read (skipped.csv lists them) instead of refusing all",
    ),
    (
        "samples",
        Whole,
        UNSET,
        "use only so many of the training samples, always the same ones (audit.csv then numbers these)",
    ),
    ("side", Whole, UNSET, "pixels a side that pictures are brought to; their own size without it"),
    (
        "noise",
        Text,
        "sym:0.5 for fashion-mnist-subset, else none",
        "label noise laid over the training data: none, sym:R, asym:R, pairflip:R, ins:R, cifarn:worse, file:PATH, ...",
    ),
    ("noise_seed", Whole, "0", "seed of that noise"),
    (
        "tree",
        Text,
        "auto",
        "class tree: auto (built-in if it fits, else learnt), a built-in name, flat, learnt, or a file",
    ),
    ("host", Text, super::DEFAULT_HOST, "training method (`negscale methods`)"),
    ("plugin", Text, super::DEFAULT_PLUGIN, "what is added to its loss: negscale, none, or an ablation"),
    (
        "baseline",
        Text,
        super::DEFAULT_BASELINE,
        "method trained equally long for comparison; none to leave it out",
    ),
    (
        "net",
        Text,
        "auto",
        "network (`negscale methods`); auto: cnn-small up to 40 pixels, resnet-18 above, mlp for features",
    ),
    ("width", Number, "1.0", "factor on the channels of the network"),
    ("hidden", Wholes, "[]", "hidden layers of mlp; empty for one of 512"),
    ("epochs", Whole, "the host's", "passes over the data"),
    ("batch", Whole, "the host's", "samples per batch"),
    ("seed", Whole, "1", "seed of weights, order, views and all else that is drawn in training"),
    ("validation", Number, "0.05", "share of the samples held out, labels as given, to choose an epoch by"),
    ("threads", Whole, "0", "threads that make batches; 0 for as many as there are cores"),
    ("similarity", Switch, UNSET, "true: record the similarity of all pairs of samples after every epoch"),
    ("probe", Whole, UNSET, "samples whose similarity is looked at before and after steps of training"),
    ("probe_steps", Whole, UNSET, "steps of every epoch that are looked at so; 10 without it"),
    ("device", Text, "cpu", "where tensors live: cpu, or a GPU the program was built for"),
];

/// `[optimiser]`.
pub(super) const OPTIMISER: &[Row] = &[
    ("kind", Text, "the host's", "sgd, adam or adam-w"),
    ("lr", Number, "the host's; else sgd 0.02, adam 0.001", "learning rate"),
    ("momentum", Number, "the host's; else 0.9", "sgd: share of the velocity that is kept"),
    ("nesterov", Switch, "the host's; else false", "sgd: look ahead along the velocity"),
    ("beta1", Number, "the host's; else 0.9", "adam: share of the first moment that is kept"),
    ("beta2", Number, "the host's; else 0.999", "adam: share of the second moment that is kept"),
    ("epsilon", Number, "the host's; else 1e-8", "adam: added to the root of the second moment"),
    ("weight_decay", Number, "the host's; else sgd 0.0005, adam 0", "weight decay"),
    ("decay_norms", Switch, "the host's; else true", "whether biases and norms decay too"),
];

/// `[schedule]`.
pub(super) const SCHEDULE: &[Row] = &[
    ("kind", Text, "the host's", "constant, steps, last, cosine, linear or one-cycle"),
    ("warm_up", Whole, "the host's; else 0", "steps of linear warm-up"),
    ("at", Milestones, "the host's; else [0.6]", "steps: when the rate falls"),
    ("epochs", Milestone, "the host's; else 0.2", "last: how many epochs have the smaller rate"),
    ("factor", Number, "the host's; else 0.1", "steps, last: what the rate is multiplied by"),
    ("period", Milestone, "the host's; else all epochs", "cosine: length of the half wave"),
    ("floor", Number, "the host's; else 0", "cosine: the floor, as a share of the rate"),
    ("per_step", Switch, "the host's; else false", "cosine: move at every step and not only between epochs"),
    ("start", Milestone, "the host's; else 0.4", "linear: where the line to zero begins"),
    ("rise", Number, "the host's; else 0.3", "one-cycle: share of the steps that go up"),
    ("start_divisor", Number, "the host's; else 25", "one-cycle: the first rate is the rate divided by this"),
    (
        "end_divisor",
        Number,
        "the host's; else 10000",
        "one-cycle: the last rate is the first divided by this",
    ),
    (
        "momentum",
        Momentum,
        UNSET,
        "linear: momentum from the start of the line on; one-cycle: lowest and highest, as [low, high]",
    ),
];

/// `[negscale]`: what each means; kinds and defaults are those of its settings.
pub(super) const NEGSCALE: &[(&str, &str)] = &[
    ("lambda", "weight of SNOP"),
    ("mu", "weight of DCSA"),
    ("eta_min", "classes at a tree distance from 1 to this are related"),
    ("eta_max", "classes further apart than this are unrelated"),
    ("snop", "false: without SNOP"),
    ("dcsa", "false: without DCSA"),
    ("global", "weight of the global term inside SNOP"),
    ("local", "weight of the local term inside SNOP"),
    ("reduction", "mean or sum over pairs"),
    ("pairs", "unrelated pairs by the tree, or as many at random"),
    ("seed", "seed of the random pairs"),
    ("self_anchor", "whether a pair's own samples may be its anchors in delta"),
    ("delta_gradient", "whether the gradient flows through delta too"),
    (
        "targets",
        "labels that decide the pairs: given, or refurbished (as the method believes them; while it warms up, as given)",
    ),
    ("during_warm_up", "whether it already acts while the host warms up"),
    ("rectify", "whether only what is above 0 in the features counts, as after a ReLU"),
    ("centre", "what is subtracted from features first: none, or class-balanced for features after a ReLU"),
    ("centre_momentum", "share of the old value in the running class means"),
];

/// `[audit]`.
pub(super) const AUDIT: &[Row] = &[
    ("flag_below", Number, "0.5", "labels with a smaller probability of being right are flagged"),
    ("losses", Text, "last", "loss that a label is judged by: last, or the mean of recent epochs"),
    ("recent", Whole, "10", "epochs whose losses are kept"),
];

/// `[audit.mixture]`, as for `[negscale]`.
pub(super) const MIXTURE: &[(&str, &str)] = &[
    ("max_iter", "most rounds of the fit"),
    ("tol", "change of the bound below which the fit stops"),
    ("reg", "added to every variance"),
    ("clean", "which component is clean: that with the smaller or the larger mean"),
];
