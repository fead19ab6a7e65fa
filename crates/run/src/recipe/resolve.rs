//! Layers to a recipe in which every setting has its value.

use super::kinds::{self, Kinds};
use super::layers::{Layers, wrong};
use super::{
    DEFAULT_BASELINE, DEFAULT_HOST, DEFAULT_PLUGIN, DataSettings, Judge, LARGEST_SIDE, Recipe, SMALL_SIDE,
};
use negscale_audit::VerdictSettings;
use negscale_audit::gmm::GmmSettings;
use negscale_data::{Dataset, Items};
use negscale_methods::host::{Facts, ItemKind, KnownNoise};
use negscale_methods::trainer::{TrainSettings, open_device};
use negscale_methods::{Error, Result, hosts, plugins, settings};
use negscale_nets::{LastLayer, PRECISIONS, Precision, fast_precision, optim, precision_named};
use negscale_records::nearest;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use toml::Table;

impl Layers {
    /// Every setting with its value, for this training data. Pictures larger than [`LARGEST_SIDE`] are brought to that size
    /// unless the settings name another one.
    pub fn resolve_for(&self, train: &Dataset) -> Result<Recipe> {
        if train.items().are_texts() {
            let problem = "they are texts, which no network here reads: make rows of numbers of them by `negscale embed`, or audit them";
            return Err(Error::Settings { place: "text_column".into(), problem: problem.into() });
        }
        let Items::Images(store) = train.items() else { return self.resolve(ItemKind::Features, None) };
        let shape = match store.shape() {
            Some(shape) => Some(shape),
            None if store.is_empty() => None,
            None => Some(store.load(0)?.shape),
        };
        let longer = shape.map(|shape| shape.width.max(shape.height));
        let mut recipe = self.resolve(ItemKind::Images, longer)?;
        if longer.is_some_and(|side| side > LARGEST_SIDE) {
            recipe.data.side.get_or_insert(LARGEST_SIDE);
        }
        Ok(recipe)
    }

    /// Every setting with its value, for data of this kind; `picture_side` is the longer side of its pictures, if known.
    pub fn resolve(&self, kind: ItemKind, picture_side: Option<usize>) -> Result<Recipe> {
        let data = self.data()?;
        let host = self.text("host").unwrap_or(DEFAULT_HOST);
        let plugin = plugins::card(self.text("plugin").unwrap_or(DEFAULT_PLUGIN))?;
        let net = match self.text("net").unwrap_or("auto") {
            "auto" => chosen_net(kind, data.side.or(picture_side)),
            net => net,
        };
        let begin = TrainSettings::of(host, net, kind)?;
        let judge = self.judge()?;
        let count = |key, otherwise| self.whole(key).map_or(otherwise, |number| number as usize);
        let optimiser = self.by_kind(&kinds::optimisers(), settings::table(&begin.optimiser))?;
        let schedule = self.by_kind(&kinds::schedules(), settings::table(&begin.schedule))?;
        let hidden = self.get("hidden").and_then(|entry| entry.value.as_array());
        let hidden = hidden.into_iter().flatten().filter_map(|size| size.as_integer());
        let train = TrainSettings {
            host_settings: self.over(host, (hosts::card(host)?.settings)()),
            plugin: plugin.id.into(),
            plugin_settings: self.of_plugin(plugin.attaches())?,
            width: self.number("width").unwrap_or(begin.width),
            hidden: hidden.map(|size| size as usize).collect(),
            classifier: self.classifier()?,
            precision: if judge == Judge::CrossFit { Precision::F32 } else { self.precision()? },
            epochs: count("epochs", begin.epochs),
            batch: count("batch", begin.batch),
            seed: self.whole("seed").unwrap_or(begin.seed),
            validation: self.number("validation").unwrap_or(begin.validation),
            threads: count("threads", begin.threads),
            device: self.text("device").unwrap_or(&begin.device).into(),
            scan_every: count("scan_every", begin.scan_every),
            recent: count("audit.recent", begin.recent),
            verdict: self.verdict()?,
            similarity: self
                .get("similarity")
                .and_then(|entry| entry.value.as_bool())
                .unwrap_or(begin.similarity),
            probe: count("probe", begin.probe),
            probe_steps: count("probe_steps", begin.probe_steps),
            optimiser,
            schedule,
            ..begin
        };
        open_device(&train.device).map_err(|error| wrong(self.place("device"), error.to_string()))?;
        if !(train.width > 0.0 && train.width <= 16.0) {
            let problem = format!("it is {}; it must be above 0 and at most 16", train.width);
            return Err(wrong(self.place("width"), problem));
        }
        let train =
            train.checked().map_err(|error| self.located(error, &["", "audit", "optimiser", "schedule"]))?;
        self.check_hosts(kind, &data, &train)?;
        let baseline = self.text("baseline").unwrap_or(DEFAULT_BASELINE);
        let is_same = baseline == train.host && !plugin.attaches();
        let flag_below = self.number("audit.flag_below");
        if let Some(outside) = flag_below.filter(|below| !(0.0..=1.0).contains(below)) {
            let problem = format!("it is {outside}; it must be in [0, 1]");
            return Err(wrong(self.place("audit.flag_below"), problem));
        }
        let baseline = (baseline != "none" && !is_same).then(|| baseline.to_owned());
        let baseline_settings = match &baseline {
            Some(baseline) => self.over(baseline, (hosts::card(baseline)?.settings)()),
            None => Table::new(),
        };
        let pred_probs = self.text("audit.pred_probs").map(PathBuf::from);
        let neighbours = self.switch("audit.neighbours");
        let encoder =
            self.text("audit.encoder").filter(|name| !["auto", "none"].contains(name)).map(str::to_owned);
        Ok(Recipe {
            data,
            train,
            baseline,
            baseline_settings,
            flag_below,
            judge,
            pred_probs,
            encoder,
            neighbours,
        })
    }

    /// The encoder that is asked for by name, if `audit.encoder` is written: also `auto` and `none`.
    pub(crate) fn encoder(&self) -> Option<&str> {
        self.text("audit.encoder")
    }

    /// Whether these settings say who judges pictures: predictions that are given, or a training.
    pub(crate) fn has_judge_of_pictures(&self) -> bool {
        self.text("audit.pred_probs").is_some() || self.text("audit.judge") == Some("training")
    }

    fn judge(&self) -> Result<Judge> {
        match self.text("audit.judge") {
            None | Some("training") => Ok(Judge::Training),
            Some("cross-fit") => Ok(Judge::CrossFit),
            Some(other) => {
                let problem = format!("it is `{other}`; it must be training or cross-fit");
                Err(wrong(self.place("audit.judge"), problem))
            }
        }
    }

    /// The last layer.
    fn classifier(&self) -> Result<LastLayer> {
        match self.text("classifier").unwrap_or("linear") {
            "linear" => Ok(LastLayer::Linear),
            "tree" => Ok(LastLayer::Tree),
            name => {
                let problem = format!("it is `{name}`; it must be {}", LastLayer::NAMES.join(" or "));
                Err(wrong(self.place("classifier"), problem))
            }
        }
    }

    /// How products are taken: as said, or as this CPU is fastest. Elsewhere than on the CPU there is no choice.
    fn precision(&self) -> Result<Precision> {
        match self.text("precision").unwrap_or("auto") {
            "auto" if self.text("device").is_some_and(|device| device != "cpu") => Ok(Precision::F32),
            "auto" => Ok(fast_precision()),
            name => precision_named(name).ok_or_else(|| {
                let problem = format!("it is `{name}`; it must be auto, {}", PRECISIONS.join(" or "));
                wrong(self.place("precision"), problem)
            }),
        }
    }

    /// Settings that depend on their `kind`: those of the host if it is of that kind, else the kind's own defaults; over
    /// them what the layers say for that kind.
    fn by_kind<T: DeserializeOwned>(&self, kinds: &Kinds, of_host: Table) -> Result<T> {
        let Kinds { table, all } = kinds;
        let names: Vec<&str> = all.iter().map(|kind| kind.name).collect();
        let first = of_host.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned();
        let path = format!("{table}.kind");
        let last = self.text(&path).unwrap_or(&first);
        let mut resolved = match all.iter().find(|kind| kind.name == last) {
            Some(_) if last == first => of_host,
            Some(kind) => kind.defaults.clone(),
            None => return Err(wrong(self.place(&path), Error::unknown("kind", last, names).to_string())),
        };
        let inside = format!("{table}.");
        let mut now = first.as_str();
        for entries in self.entries() {
            now = entries.get(&path).and_then(|entry| entry.value.as_str()).unwrap_or(now);
            let known = all.iter().find(|kind| kind.name == now).map(|kind| kind.keys());
            for (full, entry) in entries {
                let Some(key) = full.strip_prefix(&inside) else { continue };
                let Some(known) = &known else {
                    let problem = Error::unknown("kind", now, names).to_string();
                    return Err(wrong(format!("in {}, `{path}`", entry.place), problem));
                };
                if !known.contains(&key) {
                    let near = nearest(key, known.iter().copied()).first().copied().unwrap_or_default();
                    let problem = format!(
                        "kind `{now}` has no key `{key}`; did you mean `{near}`? All keys of this kind: {}",
                        known.join(", ")
                    );
                    return Err(wrong(format!("in {}, [{table}]", entry.place), problem));
                }
                if now == last {
                    resolved.insert(key.into(), entry.value.clone());
                }
            }
        }
        resolved.try_into().map_err(|error: toml::de::Error| {
            wrong(format!("[{table}] of kind `{last}`"), error.message().trim())
        })
    }

    fn of_plugin(&self, attaches: bool) -> Result<Table> {
        let table = self.over("negscale", Table::new());
        let read: ::negscale::Settings = settings::read("negscale", &table)?;
        let read = read.checked().map_err(|error| self.located(error, &["negscale"]))?;
        let chosen = self.entries().flatten().find(|(path, _)| path.starts_with("negscale."));
        if let (None, Some((path, entry))) = (self.text("plugin"), chosen) {
            let problem = format!(
                "`{path}` is a setting of the plug-in, which is off unless it is asked for: add plugin = \"negscale\" (--plugin negscale)"
            );
            return Err(wrong(&entry.place, problem));
        }
        Ok(if attaches { settings::table(&read) } else { Table::new() })
    }

    fn verdict(&self) -> Result<VerdictSettings> {
        let mixture: GmmSettings =
            settings::read("audit.mixture", &self.over("audit.mixture", Table::new()))?;
        let mixture = mixture.checked().map_err(|error| self.located(error, &["audit.mixture"]))?;
        let mut losses = Table::new();
        losses.extend(self.get("audit.losses").map(|entry| ("losses".to_owned(), entry.value.clone())));
        let read: VerdictSettings = settings::read("audit", &losses)?;
        Ok(VerdictSettings { mixture, ..read })
    }

    /// Builds every host that has settings here. A host not in use must be readable; that in use must be in range too, as
    /// far as can be told before the data is there.
    fn check_hosts(&self, kind: ItemKind, data: &DataSettings, train: &TrainSettings) -> Result<()> {
        for card in hosts::METHODS {
            let inside = format!("{}.", card.id);
            let mut places: Vec<&str> = Vec::new();
            for (_, entry) in self.entries().flatten().filter(|(path, _)| path.starts_with(&inside)) {
                if !places.contains(&entry.place.as_str()) {
                    places.push(&entry.place);
                }
            }
            let is_used = card.id == train.host;
            if places.is_empty() && !is_used {
                continue;
            }
            let regime = (card.regime)(kind);
            let facts = Facts {
                kind,
                classes: 10,
                samples: 50_000,
                epochs: if is_used { train.epochs } else { regime.epochs },
                batch: if is_used { train.batch } else { regime.batch },
                noise: KnownNoise::from(&data.noise),
                // Whether the truth is known can be told once the data is there.
                wrong_share: Some(0.0),
            };
            let from =
                if places.is_empty() { "by default".into() } else { format!("in {}", places.join(", ")) };
            let at = format!("{from}, [{}]", card.id);
            match (card.build)(&self.over(card.id, (card.settings)()), &facts) {
                Ok(host) if is_used => {
                    let plugin = plugins::card(&train.plugin)?.build(&train.plugin_settings)?;
                    let misfit = plugin.and_then(|plugin| plugins::misfit(&*plugin, card, &*host));
                    if let Some((key, problem)) = misfit {
                        return Err(wrong(self.place(key), problem));
                    }
                }
                Ok(_) => {}
                Err(Error::Settings { problem, .. }) => return Err(wrong(at, problem)),
                Err(error) if is_used => return Err(wrong(at, error.to_string())),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// An error about a setting out of range, with the place where it was written.
    fn located(&self, error: impl Into<Error>, tables: &[&str]) -> Error {
        let error = error.into();
        let (name, value, wanted) = match &error {
            Error::Range { setting, value, wanted }
            | Error::Audit(negscale_audit::Error::Range { setting, value, wanted }) => {
                (*setting, value, *wanted)
            }
            Error::Nets(negscale_nets::Error::Optim(optim::Error::Setting { name, value, requirement })) => {
                (*name, value, *requirement)
            }
            Error::NegScale(::negscale::Error::Setting { name, value, requirement }) => {
                (*name, value, *requirement)
            }
            _ => return error,
        };
        let paths = tables.iter().map(|table| super::keys::join(table, name));
        let Some(path) = paths.into_iter().find(|path| self.get(path).is_some()) else { return error };
        wrong(self.place(&path), format!("it is {value}; {wanted}"))
    }
}

fn chosen_net(kind: ItemKind, side: Option<usize>) -> &'static str {
    match (kind, side) {
        (ItemKind::Features, _) => "mlp",
        (ItemKind::Images, Some(side)) if side <= SMALL_SIDE => "cnn-small",
        // Pictures of unknown size may be large.
        (ItemKind::Images, _) => "resnet-18",
    }
}
