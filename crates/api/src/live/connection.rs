//! What a stream knows of its request: the key, to check it again while the stream lasts, and the way to cut the
//! connection off.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use http::request::Parts;
use tokio_util::sync::CancellationToken;

use crate::auth::presented_key;
use crate::client_address::client_address;
use crate::describe::{Input, Operation};

/// Cuts the connection of a request off when it is cancelled (`connections.rs`). A client that reads nothing cannot be
/// told anything else.
#[derive(Debug, Clone, Default)]
pub(crate) struct CutOff(pub(crate) CancellationToken);

/// The connection of a stream.
pub(crate) struct Connection {
    /// The key or token; `None`: the request has none.
    pub(crate) credential: Option<String>,
    /// The client's address.
    pub(crate) from: Option<IpAddr>,
    /// Cuts it off.
    pub(crate) cut_off: CutOff,
}

impl<S: Sync> FromRequestParts<S> for Connection {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let credential = presented_key(&parts.headers).ok().flatten().map(str::to_owned);
        let cut_off = parts.extensions.get::<CutOff>().cloned().unwrap_or_default();
        Ok(Self { credential, from: client_address(parts), cut_off })
    }
}

impl Input for Connection {
    fn describe(_: &mut Operation<'_>) {}
}
