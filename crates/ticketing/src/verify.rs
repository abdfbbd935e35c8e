//! Verifying a token: is it genuine, whose is it, does it still admit? A ticket is not used up by this.

use stampede_model::{EventId, Refusal, Token};
use stampede_store::Verdict;
use stampede_wire::ticketing::verification::{Verification, VerifiedEvent, VerifiedTicket};

use crate::{Error, Ticketing};

impl Ticketing {
    /// The verdict about the text of a ticket's QR code; `target` is the only event that is accepted.
    pub async fn verify(&self, text: &str, target: Option<EventId>) -> Result<Verdict, Error> {
        match text.parse::<Token>() {
            Ok(token) if target.is_some_and(|target| target != token.event()) => {
                Ok(Verdict::refused(Refusal::ForeignEvent))
            }
            Ok(token) => Ok(self.shared.store.verify(&token).await?),
            Err(refusal) => Ok(Verdict::refused(refusal)),
        }
    }
}

/// A verdict as API and command line tell it.
pub fn verification(verdict: &Verdict) -> Verification {
    Verification::new(
        verdict.refusal,
        verdict.claims,
        verdict.event.as_ref().map(VerifiedEvent::from),
        verdict.ticket.as_ref().map(VerifiedTicket::from),
    )
}
