//! A progress bar of a campaign, until it ends or pauses.

use std::time::Duration;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use stampede_client::Client;
use stampede_model::CampaignId;
use stampede_model::campaign::CampaignState;

use super::print::counts;

const POLL: Duration = Duration::from_millis(500);

/// Shows a progress bar until the campaign is completed; fails if it pauses or is cancelled.
pub(super) async fn until_it_ends(client: &Client, campaign: CampaignId) -> Result<()> {
    let bar = ProgressBar::new(0);
    let style = "{bar:40.cyan/blue} {pos}/{len} recipients  {msg}";
    bar.set_style(ProgressStyle::with_template(style)?);
    loop {
        let contract = client.contract(campaign).await?;
        let of = contract.counts;
        bar.set_length(of.total);
        bar.set_position(of.total.saturating_sub(of.pending + of.queued + of.sending));
        let eta = contract.eta_at.map(|eta| format!("until {}", eta.strftime("%F %T UTC")));
        bar.set_message(eta.unwrap_or_else(|| contract.status.as_str().to_owned()));
        match contract.status {
            CampaignState::Running | CampaignState::Scheduled => tokio::time::sleep(POLL).await,
            CampaignState::Completed => {
                bar.finish();
                println!("completed: {}", counts(&of));
                return Ok(());
            }
            state @ (CampaignState::Draft | CampaignState::Paused | CampaignState::Cancelled) => {
                bar.abandon();
                println!("{}: {}", state.as_str(), counts(&of));
                let reason = contract.status_reason.unwrap_or_else(|| "nobody said why".to_owned());
                bail!("the campaign is {}: {reason}", state.as_str());
            }
        }
    }
}
