//! Reading tickets, batches and PDFs at the end of a campaign.

use stampede_testkit::pdf_is_sound;

use crate::faults::caller::Caller;
use crate::faults::ledger::Site;
use crate::faults::observed::Observed;

/// The file of a ticket is there, and it is what the API delivers without making it again.
pub(super) async fn check_pdf(
    caller: &Caller,
    site: &Site,
    ticket: String,
    well: bool,
) -> Result<(), String> {
    let file = site.public.join(format!("tickets/ticket-{ticket}.pdf"));
    let stored =
        std::fs::read(&file).map_err(|error| format!("ticket {ticket} has no file: {error}"))?;
    let delivered = caller.file(&format!("/api/tickets/{ticket}/pdf")).await;
    let delivered =
        delivered.map_err(|error| format!("ticket {ticket} cannot be downloaded: {error}"))?;
    if delivered != stored || !stored.starts_with(b"%PDF") {
        return Err(format!("the file of ticket {ticket} was not its PDF"));
    }
    if well {
        let checked = tokio::task::spawn_blocking(move || pdf_is_sound(&delivered)).await;
        checked.map_err(|_| format!("the PDF of ticket {ticket} is damaged"))?;
    }
    Ok(())
}

/// Reads all tickets of the event, and the counters of its batches.
pub(super) async fn observe(
    caller: &Caller,
    event: &str,
    batches: Vec<String>,
) -> Result<Observed, String> {
    let (mut observed, mut after) = (Observed::default(), String::new());
    loop {
        let page = caller.get(&format!("/api/tickets?target={event}&limit=1000{after}")).await?;
        observed.tickets.extend(page["tickets"].as_array().into_iter().flatten().cloned());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    for batch in batches {
        match caller.get(&format!("/api/batches/{batch}")).await {
            Ok(found) => drop(observed.batches.insert(batch, found)),
            Err(reason) if reason.contains(" 404 ") => {}
            Err(reason) => return Err(reason),
        }
    }
    Ok(observed)
}
