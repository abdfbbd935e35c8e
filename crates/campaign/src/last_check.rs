//! The last check of a message: made when the connection to the provider is there, before the first byte leaves.
//!
//! A claim may wait for the database, and connecting, securing and logging in may take long. Permits and quiet hours hold for
//! the moment at which a message leaves, so they are asked again here.

use stampede_broker::{Permits, Taking};
use stampede_channel::{Allowed, BeforeWrite};
use stampede_store::Recipient;

use crate::hours;
use crate::now;
use crate::send::{Begun, give_back};
use crate::snapshot::Snapshot;

/// What a message that is claimed still needs to leave.
pub(crate) struct LastCheck<'a> {
    snapshot: &'a Snapshot,
    /// Whose quiet hours hold; `None`: none do.
    recipient: Option<&'a Recipient>,
    /// Gone when the message was refused.
    permits: Option<Permits>,
    /// When it was allowed to leave.
    allowed: Option<Begun>,
}

impl<'a> LastCheck<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        recipient: Option<&'a Recipient>,
        permits: Permits,
    ) -> Self {
        Self { snapshot, recipient, permits: Some(permits), allowed: None }
    }

    /// Whether the message was not allowed to leave: others have got the places, quiet hours have begun, or Redis is too far away.
    pub(crate) fn has_refused(&self) -> bool {
        self.permits.is_none()
    }

    /// When the message was allowed to leave; `None`: there was no connection.
    pub(crate) fn allowed(&self) -> Option<Begun> {
        self.allowed
    }

    async fn ask(&mut self) -> bool {
        let Some(permits) = self.permits.take() else { return false };
        let quiet = self.recipient.and_then(|it| hours::quiet_for(self.snapshot, it, now()));
        if quiet.is_some() {
            give_back(permits).await;
            return false;
        }
        let Ok(Taking::Granted(permits)) = permits.refreshed().await else { return false };
        self.permits = Some(permits);
        self.allowed = Some(Begun::now());
        true
    }
}

impl BeforeWrite for LastCheck<'_> {
    fn allows(&mut self) -> Allowed<'_> {
        Box::pin(self.ask())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use stampede_model::campaign::{Pacing, QuietHours, RecipientState};
    use stampede_model::{CampaignId, RecipientId};

    use super::*;
    use crate::snapshot::tests::snapshot;

    fn recipient() -> Recipient {
        Recipient {
            id: RecipientId::generate(),
            campaign: CampaignId::generate(),
            position: 1,
            address: "ann".to_owned(),
            fields: BTreeMap::new(),
            message: None,
            time_zone: None,
            ticket: None,
            line: None,
            state: RecipientState::Sending,
            skipped: None,
            code: None,
            detail: None,
            attempts: 1,
            next_at: None,
            provider_id: None,
            updated_at: now(),
            sent_at: None,
            delivered_at: None,
            read_at: None,
        }
    }

    #[tokio::test]
    async fn a_message_whose_quiet_hours_have_begun_meanwhile_does_not_leave() {
        let midnight = || "00:00".parse().unwrap();
        let always = QuietHours { from: midnight(), to: midnight(), days: None, time_zone: None };
        let quiet = snapshot(Pacing { quiet_hours: Some(always), ..Pacing::default() });
        let to = recipient();
        let mut check = LastCheck::new(&quiet, Some(&to), Permits::default());
        assert!(!check.has_refused(), "nobody has asked");
        assert!(!check.allows().await);
        assert!(check.has_refused() && check.allowed().is_none());
        assert!(!check.allows().await, "its permits are gone");
        // Test messages ignore quiet hours.
        assert!(LastCheck::new(&quiet, None, Permits::default()).allows().await);
        let day = snapshot(Pacing::default());
        let mut check = LastCheck::new(&day, Some(&to), Permits::default());
        assert!(check.allows().await && check.allows().await);
        assert!(!check.has_refused() && check.allowed().is_some());
    }
}
