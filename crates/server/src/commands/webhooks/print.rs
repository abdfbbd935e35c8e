//! Webhooks and deliveries as tables.

use stampede_model::{Printable, Timestamp};
use stampede_wire::webhooks::{Delivery, DeliveryLog, Webhook};

use crate::commands::table::Table;

pub(super) fn list(webhooks: &[Webhook]) {
    let mut table = Table::new(["id", "url", "kinds", "event", "owner", "state", "failing since"]);
    for webhook in webhooks {
        table.row(vec![
            webhook.id.to_string(),
            webhook.url.clone(),
            kinds(webhook),
            event(webhook),
            webhook.owner.clone(),
            state(webhook),
            time(webhook.failing_since),
        ]);
    }
    table.print("there are no webhooks");
}

pub(super) fn one(webhook: &Webhook) {
    for (field, value) in [
        ("id", webhook.id.to_string()),
        ("url", webhook.url.clone()),
        ("description", webhook.description.clone()),
        ("owner", webhook.owner.clone()),
        ("kinds", kinds(webhook)),
        ("event", event(webhook)),
        ("state", state(webhook)),
        ("failing since", time(webhook.failing_since)),
        ("last success", time(webhook.last_success_at)),
        ("former secret until", time(webhook.former_secret_until)),
        ("created", time(Some(webhook.created_at))),
    ] {
        println!("{field:<21}{}", Printable::line(&value));
    }
}

pub(super) fn sent(delivery: &Delivery) {
    println!("delivery {} is on its way", delivery.id);
}

pub(super) fn deliveries(deliveries: &[Delivery]) {
    let head =
        ["delivery", "kind", "state", "attempts", "status", "error", "created", "next attempt"];
    let mut table = Table::new(head);
    for delivery in deliveries {
        table.row(vec![
            delivery.id.to_string(),
            delivery.kind.clone(),
            delivery.state.as_str().to_owned(),
            delivery.attempts.to_string(),
            status(delivery.last_status),
            delivery.last_error.clone().unwrap_or_else(|| "-".to_owned()),
            time(Some(delivery.created_at)),
            time(delivery.next_attempt_at),
        ]);
    }
    table.print("nothing was sent");
}

pub(super) fn log(log: &DeliveryLog) {
    deliveries(std::slice::from_ref(&log.delivery));
    println!("\nbody      {}", Printable::line(&log.body));
    for attempt in &log.log {
        let error = attempt.error.as_deref().unwrap_or("accepted");
        println!(
            "\n{}  status {}  {} ms  {}",
            time(Some(attempt.at)),
            status(attempt.status),
            attempt.duration_ms,
            Printable::line(error)
        );
        if !attempt.answer.is_empty() {
            println!("answer    {}", Printable::line(&attempt.answer));
        }
    }
}

fn kinds(webhook: &Webhook) -> String {
    webhook.kinds.as_ref().map_or_else(|| "all".to_owned(), |kinds| kinds.join(", "))
}

fn event(webhook: &Webhook) -> String {
    webhook.event.map_or_else(|| "all".to_owned(), |event| event.to_string())
}

fn state(webhook: &Webhook) -> String {
    match webhook.disabled_reason {
        Some(reason) => format!("disabled: {}", reason.as_str()),
        None => webhook.state.as_str().to_owned(),
    }
}

fn status(status: Option<u16>) -> String {
    status.map_or_else(|| "-".to_owned(), |status| status.to_string())
}

fn time(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}
