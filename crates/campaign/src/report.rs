//! What has become of a campaign: the report, and a row for each recipient as CSV.
//!
//! The CSV is read while it is sent, a page of recipients at a time: neither the size of the campaign nor the speed of the client
//! shows in memory.

use stampede_model::{CampaignId, Timestamp, spreadsheet};
use stampede_store::{Recipient, RecipientFilter};
use stampede_wire::campaigns::Report;
use tokio::sync::mpsc;

use crate::{Campaigns, Error, answers, asks, now};

/// Recipients read at a time.
const PAGE: u32 = 500;
/// Pages that wait for the client.
const AHEAD: usize = 2;
/// The titles of the columns.
const TITLES: [&str; 15] = [
    "position",
    "id",
    "address",
    "status",
    "reason",
    "code",
    "detail",
    "attempts",
    "nextAt",
    "providerId",
    "sentAt",
    "deliveredAt",
    "readAt",
    "ticketId",
    "line",
];

/// The rows of `report.csv`, a piece after the other. A piece that is an error ends the file: it is not whole.
pub struct CsvPieces(mpsc::Receiver<Result<Vec<u8>, Error>>);

impl CsvPieces {
    /// The next piece; `None`: the file is complete.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        self.0.recv().await
    }
}

impl Campaigns {
    /// The report of a campaign.
    pub async fn report(&self, id: CampaignId) -> Result<Option<Report>, Error> {
        let store = &self.shared.store;
        let Some(campaign) = store.campaign(id).await? else { return Ok(None) };
        let account = store.account(&campaign.account).await?;
        let codes = store.recipients_by_code(id).await?;
        let span = crate::pace::span_of_report(store.campaign_span(id).await?);
        let step_ms = span.as_millis() as u64;
        let minutes = store.campaign_minutes(id, step_ms).await?;
        let tests = store.campaign_tests(id).await?;
        let speed = self.speed(&campaign, account.as_ref()).await?;
        let pacing = account.as_ref().map(|account| account.pacing.clone()).unwrap_or_default();
        let limits = [Some(asks::account_rate(&pacing)), campaign.pacing.limit, speed.allowed];
        let limit = crate::pace::slowest(limits).unwrap_or(stampede_model::campaign::Rate::DEFAULT);
        let contract = answers::contract(campaign, account.as_ref(), speed);
        let left_ms = contract
            .eta_at
            .map(|eta| u64::try_from(eta.duration_since(now()).as_millis()).unwrap_or_default());
        Ok(Some(Report {
            contract,
            codes: codes.into_iter().map(answers::code).collect(),
            minutes: minutes.into_iter().map(answers::minute).collect(),
            step_ms,
            limit,
            left_ms,
            tests: tests.into_iter().map(answers::test).collect(),
        }))
    }

    /// A row for each recipient as CSV that spreadsheets do not take for formulas, read while it is sent. `None`: there is no such
    /// campaign.
    pub async fn report_csv(&self, id: CampaignId) -> Result<Option<CsvPieces>, Error> {
        if self.shared.store.campaign(id).await?.is_none() {
            return Ok(None);
        }
        let (pieces, taken) = mpsc::channel(AHEAD);
        let campaigns = self.clone();
        self.shared.runs.spawn(async move {
            if let Err(error) = campaigns.write_csv(id, &pieces).await {
                tracing::warn!(%error, campaign = %id, "the table of a campaign's report broke off");
                let _ = pieces.send(Err(error)).await;
            }
        });
        Ok(Some(CsvPieces(taken)))
    }

    async fn write_csv(
        &self,
        id: CampaignId,
        pieces: &mpsc::Sender<Result<Vec<u8>, Error>>,
    ) -> Result<(), Error> {
        let mut piece = TITLES.join(",");
        piece.push_str("\r\n");
        let mut after = None;
        loop {
            let page =
                self.shared.store.recipients(id, &RecipientFilter::default(), after, PAGE).await?;
            after = page.last().map(|recipient| recipient.position);
            let is_last = page.len() < PAGE as usize;
            for recipient in page {
                write_row(&mut piece, &recipient);
            }
            if pieces.send(Ok(std::mem::take(&mut piece).into_bytes())).await.is_err() || is_last {
                return Ok(());
            }
        }
    }
}

fn write_row(piece: &mut String, recipient: &Recipient) {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let cells: [String; TITLES.len()] = [
        recipient.position.to_string(),
        recipient.id.to_string(),
        recipient.address.clone(),
        recipient.state.as_str().to_owned(),
        recipient.skipped.map_or("", |reason| reason.as_str()).to_owned(),
        text(&recipient.code),
        text(&recipient.detail),
        recipient.attempts.to_string(),
        time(recipient.next_at),
        text(&recipient.provider_id),
        time(recipient.sent_at),
        time(recipient.delivered_at),
        time(recipient.read_at),
        recipient.ticket.map(|ticket| ticket.to_string()).unwrap_or_default(),
        recipient.line.map(|line| line.to_string()).unwrap_or_default(),
    ];
    for (number, cell) in cells.iter().enumerate() {
        if number > 0 {
            piece.push(',');
        }
        write_cell(piece, cell);
    }
    piece.push_str("\r\n");
}

/// Writes a cell that spreadsheets do not take for a formula. A telephone number begins with a plus and is none.
fn write_cell(piece: &mut String, cell: &str) {
    let is_number = cell.strip_prefix('+').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    });
    let guarded = if is_number { cell.to_owned() } else { spreadsheet::guarded(cell) };
    if guarded != cell || cell.contains(spreadsheet::DELIMITERS) || cell.contains('"') {
        piece.push('"');
        piece.push_str(&guarded.replace('"', "\"\""));
        piece.push('"');
    } else {
        piece.push_str(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_cell_is_a_formula() {
        let written = |cell: &str| {
            let mut piece = String::new();
            write_cell(&mut piece, cell);
            piece
        };
        assert_eq!(written("Ann"), "Ann");
        assert_eq!(written("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        assert_eq!(written("=1+1"), "\"'=1+1\"");
        assert_eq!(written("@sum"), "\"'@sum\"");
        assert_eq!(written("+491701234567"), "+491701234567");
        assert_eq!(written("+cmd|calc"), "\"'+cmd|calc\"");
        assert_eq!(written("-2+3"), "\"'-2+3\"");
        assert_eq!(written("\t=1"), "\"'\t'=1\"");
        assert_eq!(written("x;=1+1"), "\"x;'=1+1\"");
    }
}
