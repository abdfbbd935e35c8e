//! Unsubscribing: links that work for ever, without a login.
//!
//! A token names the account and the address, and whose suppressions they are. Its signature is made with a key that is derived
//! from the ticket secret, so that all nodes agree and nothing is stored.
//!
//! ```text
//! │ 1 version │ 1 kind │ 1 length of the owner │ owner │ 1 length of the account │ account │ address … │ 32 HMAC-SHA256 │
//! ```
//! The kind keeps a token apart from links to files, which the same key signs.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use stampede_model::campaign::{AccountId, SuppressionReason};
use stampede_store::Suppression;
use stampede_wire::campaigns::Unsubscription;

use crate::{Campaigns, Error, now};

/// The first bytes: links to files have other ones.
const HEAD: [u8; 2] = [1, 0x75];
/// Bytes of the signature.
const SIGNATURE: usize = 32;
/// Longest text of a token; a longer one is not read.
const LONGEST: usize = 2_048;

/// Who wants no more messages, and from whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsubscriber {
    /// The user whose suppressions they are.
    pub(crate) owner: String,
    /// The account.
    pub(crate) account: AccountId,
    /// The address.
    pub(crate) address: String,
}

impl Campaigns {
    /// The address of the page on which a recipient unsubscribes; `None`: nobody has told the address of this server.
    pub(crate) fn unsubscribe_url(&self, who: &Unsubscriber) -> Result<Option<String>, Error> {
        let Some(base) = &self.shared.public_url else { return Ok(None) };
        let Some(content) = written(who) else { return Ok(None) };
        let signature = self.shared.store.sign_link(&content)?;
        let token = BASE64_URL_SAFE_NO_PAD.encode([content.as_slice(), &signature].concat());
        Ok(Some(format!("{base}/u/{token}")))
    }

    /// The content of an unsubscribe link; nothing is changed, because mail scanners open links. `None`: the token is forged.
    pub async fn unsubscription(&self, token: &str) -> Result<Option<Unsubscription>, Error> {
        let Some(who) = self.open_token(token)? else { return Ok(None) };
        let addresses = [who.address.clone()];
        let store = &self.shared.store;
        let done = store.suppressed_addresses(&who.owner, &who.account, &addresses).await?;
        self.told(who, !done.is_empty()).await.map(Some)
    }

    /// Unsubscribes; twice is once. `None`: the token is forged.
    pub async fn unsubscribe(&self, token: &str) -> Result<Option<Unsubscription>, Error> {
        let Some(who) = self.open_token(token)? else { return Ok(None) };
        let suppression = Suppression {
            owner: who.owner.clone(),
            account: Some(who.account.clone()),
            address: who.address.clone(),
            reason: SuppressionReason::Stop,
            since: now(),
            by: "unsubscribe".to_owned(),
        };
        let added = self.shared.store.add_suppressions(&[suppression]).await?;
        self.shared.metrics.suppressed(SuppressionReason::Stop.as_str(), added);
        if added > 0 {
            tracing::info!(account = %who.account, owner = who.owner, "a recipient unsubscribed");
        }
        self.told(who, true).await.map(Some)
    }

    async fn told(&self, who: Unsubscriber, is_done: bool) -> Result<Unsubscription, Error> {
        let account = self.shared.store.account(&who.account).await?;
        // Suppressions outlive accounts.
        let sender = account.map_or_else(|| who.account.to_string(), |account| account.name);
        Ok(Unsubscription { address: who.address, sender, is_done })
    }

    fn open_token(&self, token: &str) -> Result<Option<Unsubscriber>, Error> {
        if token.len() > LONGEST {
            return Ok(None);
        }
        let Ok(bytes) = BASE64_URL_SAFE_NO_PAD.decode(token) else { return Ok(None) };
        let Some((content, signature)) = bytes.split_last_chunk::<SIGNATURE>() else {
            return Ok(None);
        };
        // Before anything of it is believed.
        if !self.shared.store.signed_link(content, signature)? {
            return Ok(None);
        }
        Ok(read(content))
    }
}

/// The content of a token; `None`: a name is too long for one.
fn written(who: &Unsubscriber) -> Option<Vec<u8>> {
    let mut content = HEAD.to_vec();
    for name in [who.owner.as_str(), who.account.as_str()] {
        content.push(u8::try_from(name.len()).ok()?);
        content.extend_from_slice(name.as_bytes());
    }
    content.extend_from_slice(who.address.as_bytes());
    Some(content)
}

fn read(content: &[u8]) -> Option<Unsubscriber> {
    let mut rest = content.strip_prefix(&HEAD)?;
    let mut names = Vec::new();
    for _ in 0..2 {
        let (length, left) = rest.split_first()?;
        let (name, left) = left.split_at_checked(usize::from(*length))?;
        names.push(std::str::from_utf8(name).ok()?.to_owned());
        rest = left;
    }
    let address = std::str::from_utf8(rest).ok()?.to_owned();
    let account = names.pop()?.parse().ok()?;
    Some(Unsubscriber { owner: names.pop()?, account, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let who = Unsubscriber {
            owner: "änn".to_owned(),
            account: "news".parse().unwrap(),
            address: "bob@example.com".to_owned(),
        };
        let content = written(&who).unwrap();
        assert_eq!(read(&content), Some(who.clone()));
        // Neither a link to a file, nor cut, nor of a newer version.
        for wrong in [&[1, 1][..], &content[..5], &[], &[2, 0x75, 0, 0]] {
            assert_eq!(read(wrong), None);
        }
        let long = Unsubscriber { owner: "x".repeat(256), ..who };
        assert_eq!(written(&long), None);
    }
}
