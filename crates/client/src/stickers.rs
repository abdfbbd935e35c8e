//! Stickers.

use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;
use stampede_wire::stickers::{Sticker, StickerPool, StickerVariants, Stickers};

use crate::{Client, Error, Result};

/// The body of `POST /api/stickers`; what is absent has its usual value.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NewSticker {
    /// The text.
    pub text: String,
    /// The name of a variant that ships, or a description of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Value>,
    /// `webp`, `png` or `tgs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// `vip`, `normal` or `batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

/// A sticker of a batch; what is absent has its usual value.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BatchSticker {
    /// The text.
    pub text: String,
    /// The name of a variant that ships, or a description of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Value>,
    /// `webp`, `png` or `tgs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrawnSticker {
    /// The file.
    File(Vec<u8>),
    /// A worker draws it; [`Client::sticker_file`] answers with it then.
    Later(Sticker),
}

#[derive(Serialize)]
struct Batch<'a> {
    stickers: &'a [BatchSticker],
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<&'a str>,
}

impl Client {
    /// Draws a sticker.
    pub async fn draw_sticker(&self, sticker: &NewSticker) -> Result<DrawnSticker> {
        let path = "/api/stickers";
        let response = self.send(Method::POST, path, Some(sticker)).await?;
        if response.status() == StatusCode::ACCEPTED {
            return self.read(path, response).await.map(DrawnSticker::Later);
        }
        let bytes = response.bytes().await.map_err(|source| self.no_answer(source))?;
        Ok(DrawnSticker::File(bytes.to_vec()))
    }

    /// Draws several stickers.
    pub async fn draw_stickers(
        &self,
        stickers: &[BatchSticker],
        priority: Option<&str>,
    ) -> Result<Stickers> {
        self.post("/api/stickers/batch", &Batch { stickers, priority }).await
    }

    /// The file of a sticker by the path that its order was answered with; `None`: it is not drawn yet.
    pub async fn sticker_file(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self.bytes(path).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::Refused { problem, .. }) if problem.code == "not_ready" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The variants that ship.
    pub async fn sticker_variants(&self) -> Result<StickerVariants> {
        self.get("/api/stickers/variants").await
    }

    /// The pool of the node that answers.
    pub async fn sticker_pool(&self) -> Result<StickerPool> {
        self.get("/api/stickers/pool").await
    }
}
