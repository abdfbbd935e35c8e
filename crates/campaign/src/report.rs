//! What has become of a campaign: the report, and a row for each recipient as CSV.

use stampede_model::CampaignId;
use stampede_wire::campaigns::Report;
use tokio::sync::mpsc;

use crate::{Campaigns, Error};

/// The rows of `report.csv`, a piece after the other. A piece that is an error ends the file: it is not whole.
pub struct CsvPieces(pub(crate) mpsc::Receiver<Result<Vec<u8>, Error>>);

impl CsvPieces {
    /// The next piece; `None`: the file is complete.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        self.0.recv().await
    }
}

impl Campaigns {
    /// The report of a campaign.
    pub async fn report(&self, id: CampaignId) -> Result<Option<Report>, Error> {
        todo!()
    }

    /// A row for each recipient as CSV that spreadsheets do not take for formulas, read while it is sent. `None`: there is no such
    /// campaign.
    pub async fn report_csv(&self, id: CampaignId) -> Result<Option<CsvPieces>, Error> {
        todo!()
    }
}
