//! `negscale methods`: lists training methods (hosts), plug-ins and networks.

use crate::paragraph::beside;
use anyhow::Result;
use negscale_methods::host::{Card, Count, Provenance};
use negscale_methods::hosts;
use negscale_methods::plugins;
use negscale_nets as nets;
use negscale_run::recipe::{self, Key};
use serde_json::{Value, json};

/// List training methods, plug-ins and networks; with METHOD, show a method with all its settings.
#[derive(clap::Args)]
pub struct Arguments {
    /// Training methods to show in full, such as rolr [default: list all].
    #[arg(value_name = "METHOD")]
    names: Vec<String>,
    /// Print JSON, with all settings.
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub fn run(arguments: Arguments) -> Result<()> {
    let asked: Vec<&Card> = match arguments.names.as_slice() {
        [] => hosts::METHODS.to_vec(),
        names => names.iter().map(|name| hosts::card(name)).collect::<Result<_, _>>()?,
    };
    if arguments.json {
        let all = json!({
            "hosts": asked.iter().map(|card| host(card)).collect::<Result<Vec<_>>>()?,
            "plugins": plugins::PLUGINS.iter().map(|card| json!({"id": card.id, "about": card.about})).collect::<Vec<_>>(),
            "networks": nets::CARDS.iter().map(network).collect::<Vec<_>>(),
        });
        say!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    if !arguments.names.is_empty() {
        return asked.iter().try_for_each(|card| tell(card));
    }
    say!("Training methods (host). Cost: forward passes per sample and epoch; a backward pass counts as two");
    for card in asked {
        say!("{}", beside(2, card.id, 22, card.about));
        say!("{}", beside(2, "", 22, &facts(card)));
    }
    say!("\nPlug-ins (plugin)");
    for card in plugins::PLUGINS {
        say!("{}", beside(2, card.id, 22, card.about));
    }
    say!("\nNetworks (net)");
    for card in nets::CARDS {
        let takes = format!("takes {}", card.takes);
        say!("{}", beside(2, card.id, 22, &said(&[card.about, card.paper, &takes])));
    }
    say!(
        "\nTo see a method's settings: negscale methods {}",
        hosts::METHODS.last().map_or("NAME", |card| card.id)
    );
    Ok(())
}

/// Everything about a method.
fn tell(card: &Card) -> Result<()> {
    say!("{}: {}", card.id, card.about);
    say!("{}", beside(0, "", 2, &format!("{} forward passes per sample and epoch", facts(card))));
    say!("\n  Settings, in the table [{}] of a recipe:", card.id);
    for key in recipe::find(card.id)? {
        say!("{}", beside(4, &format!("{} = {}", inside(card, &key), key.default), 34, &key.meaning));
    }
    Ok(())
}

/// Where a method comes from and what it needs; its cost comes last.
fn facts(card: &Card) -> String {
    let networks = if card.nets == 1 { "1 network".into() } else { format!("{} networks", card.nets) };
    let provenance = match card.provenance {
        Provenance::Standard => "textbook method",
        Provenance::PaperAndCode => "follows the paper and its authors' code",
        Provenance::Paper => "follows the paper",
        Provenance::Code => "follows its authors' code",
        Provenance::Reconstruction => "a reconstruction from published results",
    };
    let truth = card.wants_truth().map_or("-".into(), |count| match count {
        Count::Whole(count) => format!("uses {count} true labels"),
        Count::Share(share) => format!("uses {} % of the true labels", 100.0 * share),
    });
    said(&[card.paper, provenance, &truth, &networks, &format!("cost {}", card.cost)])
}

/// Parts of a line, without those that a card leaves open.
fn said(parts: &[&str]) -> String {
    parts.iter().filter(|part| **part != "-").copied().collect::<Vec<_>>().join("; ")
}

/// The key's name inside the host's table.
fn inside(card: &Card, key: &Key) -> String {
    let path = key.path();
    path.strip_prefix(card.id).map_or(path.as_str(), |rest| rest.trim_start_matches('.')).to_owned()
}

fn host(card: &Card) -> Result<Value> {
    let settings = recipe::find(card.id)?;
    let settings: Vec<Value> = settings
        .iter()
        .map(|key| json!({"name": inside(card, key), "default": key.default, "meaning": key.meaning}))
        .collect();
    Ok(json!({
        "id": card.id, "about": card.about, "paper": card.paper, "provenance": card.provenance, "networks": card.nets,
        "judges": card.predicted_by, "beliefs": card.beliefs, "cost": card.cost, "true_labels": card.wants_truth(), "settings": settings,
    }))
}

fn network(card: &nets::NetCard) -> Value {
    json!({
        "id": card.id, "about": card.about, "paper": card.paper, "takes": card.takes, "features": card.features,
    })
}
