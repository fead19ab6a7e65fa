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
    ("data", Text, super::DEFAULT_DATA, "training data: a known dataset (`negscale data list`) or a path"),
    ("data_dir", Text, UNSET, "folder to search first for known datasets"),
    (
        "labels",
        Text,
        UNSET,
        "labels file, for data without labels or to replace them: .npy, .csv (matched by index, path or id), or .txt with one per line",
    ),
    (
        "header",
        Text,
        UNSET,
        "whether the labels file (or, without one, the table) has a header line: yes, no, or auto to detect it",
    ),
    ("label_column", Text, UNSET, "column (or array) with the labels"),
    (
        "label_columns",
        Texts,
        UNSET,
        "columns (or arrays) with labels by several annotators instead: the label is their majority vote, and blank cells are no votes",
    ),
    (
        "truth_column",
        Text,
        UNSET,
        "column (or array) with the true labels, if known; used for evaluation only",
    ),
    (
        "source_column",
        Text,
        UNSET,
        "column (or array) that says where labels come from, such as a camera or a site: not a feature; audits count wrong labels by it",
    ),
    (
        "text_column",
        Text,
        UNSET,
        "column of a table that holds texts, of which audits make rows of numbers by an encoder",
    ),
    ("image_column", Text, UNSET, "column with the images in Parquet"),
    (
        "array",
        Text,
        UNSET,
        "array with the features in .npz and .safetensors, or the list column with them in Parquet",
    ),
    ("feature_columns", Texts, UNSET, "columns with the features in a table; all others if not set"),
    ("ignore_columns", Texts, UNSET, "columns of a table to ignore"),
    (
        "id_column",
        Text,
        UNSET,
        "column with ids in a table: not a feature, but shown in audit.csv; none if no column is an id",
    ),
    ("test", Text, UNSET, "file or folder of test data"),
    ("test_labels", Text, UNSET, "labels file for the test data"),
    ("class_names", Text, UNSET, "file with class names, one per line"),
    (
        "skip_unreadable",
        Switch,
        "false",
        "skip images that cannot be read (skipped.csv lists them) instead of stopping with an error",
    ),
    (
        "samples",
        Whole,
        UNSET,
        "use only this many training samples, always the same ones (indices in audit.csv then count these)",
    ),
    ("side", Whole, UNSET, "resize images to this many pixels per side; their own size if not set"),
    (
        "noise",
        Text,
        "sym:0.5 for fashion-mnist-subset, else none",
        "label noise added to the training data: none, sym:R, asym:R, pairflip:R, ins:R, cifarn:worse, file:PATH, ...",
    ),
    ("noise_seed", Whole, "0", "random seed of that noise"),
    (
        "tree",
        Text,
        "auto",
        "class tree: auto (built-in if it fits, else learnt), a built-in name, learnt, flat, unrelated (all of them), a file; permuted:SEED[:TREE]",
    ),
    ("host", Text, super::DEFAULT_HOST, "training method (`negscale methods`)"),
    (
        "plugin",
        Text,
        super::DEFAULT_PLUGIN,
        "plug-in loss: none, negscale, or an ablation (`negscale methods`)",
    ),
    (
        "baseline",
        Text,
        super::DEFAULT_BASELINE,
        "method trained for as many epochs for comparison, without plug-in; or none",
    ),
    (
        "net",
        Text,
        "auto",
        "network (`negscale methods`); auto: cnn-small up to 40 pixels, resnet-18 above, mlp for features",
    ),
    ("width", Number, "1.0", "factor on the channels of the network"),
    (
        "hidden",
        Wholes,
        "[]",
        "sizes of the hidden layers of mlp (empty: one of 512) and mlp-bottleneck (empty: 256, 128)",
    ),
    (
        "classifier",
        Text,
        UNSET,
        "last layer: linear (trained), or tree (fixed class vectors by the class tree, of which only the scale is trained). linear if not set",
    ),
    (
        "precision",
        Text,
        "auto",
        "how products are taken: f32, bf16 (rounded factors, f32 sums and weights), or auto: bf16 where this CPU is fast at it",
    ),
    ("epochs", Whole, "the host's", "number of epochs"),
    ("batch", Whole, "the host's", "samples per batch"),
    ("seed", Whole, "1", "random seed of training: weights, order, views and all other draws"),
    (
        "validation",
        Number,
        "0.05",
        "share of the samples held out, with labels as given, to select the best epoch",
    ),
    ("threads", Whole, "0", "threads that load batches; 0: as many as there are cores"),
    (
        "scan_every",
        Whole,
        UNSET,
        "look at all training samples after every so many epochs only, and after the last: saves time; what the host itself needs is not affected. 1 if not set",
    ),
    ("similarity", Switch, UNSET, "true: record the similarity of all pairs of samples after every epoch"),
    ("probe", Whole, UNSET, "number of samples whose similarity is measured before and after training steps"),
    ("probe_steps", Whole, UNSET, "number of steps per epoch that are measured this way; 10 if not set"),
    (
        "device",
        Text,
        "cpu",
        "device to compute on: cpu, or a GPU that the program was built for, such as cuda or cuda:1",
    ),
];

/// `[optimiser]`.
pub(super) const OPTIMISER: &[Row] = &[
    ("kind", Text, "the host's", "sgd, adam or adam-w"),
    ("lr", Number, "the host's; else sgd 0.02, adam 0.001", "learning rate"),
    ("momentum", Number, "the host's; else 0.9", "sgd: momentum"),
    ("nesterov", Switch, "the host's; else false", "sgd: Nesterov momentum"),
    ("beta1", Number, "the host's; else 0.9", "adam: decay rate of the first moment"),
    ("beta2", Number, "the host's; else 0.999", "adam: decay rate of the second moment"),
    ("epsilon", Number, "the host's; else 1e-8", "adam: added to the root of the second moment"),
    ("weight_decay", Number, "the host's; else sgd 0.0005, adam 0", "weight decay"),
    (
        "decay_norms",
        Switch,
        "the host's; else true",
        "whether weight decay also applies to biases and norm layers",
    ),
];

/// `[schedule]`.
pub(super) const SCHEDULE: &[Row] = &[
    ("kind", Text, "the host's", "constant, steps, last, cosine, linear or one-cycle"),
    ("warm_up", Whole, "the host's; else 0", "steps of linear warm-up"),
    ("at", Milestones, "the host's; else [0.6]", "steps: epochs (or shares of all) at which the rate drops"),
    ("epochs", Milestone, "the host's; else 0.2", "last: how many of the last epochs have the smaller rate"),
    ("factor", Number, "the host's; else 0.1", "steps, last: what the rate is multiplied by"),
    (
        "period",
        Milestone,
        "the host's; else all epochs",
        "cosine: epochs from the full rate down to the floor",
    ),
    ("floor", Number, "the host's; else 0", "cosine: lowest rate, as a share of the full one"),
    (
        "per_step",
        Switch,
        "the host's; else false",
        "cosine: update the rate at every step instead of every epoch",
    ),
    ("start", Milestone, "the host's; else 0.4", "linear: when the linear decay to zero starts"),
    ("rise", Number, "the host's; else 0.3", "one-cycle: share of the steps with a rising rate"),
    ("start_divisor", Number, "the host's; else 25", "one-cycle: the first rate is lr divided by this"),
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
        "linear: momentum from the start of the decay on; one-cycle: lowest and highest, as [low, high]",
    ),
];

/// `[negscale]`: what each means; kinds and defaults are those of its settings.
pub(super) const NEGSCALE: &[(&str, &str)] = &[
    ("lambda", "weight of SNOP"),
    ("mu", "weight of DCSA"),
    ("eta_min", "classes at a tree distance from 1 to this are related"),
    ("eta_max", "classes further apart than this are unrelated"),
    ("snop", "false: leave SNOP out"),
    ("dcsa", "false: leave DCSA out"),
    ("global", "weight of the global term inside SNOP"),
    ("local", "weight of the local term inside SNOP"),
    ("reduction", "mean or sum over pairs"),
    ("pairs", "SNOP's unrelated pairs chosen by the tree, or as many at random"),
    ("delta_pairs", "unrelated pairs that delta looks at: by the tree, or as many at random"),
    ("seed", "seed of the random pairs"),
    ("similarity", "in the local term and DCSA: cosine, or half for (1 + cosine) / 2"),
    (
        "local_shape",
        "unrelated pairs in the local term: square (all), or one-sided (only those above -1 / (classes - 1))",
    ),
    (
        "local_divisor",
        "with means, the local term is divided by the number of pairs, or like the global one (entries)",
    ),
    (
        "confidence",
        "a sample's confidence: that of its prediction, or the probability that its label is clean",
    ),
    ("self_anchor", "whether a pair's own samples may be its anchors in delta"),
    ("delta_gradient", "whether the gradient flows through delta too"),
    ("delta_quantile", "delta takes this quantile of a class's similarities; 1 is the largest"),
    ("delta_features", "features that delta is made from: of the batch, or of the epoch's start"),
    (
        "anchor",
        "weight of the anchor that holds class means of unrelated classes where they were after warm-up",
    ),
    ("anchor_momentum", "share of the old value in the anchor's running class means"),
    ("exclusion", "weight of the loss that keeps probability off classes unrelated to the label"),
    ("balance", "share of the host's gradient that the plug-in's is scaled to; 0: as the weights make it"),
    (
        "targets",
        "labels that define the pairs: given, or refurbished (as the method corrects them; during warm-up, as given)",
    ),
    ("during_warm_up", "whether the plug-in also acts during the host's warm-up"),
    (
        "posterior",
        "whether labels that the method guesses are weighed by how often wrong labels stand in that relation to the label given",
    ),
    ("rectify", "whether features are rectified first (ReLU)"),
    ("centre", "what is subtracted from features first: none, or class-balanced for features after a ReLU"),
    ("centre_momentum", "share of the old value in the running class means"),
];

/// `[audit]`.
pub(super) const AUDIT: &[Row] = &[
    (
        "judge",
        Text,
        "training",
        "who judges the labels of an audit: training (the host), or cross-fit (small models that never see the label they judge; features only)",
    ),
    (
        "flag_below",
        Number,
        UNSET,
        "flag labels whose probability of being right is below this, instead of as many as are estimated to be wrong",
    ),
    (
        "pred_probs",
        Text,
        UNSET,
        "file of N x C probabilities (.npy, .csv, .parquet) by models that did not train on the sample they predict; then nothing is trained",
    ),
    (
        "encoder",
        Text,
        "auto",
        "encoder that turns pictures into rows of numbers, which are then judged by cross-fitting: auto (one whose weights are here), none (a network is trained on the pixels), or efficientnet-lite0",
    ),
    ("neighbours", Switch, "false", "look for near-copies and outliers among more than 20,000 rows, too"),
    ("losses", Text, "last", "loss used to judge a label: last, or the mean over recent epochs"),
    ("recent", Whole, "10", "number of recent epochs whose losses are kept"),
];

/// `[audit.mixture]`, as for `[negscale]`.
pub(super) const MIXTURE: &[(&str, &str)] = &[
    ("max_iter", "largest number of EM iterations"),
    ("tol", "the fit stops when the mean log-likelihood changes by less than this"),
    ("reg", "added to every variance"),
    ("clean", "which component is clean: the one with the smaller or the larger mean"),
];
