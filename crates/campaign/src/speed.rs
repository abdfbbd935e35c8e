//! When the last message of a campaign leaves: by the limits, and by the speed of the last two minutes if that is slower.

use stampede_model::campaign::{CampaignState, Rate};
use stampede_store::{Account, Campaign};

use crate::pace::{self, Measured};
use crate::{Campaigns, Error, now, provider};

/// What the end of a campaign is estimated by, besides the limits that people set.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Speed {
    /// The provider's limit.
    pub(crate) allowed: Option<Rate>,
    /// How fast the campaign has been.
    pub(crate) measured: Option<Rate>,
}

impl Campaigns {
    /// How fast a campaign may be, and is. Only of a campaign that runs is anything read.
    pub(crate) async fn speed(
        &self,
        campaign: &Campaign,
        account: Option<&Account>,
    ) -> Result<Speed, Error> {
        let allowed = account.and_then(provider::allowed);
        if campaign.state != CampaignState::Running || campaign.counts.open() == 0 {
            return Ok(Speed { allowed, measured: None });
        }
        let now = now();
        // What was changed or resumed since may be faster now.
        let since = campaign.updated_at.max(now - pace::MEASURED_OVER);
        let last = self.shared.store.last_attempts(campaign.id, since, pace::MOST_MEASURED).await?;
        let sending = campaign.counts.sending;
        let measured = last.and_then(|it| {
            let (attempts, first, last) = (it.count, it.first, it.last);
            pace::measured_rate(&Measured { attempts, first, last, sending }, now)
        });
        Ok(Speed { allowed, measured })
    }
}
