//! `[matrix]` spans runs: which, in what order, and what is said of slips.
#![allow(clippy::unwrap_used)]

mod recipes;

use negscale_methods::host::ItemKind;
use negscale_run::recipe::{Layers, MatrixCell, expand};
use recipes::refused;

fn cells(text: &str) -> Vec<MatrixCell> {
    expand(Layers::new(), "sweep.toml", text).unwrap().cells
}

fn names(text: &str) -> Vec<String> {
    cells(text).iter().map(|cell| cell.name().to_owned()).collect()
}

#[test]
fn all_combinations_come_in_the_order_of_the_file_the_last_axis_fastest() {
    let text = "[matrix]\nseed = [2, 1]\nhost = [\"rolr\", \"cross-entropy\"]\n";
    let wanted = [
        "seed=2, host=rolr",
        "seed=2, host=cross-entropy",
        "seed=1, host=rolr",
        "seed=1, host=cross-entropy",
    ];
    assert_eq!(names(text), wanted);
    let text = "[matrix]\nhost = [\"rolr\", \"cross-entropy\"]\nseed = [2, 1]\n";
    assert_eq!(names(text)[1], "host=rolr, seed=1");
}

#[test]
fn settings_that_go_together_are_one_axis() {
    let text = "
epochs = 8
[negscale]
mu = 0.5
[matrix]
data = [{ data = \"cifar10\" }, { data = \"cifar100\", epochs = 12, \"negscale.mu\" = 2 }]
method = [{ host = \"rolr\", plugin = \"none\" }, { host = \"rolr\", plugin = \"negscale\", negscale.lambda = 0.25 }]
";
    let recipes: Vec<_> =
        cells(text).iter().map(|cell| cell.layers().resolve(ItemKind::Images, Some(32)).unwrap()).collect();
    let found: Vec<_> =
        recipes.iter().map(|r| (r.data.data.as_str(), r.train.epochs, r.train.plugin.as_str())).collect();
    let wanted = [
        ("cifar10", 8, "none"),
        ("cifar10", 8, "negscale"),
        ("cifar100", 12, "none"),
        ("cifar100", 12, "negscale"),
    ];
    assert_eq!(found, wanted);
    let weights = |i: usize| {
        let table = &recipes[i].train.plugin_settings;
        (table["lambda"].as_float().unwrap(), table["mu"].as_float().unwrap())
    };
    assert_eq!((weights(1), weights(3)), ((0.25, 0.5), (0.25, 2.0)));
}

#[test]
fn paths_with_points_may_be_quoted_or_not() {
    for key in ["\"negscale.lambda\"", "negscale.lambda"] {
        let text = format!("[matrix]\n{key} = [0.1, 1]\nseed = [1]\n");
        assert_eq!(names(&text), ["negscale.lambda=0.1, seed=1", "negscale.lambda=1, seed=1"]);
    }
}

#[test]
fn a_list_is_a_value_where_a_setting_takes_one() {
    let found = cells("[matrix]\nhidden = [[], [24], [48, 24]]\n");
    let hidden: Vec<_> = found
        .iter()
        .map(|cell| cell.layers().resolve(ItemKind::Features, None).unwrap().train.hidden)
        .collect();
    assert_eq!(hidden, [vec![], vec![24], vec![48, 24]]);
}

#[test]
fn exclude_drops_what_has_all_of_an_entry_and_include_adds() {
    let text = "
noise = \"sym:0.5\"
[matrix]
host = [\"rolr\", \"cross-entropy\"]
seed = [1, 2]
[[matrix.exclude]]
host = \"rolr\"
seed = 2
noise = \"sym:0.5\"
[[matrix.include]]
host = \"anne\"
seed = 9
";
    assert_eq!(
        names(text),
        [
            "host=rolr, seed=1",
            "host=cross-entropy, seed=1",
            "host=cross-entropy, seed=2",
            "host=anne, seed=9"
        ]
    );
    // A whole number and the same one with a point are the same value.
    let text = "[matrix]\n\"negscale.lambda\" = [0.1, 1]\nexclude = [{ \"negscale.lambda\" = 1.0 }]\n";
    assert_eq!(names(text), ["negscale.lambda=0.1"]);
    let only = "[matrix]\ninclude = [{ seed = 4 }]\n";
    assert_eq!(names(only), ["seed=4"]);
}

#[test]
fn a_recipe_without_a_matrix_is_one_run() {
    assert_eq!(cells("epochs = 3\n").len(), 1);
    assert_eq!(cells("epochs = 3\n[matrix]\n").len(), 1);
}

#[test]
fn a_cell_lies_over_the_common_recipe_and_set_over_the_cell() {
    let cell = cells("seed = 5\nepochs = 4\n[matrix]\nseed = [7]\n").remove(0);
    let recipe = cell.layers().resolve(ItemKind::Images, Some(28)).unwrap();
    assert_eq!((recipe.train.seed, recipe.train.epochs), (7, 4));
    let layers = cell.layers().clone().with_sets(["seed=9"]).unwrap();
    assert_eq!(layers.resolve(ItemKind::Images, Some(28)).unwrap().train.seed, 9);
}

#[test]
fn kinds_of_different_axes_go_together_whatever_their_order() {
    let text = "[matrix]\n\"optimiser.epsilon\" = [1e-7]\n\"optimiser.kind\" = [\"adam\"]\n";
    let cell = cells(text).remove(0);
    assert!(cell.layers().resolve(ItemKind::Images, Some(28)).is_ok());
}

#[test]
fn slips_are_answered_with_file_axis_and_entry() {
    refused("[matrix]\nseeed = [1]\n", &["sweep.toml", "`seeed`, entry 1", "did you mean `seed`"]);
    refused("[matrix]\nseed = 1\n", &["[matrix] `seed`", "must be a list"]);
    refused("[matrix]\nseed = []\n", &["`seed`", "the list is empty"]);
    refused("[matrix]\nseed = [1, \"two\"]\n", &["`seed`, entry 2", "whole number", "two"]);
    refused("[matrix]\nmethod = [{ host = \"rorl\" }]\n", &["`method`, entry 1", "rolr"]);
    refused("[matrix]\nmethod = [{ hots = \"rolr\" }]\n", &["`method`, entry 1", "did you mean `host`"]);
    refused("[matrix]\nmethod = [{}]\n", &["`method`, entry 1", "no settings"]);
    refused("[matrix]\na = [{ seed = 1 }]\nseed = [2]\n", &["both `a` and `seed` set `seed`"]);
    refused(
        "[matrix]\nseed = [1]\nexclude = [{ seed = 2 }]\n",
        &["`exclude`, entry 1", "excludes no combination"],
    );
    refused(
        "[matrix]\nseed = [1]\nexclude = [{ seeed = 2 }]\n",
        &["`exclude`, entry 1", "did you mean `seed`"],
    );
    refused("[matrix]\nseed = [1]\ninclude = 3\n", &["`include` must be a list of tables"]);
    refused("matrix = 3\n", &["`matrix` must be a table"]);
    refused("[matrix]\nseed = [1\n", &["sweep.toml, line"]);
    let many: Vec<String> = (0..400).map(|seed| seed.to_string()).collect();
    let many = many.join(", ");
    let text = format!("[matrix]\nseed = [{many}]\nnoise_seed = [{many}]\n");
    refused(&text, &["more than 100000 combinations"]);
}
