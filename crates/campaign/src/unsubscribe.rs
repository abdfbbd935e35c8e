//! Unsubscribing: links that work for ever, without a login.
//!
//! A token is an account, an address and their HMAC-SHA256, as base64url. Its key is derived from the ticket secret, so that all
//! nodes agree and nothing is stored.
//!
//! ```text
//! │ 1 version │ 1 kind │ 1 length of the owner │ owner │ 1 length of the account │ account │ address … │ 32 HMAC │
//! ```

use stampede_wire::campaigns::Unsubscription;

use crate::{Campaigns, Error};

impl Campaigns {
    /// The content of an unsubscribe link; nothing is changed, because mail scanners open links. `None`: the token is forged.
    pub async fn unsubscription(&self, token: &str) -> Result<Option<Unsubscription>, Error> {
        todo!()
    }

    /// Unsubscribes; twice is once. `None`: the token is forged.
    pub async fn unsubscribe(&self, token: &str) -> Result<Option<Unsubscription>, Error> {
        todo!()
    }
}
