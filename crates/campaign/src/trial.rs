//! What a campaign would do: validate, preview, test messages. Nothing of the campaign is changed.

use stampede_model::CampaignId;
use stampede_wire::campaigns::{Preview, TemplateMistake, TestMessage, Validation};

use crate::{Campaigns, Error};

/// Most addresses of one test.
pub const MOST_TESTS: usize = 10;

/// The result of a preview.
#[derive(Debug, Clone)]
pub enum Previewed {
    /// The message.
    Done(Box<Preview>),
    /// The template has mistakes.
    Mistaken(Vec<TemplateMistake>),
    /// There is no such campaign, or no recipient at that position.
    NotFound,
}

/// The result of sending test messages.
#[derive(Debug, Clone)]
pub enum Tested {
    /// What became of each, in their order.
    Done(Vec<TestMessage>),
    /// The template has mistakes. Nothing was sent.
    Mistaken(Vec<TemplateMistake>),
    /// The account is blocked or deleted. Nothing was sent.
    NoAccount(String),
    /// There is no such campaign.
    NotFound,
}

impl Campaigns {
    /// What the campaign would do if it were started now; `None`: there is no such campaign.
    pub async fn validate(&self, id: CampaignId) -> Result<Option<Validation>, Error> {
        todo!()
    }

    /// The message of the recipient at a position, as it would be sent.
    pub async fn preview(&self, id: CampaignId, position: u64) -> Result<Previewed, Error> {
        todo!()
    }

    /// Sends the campaign's message to other addresses, filled with the fields of the recipient at `position` (`None`: the
    /// first). Limits and suppressions hold, quiet hours do not; the ledger does not know of it.
    pub async fn test_send(
        &self,
        id: CampaignId,
        addresses: &[String],
        position: Option<u64>,
    ) -> Result<Tested, Error> {
        todo!()
    }
}
