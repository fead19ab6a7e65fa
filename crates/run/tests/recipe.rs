//! Recipes: what is accepted, what lies over what, what is refused and how it says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use negscale_methods::host::ItemKind;
use negscale_methods::hosts;
use negscale_methods::settings::table;
use negscale_methods::trainer::Tree;
use negscale_nets::optim::{Adam, OptimiserSettings, Sgd};
use negscale_nets::schedule::{Milestone, Schedule, Shape};
use negscale_run::recipe::{self, Expected, Layers, Recipe};
use std::collections::BTreeSet;

fn read(text: &str) -> Layers {
    Layers::new().with_text("mine.toml", text).unwrap()
}

fn resolve(layers: &Layers) -> Recipe {
    layers.resolve(ItemKind::Images, Some(28)).unwrap()
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let outcome = Layers::new()
        .with_text("mine.toml", text)
        .and_then(|layers| layers.resolve(ItemKind::Images, Some(28)));
    let message = outcome.expect_err(text).to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

#[test]
fn the_defaults_are_those_of_the_embedded_data_and_the_host() {
    let recipe = resolve(&Layers::new());
    assert_eq!(recipe.data.data, recipe::DEFAULT_DATA);
    assert_eq!(recipe.data.noise.to_string(), "sym-incl:0.5");
    assert_eq!((recipe.train.host.as_str(), recipe.train.plugin.as_str()), (recipe::DEFAULT_HOST, "none"));
    assert_eq!(recipe.baseline.as_deref(), Some("cross-entropy"));
    assert_eq!((recipe.flag_below, recipe.train.recent, recipe.train.seed), (None, 10, 1));
    let regime = (hosts::card(recipe::DEFAULT_HOST).unwrap().regime)(ItemKind::Images);
    assert_eq!((recipe.train.epochs, recipe.train.batch), (regime.epochs, regime.batch));
    assert_eq!((&recipe.train.optimiser, &recipe.train.schedule), (&regime.optimiser, &regime.schedule));
    assert_eq!(read("data = \"cifar10\"").data().unwrap().noise.to_string(), "none");
}

#[test]
fn the_network_is_chosen_by_the_data() {
    let net = |layers: &Layers, kind, side| layers.resolve(kind, side).unwrap().train.net;
    let none = Layers::new();
    assert_eq!(net(&none, ItemKind::Images, Some(40)), "cnn-small");
    assert_eq!(net(&none, ItemKind::Images, Some(41)), "resnet-18");
    assert_eq!(net(&none, ItemKind::Images, None), "resnet-18");
    assert_eq!(net(&none, ItemKind::Features, None), "mlp");
    assert_eq!(net(&read("side = 32"), ItemKind::Images, Some(224)), "cnn-small");
    assert_eq!(net(&read("net = \"cnn-9\""), ItemKind::Images, Some(224)), "cnn-9");
}

#[test]
fn flags_lie_over_pairs_over_recipes_over_defaults_in_whatever_order_they_come() {
    let layers = Layers::new()
        .with_flag("--epochs", "epochs", 4)
        .unwrap()
        .with_sets(["epochs=3", "seed=3", "plugin=negscale", "negscale.lambda=2", "net=mlp"])
        .unwrap()
        .with_text("a.toml", "epochs = 2\nseed = 2\nbatch = 2\n[negscale]\nlambda = 0.5\nmu = 0.25")
        .unwrap()
        .with_text("b.toml", "batch = 32")
        .unwrap();
    let train = resolve(&layers).train;
    assert_eq!((train.epochs, train.seed, train.batch, train.net.as_str()), (4, 3, 32, "mlp"));
    assert_eq!(train.plugin_settings["lambda"].as_float(), Some(2.0));
    assert_eq!(train.plugin_settings["mu"].as_float(), Some(0.25));
    assert_eq!(train.plugin_settings["eta_max"].as_integer(), Some(5));
}

#[test]
fn another_kind_of_optimiser_or_schedule_begins_with_its_own_defaults() {
    let recipe = resolve(&read("[optimiser]\nkind = \"adam\"\nbeta1 = 0.8\n[schedule]\nkind = \"cosine\""));
    assert_eq!(recipe.train.optimiser, OptimiserSettings::Adam(Adam { beta1: 0.8, ..Adam::default() }));
    assert_eq!(recipe.train.schedule.shape, Shape::Cosine { period: None, floor: 0.0, per_step: false });
    // The same kind keeps the host's numbers.
    let regime = (hosts::card(recipe::DEFAULT_HOST).unwrap().regime)(ItemKind::Images);
    let recipe = resolve(&read("[optimiser]\nkind = \"sgd\"\nmomentum = 0.5"));
    assert_eq!(
        recipe.train.optimiser,
        OptimiserSettings::Sgd(Sgd { lr: regime.optimiser.lr(), momentum: 0.5, ..Sgd::default() })
    );
    // What a layer below wrote for another kind is not used, whichever comes first on the line.
    let layers = read("[optimiser]\nmomentum = 0.5\nlr = 3")
        .with_sets(["optimiser.beta2=0.9", "optimiser.kind=adam-w"]);
    assert_eq!(
        resolve(&layers.unwrap()).train.optimiser,
        OptimiserSettings::AdamW(Adam { beta2: 0.9, ..Adam::default() })
    );
    let layers = read("[schedule]\nkind = \"steps\"\nat = [1, 0.5]\nwarm_up = 7");
    let at = vec![Milestone::Epoch(1), Milestone::Share(0.5)];
    assert_eq!(
        resolve(&layers).train.schedule,
        Schedule { warm_up: 7, shape: Shape::Steps { at, factor: 0.1 } }
    );
}

#[test]
fn a_recipe_reads_back_as_itself() {
    let texts = [
        "",
        "plugin = \"none\"\nbaseline = \"none\"\n[negscale]\nlambda = 3",
        "host = \"cross-entropy\"\nplugin = \"none\"",
        "data = \"a \\\"b\\\".csv\"\nlabels = \"l.txt\"\nlabel_column = \"y\"\ntruth_column = \"z\"\nimage_column = \"i\"\n\
         test = \"t\"\ntest_labels = \"u\"\nclass_names = \"c\"\nskip_unreadable = true\ndata_dir = \"d\"\nside = 64\nnoise = \"asym:0.25\"\n\
         noise_seed = 9\ntree = \"flat\"\nhidden = [64, 32]\nwidth = 2\nvalidation = 0\n[cross-entropy]\nview = \"plain\"",
        "[optimiser]\nkind = \"adam-w\"\nepsilon = 1e-9\n[schedule]\nkind = \"one-cycle\"\nmomentum = [0.85, 0.95]",
        "[schedule]\nkind = \"linear\"\nstart = 1.0\nmomentum = 0.1",
        "[schedule]\nkind = \"cosine\"\nperiod = 5\nfloor = 0.01\nper_step = true",
        "[schedule]\nkind = \"last\"\nepochs = 1\nwarm_up = 100\n[audit]\nflag_below = 0.3\nlosses = \"mean\"\nrecent = 4\n\
         [audit.mixture]\nclean = \"larger\"\ntol = 1e-3",
        "[schedule]\nkind = \"constant\"\n[provenance]\nwhen = 2026-01-01\nwho = { name = \"x\" }",
    ];
    for text in texts {
        let recipe = resolve(&read(text));
        let written = recipe.to_toml();
        let again = Layers::new().with_text("again.toml", &written).unwrap();
        assert_eq!(resolve(&again), recipe, "{text}\n->\n{written}");
        // Nothing is left to a default: what the data is like does not matter any more.
        assert_eq!(again.resolve(ItemKind::Features, None).unwrap(), recipe, "{written}");
        assert_eq!(resolve(&again).to_toml(), written);
    }
}

#[test]
fn the_documentation_covers_exactly_the_keys_that_are_accepted() {
    let documented: BTreeSet<String> = recipe::keys().iter().map(recipe::Key::path).collect();
    assert_eq!(documented.len(), recipe::keys().len(), "a key is there twice");
    for key in recipe::keys() {
        assert!(!key.meaning.is_empty() && !key.default.is_empty(), "{} is not explained", key.path());
    }
    // Everything a settings struct knows, and nothing else.
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut add =
        |name: &str, table: toml::Table| known.extend(table.keys().map(|key| format!("{name}.{key}")));
    for rule in [
        OptimiserSettings::Sgd(Sgd::default()),
        OptimiserSettings::Adam(Adam::default()),
        OptimiserSettings::AdamW(Adam::default()),
    ] {
        add("optimiser", table(&rule));
    }
    let epoch = Milestone::Epoch(1);
    for shape in [
        Shape::Constant,
        Shape::Steps { at: vec![epoch], factor: 0.1 },
        Shape::Last { epochs: epoch, factor: 0.1 },
        Shape::Cosine { period: Some(epoch), floor: 0.1, per_step: true },
        Shape::Linear { start: epoch, momentum: Some(0.1) },
        Shape::OneCycle { rise: 0.1, start_divisor: 2.0, end_divisor: 2.0, momentum: Some([0.1, 0.2]) },
    ] {
        add("schedule", table(&Schedule::from(shape)));
    }
    add("negscale", table(&negscale::Settings::default()));
    add(
        "audit",
        toml::Table::from_iter(
            ["encoder", "flag_below", "judge", "losses", "neighbours", "pred_probs", "recent"]
                .map(|key| (key.to_owned(), true.into())),
        ),
    );
    add("audit.mixture", table(&negscale_audit::gmm::GmmSettings::default()));
    for card in hosts::METHODS {
        let inner: BTreeSet<_> =
            documented.iter().filter(|path| path.starts_with(&format!("{}.", card.id))).collect();
        for key in (card.settings)().keys() {
            let path = format!("{}.{key}", card.id);
            assert!(
                inner.iter().any(|known| **known == path || known.starts_with(&format!("{path}."))),
                "{path}"
            );
        }
        known.extend(inner.into_iter().cloned());
    }
    let in_tables: BTreeSet<String> = documented.iter().filter(|path| path.contains('.')).cloned().collect();
    assert_eq!(in_tables, known);
    // Every key is accepted by itself with a value of its kind; a slip of it is not.
    for key in recipe::keys() {
        let value = match (key.path().as_str(), key.expected) {
            ("host" | "baseline", _) => "\"cross-entropy\"".to_owned(),
            ("audit.judge", _) => "\"cross-fit\"".to_owned(),
            ("noise", _) => "\"none\"".to_owned(),
            ("header", _) => "\"yes\"".to_owned(),
            ("optimiser.kind", _) => "\"adam\"".to_owned(),
            ("schedule.kind", _) => "\"last\"".to_owned(),
            (_, Expected::Text) => format!("\"{}\"", key.default),
            (_, Expected::Whole | Expected::Milestone | Expected::Auto) => "3".to_owned(),
            (_, Expected::Number | Expected::AsWritten | Expected::Momentum | Expected::Rate) => {
                "0.25".to_owned()
            }
            (_, Expected::Switch) => "true".to_owned(),
            (_, Expected::Wholes | Expected::Texts | Expected::List | Expected::Milestones) => {
                "[]".to_owned()
            }
        };
        let set = |path: String| Layers::new().with_sets([format!("{path}={value}")]);
        set(key.path()).unwrap();
        assert!(set(format!("{}x", key.path())).unwrap_err().to_string().contains(&key.name));
    }
    // What is written is documented, and outside tables all is written that has a value.
    let written: toml::Table = resolve(&Layers::new()).to_toml().parse().unwrap();
    assert!(written.keys().all(|name| documented.contains(name)
        || documented.iter().any(|path| path.starts_with(&format!("{name}.")))));
    let unset = recipe::keys().into_iter().filter(|key| key.table.is_empty() && key.default == "-").count();
    let top = written.values().filter(|value| !value.is_table()).count();
    assert_eq!(top + unset, recipe::keys().iter().filter(|key| key.table.is_empty()).count());
}

#[test]
fn what_cannot_be_read_says_where_it_stands_and_what_was_meant() {
    refused("[dsos]\nwarm_up = \"soon\"", &["warm_up", "\"auto\""]);
    refused("epohcs = 3", &["mine.toml", "`epohcs`", "`epochs`", "batch", "optimiser"]);
    refused("lr = 3", &["`lr`", "`optimiser.lr`"]);
    refused("[negscale]\nlamda = 3", &["mine.toml", "[negscale]", "`lamda`", "`lambda`", "eta_max"]);
    refused("[audit.mixture]\nmaxiter = 3", &["[audit.mixture]", "`maxiter`", "`max_iter`", "reg"]);
    refused("[cross-entropy]\nviw = \"weak\"", &["[cross-entropy]", "`viw`", "`view`"]);
    refused("[cross-entropi]\nview = \"weak\"", &["`cross-entropi`", "`cross-entropy`"]);
    refused("[cross-entropy]\nview = \"weakk\"", &["mine.toml", "[cross-entropy]", "weakk"]);
    refused(
        "[optimiser]\nkind = \"adam\"\nmomentum = 0.1",
        &["mine.toml", "[optimiser]", "`adam`", "`momentum`", "beta1"],
    );
    refused("[optimiser]\nkind = \"adamm\"", &["mine.toml", "`optimiser.kind`", "adamm", "adam"]);
    refused("[schedule]\nkind = \"cosine\"\nat = [1]", &["[schedule]", "`cosine`", "`at`", "period"]);
    refused("epochs = \"ten\"", &["mine.toml", "`epochs`", "whole number", "\"ten\""]);
    refused("epochs = -1", &["`epochs`", "whole number", "-1"]);
    refused("width = nan", &["`width`", "a number"]);
    let layers = Layers::new().with_sets(["classifier=round".to_owned()]).unwrap();
    let message = layers.resolve(ItemKind::Features, None).unwrap_err().to_string();
    assert!(message.contains("classifier") && message.contains("linear or tree"), "{message}");
    refused("hidden = [1, \"a\"]", &["`hidden`", "list of whole numbers"]);
    refused("negscale = 3", &["mine.toml", "`negscale`", "table", "3"]);
    refused("data = { name = 1 }", &["`data`", "string", "a table"]);
    refused("seed = 1\nepochs = = 3", &["mine.toml", "line 2"]);
    refused("seed = 1\nseed = 2", &["mine.toml", "line 2", "seed"]);
    refused("host = \"corss-entropy\"", &["mine.toml", "`host`", "cross-entropy"]);
    refused("plugin = \"negscal\"", &["`plugin`", "negscale"]);
    refused("net = \"resnet18\"", &["`net`", "resnet-18"]);
    refused("noise = \"syn:0.5\"", &["`noise`", "sym"]);
    refused("baseline = \"no\"", &["`baseline`", "cross-entropy"]);
    refused("device = \"gpu\"", &["mine.toml", "`device`", "cpu"]);
    refused("side = 0", &["mine.toml", "`side`"]);
    refused("[negscale]\nreduction = \"mena\"", &["mine.toml", "`negscale.reduction`", "mena", "mean"]);
    refused("[audit]\nlosses = \"first\"", &["`audit.losses`", "first", "mean"]);
    refused("[matrix]\nseed = [1, 2]", &["mine.toml", "[matrix]", "negscale sweep"]);
}

#[test]
fn numbers_out_of_range_are_refused_with_their_place() {
    refused("epochs = 0", &["mine.toml", "`epochs`", "0", "at least 1"]);
    refused("width = 0", &["mine.toml", "`width`", "0"]);
    refused("validation = 0.9", &["mine.toml", "`validation`", "0.9"]);
    refused("[optimiser]\nlr = -1", &["mine.toml", "`optimiser.lr`", "-1"]);
    refused("[schedule]\nkind = \"linear\"\nstart = 1.5", &["mine.toml", "`schedule.start`", "1.5"]);
    refused("[negscale]\nlambda = 2", &["mine.toml", "`negscale.lambda`", "--plugin negscale"]);
    refused("[negscale]\nlambda = -1", &["mine.toml", "`negscale.lambda`", "-1"]);
    refused("[audit]\nflag_below = 2", &["mine.toml", "`audit.flag_below`", "2"]);
    refused("[audit.mixture]\nreg = 0", &["mine.toml", "`audit.mixture.reg`", "0"]);
    refused("[audit]\nrecent = 0", &["mine.toml", "`audit.recent`"]);
}

#[test]
fn pairs_are_toml_or_bare_words_and_name_themselves_in_errors() {
    let layers = Layers::new().with_sets([
        "noise=sym:0.2",
        "data=123",
        "hidden=[3,4]",
        "plugin=negscale",
        "negscale={mu=2}",
        "labels=a=b",
    ]);
    let recipe = resolve(&layers.unwrap());
    assert_eq!((recipe.data.noise.to_string().as_str(), recipe.data.data.as_str()), ("sym-incl:0.2", "123"));
    assert_eq!(recipe.train.hidden, [3, 4]);
    assert_eq!(recipe.train.plugin_settings["mu"].as_float(), Some(2.0));
    assert_eq!(recipe.data.own.labels.unwrap().to_str(), Some("a=b"));
    for (pair, parts) in [
        ("epochs", vec!["--set epochs", "KEY=VALUE"]),
        ("epochs=many", vec!["--set epochs=many", "whole number", "\"many\""]),
        ("negscale.lamda=1", vec!["--set negscale.lamda=1", "`lambda`"]),
        ("epochs=3\nseed=4", vec!["--set epochs=3", "whole number"]),
        ("=3", vec!["--set =3"]),
        ("a..b=3", vec!["`a`"]),
    ] {
        let message = Layers::new().with_sets([pair]).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    let message = Layers::new().with_flag("--host", "host", "nobody").unwrap_err().to_string();
    assert!(message.starts_with("--host: ") && message.contains("nobody"), "{message}");
    let message = Layers::new().with_flag("--noise", "noise", "sym:2").unwrap_err().to_string();
    assert!(message.starts_with("--noise: sym:2: rate"), "a flag is named as a flag, and once: {message}");
    let taken_back = read("labels = \"a\"").with_sets(["labels="]).unwrap();
    assert_eq!(taken_back.data().unwrap().own.labels, None);
}

#[test]
fn the_baseline_trains_as_long_in_the_same_way_and_alone() {
    let recipe =
        resolve(&read("epochs = 3\nseed = 5\n[cross-entropy]\nview = \"plain\"\n[optimiser]\nlr = 0.3"));
    let baseline = recipe.of_baseline().unwrap();
    assert_eq!((baseline.train.host.as_str(), baseline.train.plugin.as_str()), ("cross-entropy", "none"));
    assert_eq!(baseline.train.host_settings["view"].as_str(), Some("plain"));
    assert_eq!((baseline.train.epochs, baseline.train.seed, baseline.train.optimiser.lr()), (3, 5, 0.3));
    assert_eq!(baseline.data, recipe.data);
    assert!(baseline.of_baseline().is_none());
    let again = Layers::new().with_text("again.toml", &baseline.to_toml()).unwrap();
    assert_eq!(resolve(&again), baseline);
    // A host that is the baseline needs no other; neither does who wants none.
    assert!(resolve(&read("host = \"cross-entropy\"\nplugin = \"none\"")).baseline.is_none());
    assert!(resolve(&read("baseline = \"none\"")).of_baseline().is_none());
}

#[test]
fn the_fingerprint_changes_with_every_setting_that_changes_results() {
    let of = |text: &str| resolve(&read(text)).fingerprint();
    let base = of("");
    assert_eq!(base.len(), 16);
    assert!(base.bytes().all(|digit| digit.is_ascii_hexdigit()));
    assert_eq!(of("threads = 3"), base);
    for text in [
        "seed = 2",
        "noise_seed = 1",
        "plugin = \"negscale\"",
        "[audit]\nflag_below = 0.4",
        "[cross-entropy]\nview = \"plain\"",
    ] {
        assert_ne!(of(text), base, "{text}");
    }
    assert_ne!(of("plugin = \"negscale\""), of("plugin = \"negscale\"\n[negscale]\nmu = 2"));
}

#[test]
fn a_class_tree_is_found_by_the_names_of_the_classes() {
    let tree = |text: &str, classes: &[&str]| {
        let classes: Vec<String> = classes.iter().map(|&class| class.to_owned()).collect();
        read(text).data().unwrap().tree_for(&classes)
    };
    let cifar: Vec<String> =
        negscale::Taxonomy::builtin("cifar10").unwrap().class_names().map(str::to_owned).collect();
    let cifar: Vec<&str> = cifar.iter().map(String::as_str).collect();
    assert!(matches!(tree("", &cifar).unwrap(), Tree::Given(tree) if tree.classes() == 10));
    assert!(matches!(tree("", &["left", "right"]).unwrap(), Tree::Learnt(_)));
    assert!(matches!(tree("tree = \"learnt\"", &cifar).unwrap(), Tree::Learnt(_)));
    assert!(
        matches!(tree("tree = \"flat\"", &["left", "right"]).unwrap(), Tree::Given(tree) if tree.classes() == 2)
    );
    let given = |text: &str, classes: &[&str]| match tree(text, classes).unwrap() {
        Tree::Given(tree) => tree,
        other => panic!("{other:?}"),
    };
    let (own, permuted) = (given("", &cifar), given("tree = \"permuted:3\"", &cifar));
    assert_eq!(permuted, own.permuted(3).unwrap(), "of the tree that is used without the word");
    assert_eq!(given("tree = \"permuted:3:cifar10-flat\"", &cifar).name(), "permuted:3:cifar10-flat");
    assert_eq!(given("tree = \"unrelated\"", &cifar).distance(0, 1), 16);
    assert!(
        matches!(tree("tree = \"permuted:3\"", &["left", "right"]).unwrap(), Tree::Learnt(learnt) if learnt.permuted == Some(3))
    );
    for slip in ["permuted:", "permuted:x", "permuted:3:", "permuted:-1:cifar10"] {
        let error = Layers::new().with_text("a.toml", &format!("tree = \"{slip}\"")).unwrap_err().to_string();
        assert!(error.contains("a.toml") && error.contains("permuted:SEED:TREE"), "{error}");
    }
    assert!(tree("tree = \"cifra10\"", &cifar).unwrap_err().to_string().contains("cifar10"));
    assert!(tree("tree = \"cifar10\"", &["left"]).unwrap_err().to_string().contains("left"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tree.txt");
    std::fs::write(&file, "root\n  a\n    left\n  b\n    right\n").unwrap();
    let text = format!("tree = '{}'", file.display());
    assert!(
        matches!(tree(&text, &["right", "left"]).unwrap(), Tree::Given(tree) if tree.class_name(0) == "right")
    );
    let text = format!("tree = 'permuted:1:{}'", file.display());
    let error = tree(&text, &["right", "left"]).unwrap_err().to_string();
    assert!(error.contains("cannot be permuted"), "{error}");
    assert_eq!(read(&text).data().unwrap().own_files(), [file]);
}

#[test]
fn keys_are_found_by_path_by_table_and_by_name() {
    assert_eq!(recipe::find("negscale.lambda").unwrap().len(), 1);
    assert_eq!(recipe::find("lambda").unwrap()[0].path(), "negscale.lambda");
    assert!(recipe::find("audit").unwrap().iter().any(|key| key.path() == "audit.mixture.tol"));
    assert_eq!(recipe::find("epochs").unwrap()[0].path(), "epochs");
    assert!(recipe::find("optimizer").unwrap_err().to_string().contains("`optimiser`"));
}

#[test]
fn a_whole_number_of_epochs_in_a_hosts_table_stays_one() {
    let recipe = resolve(&read("host = \"rolr\"\n[rolr]\nwarm_up = 5\nlambda_p = 2"));
    let settings: hosts::rolr::Settings =
        negscale_methods::settings::read("rolr", &recipe.train.host_settings).unwrap();
    assert_eq!((settings.warm_up, settings.lambda_p), (Milestone::Epoch(5), 2.0));
    let share = resolve(&read("host = \"rolr\"\n[rolr]\nwarm_up = 0.5"));
    assert_eq!(share.train.host_settings["warm_up"].as_float(), Some(0.5));
}

#[test]
fn photographs_are_brought_to_a_size_that_can_be_trained_on() {
    struct Wide(usize);
    impl negscale_data::ImageStore for Wide {
        fn len(&self) -> usize {
            1
        }
        fn load(&self, _: usize) -> negscale_data::Result<negscale_data::Image> {
            let shape = negscale_data::Shape { width: self.0, height: 20, channels: 3 };
            Ok(negscale_data::Image { shape, pixels: vec![0; shape.len()] })
        }
        fn bytes(&self, _: usize) -> negscale_data::Result<std::borrow::Cow<'_, [u8]>> {
            Ok(std::borrow::Cow::Borrowed(&[]))
        }
    }
    let data = |side: usize| {
        let items = negscale_data::Items::Images(std::sync::Arc::new(Wide(side)));
        negscale_data::Dataset::new("photographs", vec!["a".into()], items, vec![0], None).unwrap()
    };
    let found = |layers: &Layers, side| layers.resolve_for(&data(side)).unwrap();
    let large = found(&Layers::new(), 400);
    assert_eq!((large.data.side, large.train.net.as_str()), (Some(recipe::LARGEST_SIDE), "resnet-18"));
    assert_eq!(found(&Layers::new(), 64).data.side, None, "small ones stay as they are");
    assert_eq!(found(&read("side = 200"), 400).data.side, Some(200), "who names a size gets it");
}

#[test]
fn recipes_that_do_not_record_are_written_as_before() {
    let resolve = |sets: &[&str]| -> recipe::Recipe {
        let layers = Layers::new().with_sets(sets.iter().map(|set| set.to_string())).unwrap();
        layers.resolve(ItemKind::Features, None).unwrap()
    };
    let (plain, off) = (resolve(&[]), resolve(&["similarity=false", "probe=0", "classifier=linear"]));
    assert_eq!(plain.fingerprint(), off.fingerprint());
    assert!(!plain.to_toml().contains("probe"), "{}", plain.to_toml());
    let on = resolve(&["similarity=true", "probe=64", "classifier=tree"]);
    assert_eq!(on.train.classifier.name(), "tree");
    assert!(on.train.similarity && on.train.probe == 64 && on.train.probe_steps == 10);
    let again = Layers::new().with_text("again.toml", &on.to_toml()).unwrap();
    assert_eq!(again.resolve(ItemKind::Features, None).unwrap(), on);
    assert_ne!(plain.fingerprint(), on.fingerprint());
}

#[test]
fn an_audit_written_as_a_recipe_reads_back_with_its_columns_and_predictions() {
    let text = "data = \"t.csv\"\nlabel_columns = [\"a\", \"b\"]\nsource_column = \"site\"\n[audit]\npred_probs = \"p.npy\"\nencoder = \"efficientnet-lite0\"\nneighbours = true\n";
    let audit = resolve(&read(text));
    assert_eq!(audit.data.own.label_columns, ["a", "b"]);
    assert_eq!(audit.data.own.source_column.as_deref(), Some("site"));
    assert_eq!((audit.pred_probs.as_deref(), audit.neighbours), (Some(std::path::Path::new("p.npy")), true));
    assert_eq!(audit.encoder.as_deref(), Some("efficientnet-lite0"));
    let again = Layers::new().with_text("again.toml", &audit.to_toml()).unwrap();
    assert_eq!(resolve(&again), audit);
    assert_eq!(read(text).choose_judge(), None, "nothing of it asks for a training");
    let plain = resolve(&read("data = \"t.csv\""));
    for key in ["label_columns", "source_column", "pred_probs", "encoder", "neighbours"] {
        assert!(!plain.to_toml().contains(key), "{key} is written only where it is set");
    }
}

#[test]
fn precision_is_resolved_written_and_part_of_what_is_run() {
    let with = |text: &str| read(text).resolve(ItemKind::Images, Some(32));
    let (exact, rounded) = (with("precision = 'f32'").unwrap(), with("precision = 'bf16'").unwrap());
    assert_ne!(exact.fingerprint(), rounded.fingerprint());
    let auto = with("").unwrap();
    assert_eq!(auto.train.precision, negscale_nets::fast_precision(), "what this CPU is fast at");
    assert_eq!(auto, with("precision = 'auto'").unwrap());
    for recipe in [exact, rounded.clone()] {
        let again = Layers::new().with_text("again.toml", &recipe.to_toml()).unwrap();
        assert_eq!(again.resolve(ItemKind::Images, Some(32)).unwrap(), recipe, "on any CPU");
    }
    assert!(rounded.to_toml().contains("precision = \"bf16\""), "{}", rounded.to_toml());
    assert_eq!(rounded.of_baseline().unwrap().train.precision, rounded.train.precision);
    let message = with("precision = 'f16'").unwrap_err().to_string();
    assert!(message.contains("f16") && message.contains("auto, f32 or bf16"), "{message}");
}

#[test]
fn an_audit_by_small_models_does_not_depend_on_what_the_cpu_is_fast_at() {
    let layers = read("[audit]\njudge = 'cross-fit'");
    assert_eq!(
        layers.resolve(ItemKind::Features, None).unwrap().train.precision,
        negscale_nets::Precision::F32
    );
}
