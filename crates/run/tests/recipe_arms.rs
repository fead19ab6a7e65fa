//! `[arms]` and `[search]`: which settings each arm gets, and what is said of slips.
#![allow(clippy::unwrap_used)]

mod recipes;

use negscale_methods::host::ItemKind;
use negscale_run::recipe::{Arms, Layers, MatrixCell, Recipe, expand};
use recipes::refused;

const TEXT: &str = r#"
[matrix]
noise = ["sym:0.2", "sym:0.8"]
seed = [5, 6]

[arms]
host = { plugin = "none" }
tuned = { like = "host", search = { "optimiser.weight_decay" = [1e-3, 1e-2], "optimiser.lr" = [0.01, 0.02, 0.04] } }
plugin = { plugin = "negscale", negscale.lambda = 100, negscale.mu = 1000, tried = 12 }
flat = { like = "plugin", tree = "unrelated" }
permuted = { like = "plugin", tree = "permuted:{seed}", negscale.mu = 10 }
follower = { like = "permuted", search = "tuned" }

[search]
seeds = [1, { seed = 2, noise_seed = 3 }]
"#;

fn study(text: &str) -> (Vec<MatrixCell>, Arms) {
    let study = expand(Layers::new(), "sweep.toml", text).unwrap();
    (study.cells, study.arms.unwrap())
}

fn resolved(cell: &MatrixCell) -> Recipe {
    cell.layers().resolve(ItemKind::Features, None).unwrap()
}

fn weight(recipe: &Recipe, name: &str) -> f64 {
    recipe.train.plugin_settings[name].as_float().unwrap()
}

#[test]
fn arms_lie_over_cells_in_the_order_of_the_file() {
    let (cells, arms) = study(TEXT);
    let names: Vec<&str> = arms.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["host", "tuned", "plugin", "flat", "permuted", "follower"]);
    assert_eq!((cells.len(), arms.claim.as_str()), (4, "plugin"));
    let run = |arm: &str| arms.cell(&cells[3], arms.get(arm).unwrap(), &Vec::new(), None).unwrap();
    let (plugin, permuted) = (resolved(&run("plugin")), resolved(&run("permuted")));
    assert_eq!(
        (weight(&plugin, "lambda"), weight(&plugin, "mu"), plugin.data.tree.as_str()),
        (100.0, 1000.0, "auto")
    );
    assert_eq!((weight(&permuted, "lambda"), weight(&permuted, "mu")), (100.0, 10.0));
    assert_eq!(permuted.data.tree, "permuted:6", "the seed of the run");
    assert_eq!(resolved(&run("flat")).data.tree, "unrelated");
    assert_eq!(resolved(&run("host")).train.plugin, "none");
    assert_eq!(run("host").name(), "noise=sym:0.8, seed=6, arm=host");
    let set = cells[3].clone().with_layers(|layers| layers.with_sets(["seed=9"])).unwrap();
    let run = arms.cell(&set, arms.get("permuted").unwrap(), &Vec::new(), None).unwrap();
    assert_eq!(resolved(&run).data.tree, "permuted:9");
}

#[test]
fn a_grid_is_run_with_development_seeds_the_last_key_fastest() {
    let (cells, arms) = study(TEXT);
    let tuned = arms.get("tuned").unwrap();
    let runs: Vec<MatrixCell> = tuned
        .grid
        .iter()
        .map(|point| arms.cell(&cells[0], tuned, point, Some(&arms.search.seeds[1])).unwrap())
        .collect();
    let names: Vec<&str> = runs.iter().map(MatrixCell::name).collect();
    assert_eq!(names.len(), 6);
    let head = "noise=sym:0.2, noise_seed=3, seed=2, arm=tuned, ";
    assert_eq!(names[1], format!("{head}optimiser.weight_decay=0.001, optimiser.lr=0.02"));
    assert_eq!(names[3], format!("{head}optimiser.weight_decay=0.01, optimiser.lr=0.01"));
    let recipe = resolved(&runs[3]);
    assert_eq!((recipe.train.seed, recipe.data.noise_seed), (2, 3));
    let other = arms.cell(&cells[0], tuned, &tuned.grid[0], Some(&arms.search.seeds[0])).unwrap();
    assert_eq!((resolved(&other).train.seed, resolved(&other).data.noise_seed), (1, 1));
    let budgets: Vec<u64> = arms.arms.iter().map(|arm| arms.budget(arm)).collect();
    assert_eq!(budgets, [0, 12, 12, 12, 12, 12]);
    assert_eq!(arms.searched(arms.get("follower").unwrap()).unwrap().name, "tuned");
    assert!(arms.searched(arms.get("plugin").unwrap()).is_none());
}

#[test]
fn choices_are_made_by_cell_or_as_the_recipe_says() {
    let (cells, arms) = study(TEXT);
    let groups: Vec<String> = cells.iter().map(|cell| arms.group(cell)).collect();
    assert_eq!(groups, ["noise=sym:0.2", "noise=sym:0.2", "noise=sym:0.8", "noise=sym:0.8"]);
    assert_eq!(
        arms.search.figure, "validation_last10",
        "samples of the test set choose nothing unless asked to"
    );
    let (cells, arms) =
        study(&TEXT.replace("[search]", "[search]\nper = [\"data\"]\nfigure = \"test_last\""));
    assert!(cells.iter().all(|cell| arms.group(cell) == "data=default"));
    assert_eq!(arms.search.figure, "test_last");
}

#[test]
fn slips_are_answered_with_file_arm_and_reason() {
    let arms = |arms: &str| format!("[matrix]\nseed = [5]\n[arms]\nhost = {{ plugin = \"none\" }}\n{arms}\n");
    refused(
        &arms("plugin = { plugn = \"negscale\" }"),
        &["sweep.toml, [arms] `plugin`", "did you mean `plugin`"],
    );
    refused(&arms("plugin = 3"), &["[arms] `plugin`", "table of settings"]);
    refused(&arms("mine = { plugin = \"negscale\" }"), &["is `plugin`", "host, mine", "claim"]);
    refused(&arms("plugin = { like = \"hots\" }"), &["`like` must name an arm above it", "host"]);
    refused(&arms("plugin = { seed = 3 }"), &["`seed` belongs into [matrix]"]);
    refused(&arms("plugin = { tree = \"permuted:x\" }"), &["[arms] `plugin`", "permuted:SEED"]);
    refused(&arms("plugin = { tried = \"often\" }"), &["`tried` must be a number of runs"]);
    refused(&arms("plugin = { search = { seed = [1] } }"), &["`seed` belongs into [matrix]"]);
    refused(
        &arms("plugin = { search = { \"negscale.lambda\" = 1 } }"),
        &["`negscale.lambda`", "list of values"],
    );
    refused(
        &arms("plugin = { search = { \"negscale.lambda\" = [1, \"x\"] } }"),
        &["`negscale.lambda`", "number"],
    );
    refused(&arms("plugin = { search = {} }"), &["`search` has no settings"]);
    refused(&arms("plugin = { search = \"host\" }"), &["arm `host` has no grid"]);
    let both = "plugin = { epochs = 2, search = { epochs = [1, 2] } }";
    refused(&arms(both), &["`epochs` has a value and is searched"]);
    let grid = arms("plugin = { search = { epochs = [1, 2] } }");
    refused(&grid, &["[search]", "development seeds are needed"]);
    refused(&format!("{grid}[search]\nseeds = [\"a\"]"), &["`seeds` must be a list"]);
    refused(&format!("{grid}[search]\nseeds = [{{ seed = 1 }}]"), &["noise_seed"]);
    refused(&format!("{grid}[search]\nseeds = [1]\nper = [\"seed\"]"), &["`per`", "`seed`"]);
    refused(&format!("{grid}[search]\nseeds = [1]\nfigur = 3"), &["no key `figur`"]);
    refused("[search]\nseeds = [1]\n", &["there is no [arms]"]);
    let error = Layers::new().with_text("a.toml", &grid).unwrap_err().to_string();
    assert!(error.contains("negscale sweep run"), "{error}");
}
