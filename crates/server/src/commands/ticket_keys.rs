//! `stampede ticket-keys`: new ticket keys, for when the secret that encrypts them is lost or known to others.

use anyhow::Result;
use stampede_audit::{Kind, Subject};
use stampede_model::Timestamp;

use crate::cli::TicketKeys;
use crate::operator::{audited, json};
use crate::settings::Settings;
use crate::{connect, ticket_secret};

pub(crate) async fn run(settings: Settings, command: TicketKeys) -> Result<()> {
    let store = connect::store(&settings).await?;
    store.migrate().await?;
    match command {
        TicketKeys::Renew => {
            let store = ticket_secret::prepare_to_renew(&settings, store.clone())?;
            let renewing = store.renew_ticket_secret(Timestamp::now());
            let after = |events: &u64| json(&serde_json::json!({ "events": events }));
            let subject = Subject::new(Kind::TicketKey);
            let events = audited(&store, "renewTicketKeys", subject, None, renewing, after).await?;
            println!("{events} events have a new key, encrypted with the present secret.");
            println!(
                "Start all servers anew. Tickets that were handed out stay valid; if others know"
            );
            println!(
                "the former secret, also revoke the former keys: DELETE /api/events/{{id}}/keys/{{kid}}"
            );
        }
    }
    store.close().await;
    Ok(())
}
