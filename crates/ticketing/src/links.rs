//! Links for people without a key: each opens one file until its end, and nothing else.
//!
//! A link is 30 bytes and their HMAC-SHA256, as base64url. Its key is derived from the ticket secret, so that all nodes agree
//! and nothing is stored; when the secret is replaced, all links end.
//!
//! ```text
//! │ 1 version │ 1 format │ 16 id │ 4 generation │ 8 end, seconds since 1970 │ 32 HMAC │
//! ```
//! A link to a ticket has the ticket's generation: when the ticket is issued anew because its paper or link was stolen, the
//! link does not open the new one. A link to a batch has a mark of all reissues of its tickets, for the same reason; 0 while
//! there was none. Links to batches of earlier versions have 0: they end when the first ticket of the batch is issued anew.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use stampede_model::{BatchId, Ticket, TicketId, Timestamp};

use crate::{Error, Ticketing};

/// The first byte.
const VERSION: u8 = 1;
/// Bytes before the signature.
const CONTENT: usize = 30;
/// Longest text of a link; a longer one is not read.
const LONGEST: usize = 200;

/// The file that a link opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linked {
    /// The PDF of a ticket of this generation.
    Pdf(TicketId, u32),
    /// The QR code of a ticket of this generation, as SVG.
    CodeSvg(TicketId, u32),
    /// The QR code of a ticket of this generation, as PNG.
    CodePng(TicketId, u32),
    /// All tickets of a batch with this mark as one PDF.
    BatchPdf(BatchId, u32),
    /// All tickets of a batch with this mark as a ZIP.
    BatchZip(BatchId, u32),
}

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenedLink {
    /// It opens this file.
    Valid(Linked),
    /// It has ended.
    Expired,
    /// This server did not make it.
    Forged,
}

impl Ticketing {
    /// The text of a link to a file, which ends at that time.
    pub fn link(&self, linked: Linked, end: Timestamp) -> Result<String, Error> {
        let content = written(linked, end);
        let signature = self.shared.store.sign_link(&content)?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode([&content[..], &signature].concat()))
    }

    /// Reads the text of a link. Its signature is checked before anything of it is believed.
    pub fn open_link(&self, text: &str, now: Timestamp) -> Result<OpenedLink, Error> {
        if text.len() > LONGEST {
            return Ok(OpenedLink::Forged);
        }
        let Ok(bytes) = BASE64_URL_SAFE_NO_PAD.decode(text) else { return Ok(OpenedLink::Forged) };
        let Some((content, signature)) = bytes.split_first_chunk::<CONTENT>() else {
            return Ok(OpenedLink::Forged);
        };
        if !self.shared.store.signed_link(content, signature)? {
            return Ok(OpenedLink::Forged);
        }
        Ok(read(content, now))
    }

    /// The mark of a batch's reissues that its links have: another one whenever a ticket is issued anew.
    pub async fn reissue_mark(&self, batch: BatchId) -> Result<u32, Error> {
        let reissues = self.shared.store.batch_reissues(batch).await?;
        // Folded into what fits, and never the mark of a batch without reissues.
        let folded = (reissues % u64::from(u32::MAX)) as u32;
        Ok(if reissues == 0 { 0 } else { folded.max(1) })
    }
}

impl Linked {
    /// The PDF of a ticket as it is now.
    pub fn pdf(ticket: &Ticket) -> Self {
        Self::Pdf(ticket.id, ticket.generation)
    }

    fn parts(self) -> (u8, [u8; 16], u32) {
        match self {
            Self::Pdf(id, generation) => (1, id.to_bytes(), generation),
            Self::CodeSvg(id, generation) => (2, id.to_bytes(), generation),
            Self::CodePng(id, generation) => (3, id.to_bytes(), generation),
            Self::BatchPdf(id, mark) => (4, id.to_bytes(), mark),
            Self::BatchZip(id, mark) => (5, id.to_bytes(), mark),
        }
    }
}

fn written(linked: Linked, end: Timestamp) -> [u8; CONTENT] {
    let (format, id, generation) = linked.parts();
    let mut content = [0; CONTENT];
    (content[0], content[1]) = (VERSION, format);
    content[2..18].copy_from_slice(&id);
    content[18..22].copy_from_slice(&generation.to_be_bytes());
    content[22..].copy_from_slice(&end.as_second().to_be_bytes());
    content
}

/// Reads content that this server has signed.
fn read(content: &[u8; CONTENT], now: Timestamp) -> OpenedLink {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    let (generation, end) = (number(&content[18..22]) as u32, number(&content[22..]));
    if now.as_second() >= i64::try_from(end).unwrap_or(0) {
        return OpenedLink::Expired;
    }
    let mut id = [0; 16];
    id.copy_from_slice(&content[2..18]);
    let (ticket, batch) = (TicketId::from_bytes(id), BatchId::from_bytes(id));
    OpenedLink::Valid(match (content[0], content[1]) {
        (VERSION, 1) => Linked::Pdf(ticket, generation),
        (VERSION, 2) => Linked::CodeSvg(ticket, generation),
        (VERSION, 3) => Linked::CodePng(ticket, generation),
        (VERSION, 4) => Linked::BatchPdf(batch, generation),
        (VERSION, 5) => Linked::BatchZip(batch, generation),
        // A newer version of this server made it.
        _ => return OpenedLink::Forged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written_until_its_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let (ticket, batch) = (TicketId::generate(), BatchId::generate());
        for linked in [
            Linked::Pdf(ticket, 7),
            Linked::CodeSvg(ticket, u32::MAX),
            Linked::CodePng(ticket, 1),
            Linked::BatchPdf(batch, 0),
            Linked::BatchZip(batch, 9),
        ] {
            let content = written(linked, at(1_800_000_000));
            assert_eq!(read(&content, at(1_799_999_999)), OpenedLink::Valid(linked));
            assert_eq!(read(&content, at(1_800_000_000)), OpenedLink::Expired);
            let newer = [&[VERSION + 1], &content[1..]].concat().try_into().unwrap();
            assert_eq!(read(&newer, at(0)), OpenedLink::Forged);
        }
    }
}
