//! Files of guests, and files of whole batches.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use stampede_model::BatchId;
use stampede_wire::ticketing::uploads::{UploadAccepted, UploadDryRun};

use crate::{Client, Error, Result, segment, with_query};

/// Longest time for a large file, either way.
const LARGE: Duration = Duration::from_secs(3_600);

/// A file of guests.
#[derive(Debug, Clone)]
pub struct GuestFile {
    /// Its media type, with a charset if it needs one.
    pub kind: String,
    /// How it is read; parameters without a value are left out.
    pub query: Vec<(&'static str, Option<String>)>,
    /// The same file with the same key is the same order.
    pub idempotency_key: Option<String>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A file that is being downloaded.
#[derive(Debug)]
pub struct Pieces {
    response: reqwest::Response,
    base: String,
}

impl Pieces {
    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let piece = self.response.chunk().await;
        let piece = piece.map_err(|source| Error::NoAnswer { base: self.base.clone(), source })?;
        Ok(piece.map(|piece| piece.to_vec()))
    }
}

impl Client {
    /// Orders a ticket for each guest of a file; the event is named by the id that a person gave.
    pub async fn upload_guests(&self, event: &str, file: GuestFile) -> Result<UploadAccepted> {
        self.send_guests(event, file, None).await
    }

    /// Asks what a file would order; nothing is written.
    pub async fn try_guests(&self, event: &str, file: GuestFile) -> Result<UploadDryRun> {
        self.send_guests(event, file, Some("1")).await
    }

    async fn send_guests<T: serde::de::DeserializeOwned>(
        &self,
        event: &str,
        file: GuestFile,
        dry_run: Option<&str>,
    ) -> Result<T> {
        let given = file.query.iter().map(|(name, value)| (*name, value.as_deref()));
        let query: Vec<(&str, Option<&str>)> = given.chain([("dryRun", dry_run)]).collect();
        let path = with_query(&format!("/api/events/{}/batches", segment(event)), &query);
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.key);
        let request = request.timeout(LARGE).header(CONTENT_TYPE, file.kind).body(file.bytes);
        let request = match file.idempotency_key {
            Some(key) => request.header("Idempotency-Key", key),
            None => request,
        };
        let response = request.send().await.map_err(|source| self.no_answer(source))?;
        self.read(&path, Self::accepted(&path, response).await?).await
    }

    /// The tickets of a batch as a ZIP.
    pub async fn batch_zip(&self, batch: BatchId) -> Result<Pieces> {
        self.pieces(&format!("/api/batches/{batch}/zip")).await
    }

    /// A file that is read while it is sent.
    pub(crate) async fn pieces(&self, path: &str) -> Result<Pieces> {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.key);
        let response = request.timeout(LARGE).send().await;
        let response = response.map_err(|source| self.no_answer(source))?;
        let response = Self::accepted(path, response).await?;
        Ok(Pieces { response, base: self.base.clone() })
    }
}
