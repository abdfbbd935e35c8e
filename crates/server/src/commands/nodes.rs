//! `stampede nodes`: the cluster on the terminal, through the API of a running server.

mod outcome;
mod print;

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use stampede_client::Client;
use stampede_model::{Printable, Role};

use self::outcome::{NodeOutcome, Unfinished, Wish};
use crate::cli::{Nodes, NodesCommand, Patience};
use crate::commands::myself;
use crate::commands::session::Session;
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: Nodes) -> Result<()> {
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    let done = carry_out(&session.client, &options).await;
    session.close().await?;
    done
}

async fn carry_out(client: &Client, options: &Nodes) -> Result<()> {
    match options.command.as_ref().unwrap_or(&NodesCommand::List) {
        NodesCommand::List => show(options, &client.nodes().await?, print::nodes),
        NodesCommand::Workers => show(options, &client.nodes().await?, print::workers),
        NodesCommand::Cluster => show(options, &client.cluster().await?, print::cluster),
        NodesCommand::History => show(options, &client.scaling_history().await?, print::history),
        NodesCommand::ScaleUp { node, count, patience } => {
            send(client, options, node, Wish::Up((*count).into()), *patience).await
        }
        NodesCommand::ScaleDown { node, count, patience } => {
            send(client, options, node, Wish::Down((*count).into()), *patience).await
        }
        NodesCommand::Restart { node, patience } => {
            send(client, options, node, Wish::Restart, *patience).await
        }
    }
}

/// Prints an answer as JSON or for a person.
fn show<T: Serialize>(options: &Nodes, answer: &T, print: fn(&T)) -> Result<()> {
    if options.json {
        println!("{}", serde_json::to_string(answer)?);
    } else {
        print(answer);
    }
    Ok(())
}

/// The result of a command, for `--json`.
#[derive(Serialize)]
struct Sent<'a> {
    success: bool,
    heard: Option<u64>,
    nodes: Option<&'a [NodeOutcome]>,
}

/// Sends a command to nodes, and waits for its effect.
async fn send(
    client: &Client,
    options: &Nodes,
    name: &str,
    wish: Wish,
    patience: Patience,
) -> Result<()> {
    // Read before the command, or the change could not be seen.
    let before = outcome::addressed(client.nodes().await?, name);
    let sent = client.command(name, &wish.command()).await?;
    if patience.no_wait {
        match (options.json, sent.heard) {
            (true, _) => println!("{}", serde_json::to_string(&sent)?),
            (false, Some(1) | None) => println!("told; what comes of it: {} nodes", myself()),
            (false, Some(heard)) => {
                println!("told {heard} nodes; what comes of it: {} nodes", myself())
            }
        }
        return Ok(());
    }
    let tell = |node: &str, text: &str| {
        if !options.json {
            println!("{}: {}", Printable::line(node), Printable::line(text));
        }
    };
    let timeout = Duration::from_secs(patience.timeout);
    let result = tokio::select! {
        result = outcome::watch(client, &before, wish, timeout, tell) => result,
        _ = tokio::signal::ctrl_c() => {
            bail!(
                "interrupted; the nodes were told and go on: {} nodes shows how far they are",
                myself()
            );
        }
    };
    if options.json {
        let ended = match &result {
            Ok(ended) => Some(ended),
            Err(error) => error.downcast_ref::<Unfinished>().map(|Unfinished(ended)| ended),
        };
        let nodes = ended.map(Vec::as_slice);
        let sent = Sent { success: result.is_ok(), heard: sent.heard, nodes };
        println!("{}", serde_json::to_string(&sent)?);
    }
    result.map(drop)
}
