//! `stampede webhooks`: webhooks of a running server, through its API.

mod print;

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use stampede_client::{Client, DeliveryQuery, NewWebhook};
use stampede_model::{Role, Timestamp};
use stampede_wire::webhooks::{IssuedWebhook, Webhook, WebhookState};

use crate::cli::{WebhookCreate, Webhooks, WebhooksCommand};
use crate::commands::session::Session;
use crate::settings::Settings;

/// Why no webhook is made for a temporary key: its messages are those of its owner.
const NOBODYS: &str = "whose messages should the webhook get? Give --key with an API key of the user who makes the orders, or --event";

pub(crate) async fn run(settings: Settings, options: Webhooks) -> Result<()> {
    let session = Session::open(&settings, &options.server, Role::Admin).await?;
    let done = match &options.command {
        WebhooksCommand::Create(create) if session.is_temporary() && create.event.is_none() => {
            Err(anyhow!(NOBODYS))
        }
        _ => carry_out(&session.client, &options).await,
    };
    session.close().await?;
    done
}

async fn carry_out(client: &Client, options: &Webhooks) -> Result<()> {
    let json = options.json;
    match &options.command {
        WebhooksCommand::List => show(json, &all(client).await?, |webhooks| print::list(webhooks)),
        WebhooksCommand::Create(create) => {
            issued(json, &client.create_webhook(&new_webhook(create)).await?)
        }
        WebhooksCommand::Show(which) => {
            show(json, &client.webhook(which.webhook).await?, print::one)
        }
        WebhooksCommand::Test(which) => {
            show(json, &client.test_webhook(which.webhook).await?, print::sent)
        }
        WebhooksCommand::Deliveries { which, delivery: Some(delivery), .. } => {
            show(json, &client.delivery(which.webhook, *delivery).await?, print::log)
        }
        WebhooksCommand::Deliveries { which, state, kind, limit, delivery: None } => {
            let (state, kind, limit) = (state.clone(), kind.clone(), Some(*limit));
            let query = DeliveryQuery { state, kind, limit };
            let page = client.deliveries(which.webhook, &query).await?;
            show(json, &page.deliveries, |deliveries| print::deliveries(deliveries))
        }
        WebhooksCommand::Redeliver { which, delivery: Some(delivery), .. } => {
            show(json, &client.redeliver(which.webhook, *delivery).await?, print::sent)
        }
        WebhooksCommand::Redeliver { which, last, .. } => {
            let Some(last) = last else { bail!("give a delivery, or --last with a time") };
            let many = client.redeliver_since(which.webhook, Timestamp::now() - *last).await?;
            show(json, &many, |many| println!("{} messages are sent again", many.redelivered))
        }
        WebhooksCommand::Rotate { which, grace } => {
            issued(json, &client.rotate_webhook(which.webhook, grace.as_secs()).await?)
        }
        WebhooksCommand::Disable(which) => {
            let webhook = client.set_webhook_state(which.webhook, WebhookState::Disabled).await?;
            show(json, &webhook, print::one)
        }
        WebhooksCommand::Enable(which) => {
            let webhook = client.set_webhook_state(which.webhook, WebhookState::Active).await?;
            show(json, &webhook, print::one)
        }
        WebhooksCommand::Delete(which) => {
            client.delete_webhook(which.webhook).await?;
            println!("{}", if json { "{\"deleted\":true}" } else { "deleted" });
            Ok(())
        }
    }
}

fn new_webhook(create: &WebhookCreate) -> NewWebhook {
    NewWebhook {
        url: create.target.clone(),
        description: create.description.clone(),
        kinds: (!create.kinds.is_empty()).then(|| create.kinds.clone()),
        event: create.event,
    }
}

/// All webhooks, newest first.
async fn all(client: &Client) -> Result<Vec<Webhook>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = client.webhooks(after).await?;
        all.extend(page.webhooks);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
}

/// Prints id and secret, one a line, so that a script can keep both.
fn issued(json: bool, issued: &IssuedWebhook) -> Result<()> {
    show(json, issued, |issued| println!("{}\n{}", issued.webhook.id, issued.secret))
}

fn show<T: Serialize>(json: bool, value: &T, print: impl Fn(&T)) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(value)?);
    } else {
        print(value);
    }
    Ok(())
}
