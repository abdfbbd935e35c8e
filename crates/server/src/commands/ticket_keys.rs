//! `stampede ticket-keys`: new ticket keys, for when the secret that encrypts them is lost or known to others.

use anyhow::Result;
use stampede_model::Timestamp;
use stampede_store::Durability;

use crate::cli::TicketKeys;
use crate::settings::Settings;
use crate::{connect, ticket_secret};

pub(crate) async fn run(settings: Settings, command: TicketKeys) -> Result<()> {
    let store = connect::store(&settings, Durability::EveryCommit).await?;
    store.migrate().await?;
    match command {
        TicketKeys::Renew => {
            let store = ticket_secret::prepare_to_renew(&settings, store.clone())?;
            let events = store.renew_ticket_secret(Timestamp::now()).await?;
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
