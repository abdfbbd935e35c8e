//! A body that is written while it is sent, at the pace of the client.
//!
//! A few pieces wait between the writer and the connection. When they are all taken the writer goes
//! on, so a slow client costs no memory; a client that is gone, or takes nothing for too long, ends
//! the writing.

use std::io;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use tokio::sync::mpsc;

/// Pieces on their way to the client.
const PIECES: usize = 4;
/// Largest piece.
const PIECE: usize = 64 << 10;
/// A client that takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody reads any more.
#[derive(Debug)]
pub(crate) struct Gone;

/// The writer's side of a body.
pub(crate) struct Outlet {
    pieces: mpsc::Sender<io::Result<Bytes>>,
}

impl Outlet {
    /// A body and what it is written with.
    pub(crate) fn new() -> (Self, Body) {
        let (pieces, mut taken) = mpsc::channel(PIECES);
        let stream = futures::stream::poll_fn(move |context| taken.poll_recv(context));
        (Self { pieces }, Body::from_stream(stream))
    }

    /// Sends on, as soon as the client has taken what came before.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let mut rest = Bytes::from(bytes);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE));
            match tokio::time::timeout(PATIENCE, self.pieces.send(Ok(piece))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(Gone),
            }
        }
        Ok(())
    }

    /// Breaks the connection off, so that nobody takes what was sent for the whole.
    pub(crate) async fn break_off(self, reason: &str) {
        let error = Err(io::Error::other(reason.to_owned()));
        let _ = tokio::time::timeout(PATIENCE, self.pieces.send(error)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_gets_everything_in_order() {
        let (outlet, body) = Outlet::new();
        let sent: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        let copy = sent.clone();
        tokio::spawn(async move { outlet.send(copy).await });
        assert_eq!(axum::body::to_bytes(body, usize::MAX).await.unwrap(), sent);
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_ends_the_writing() {
        let (outlet, body) = Outlet::new();
        drop(body);
        assert!(outlet.send(vec![0; 10]).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up_and_costs_little() {
        let (outlet, _body) = Outlet::new();
        let mut taken = 0;
        while outlet.send(vec![0; PIECE]).await.is_ok() {
            taken += 1;
        }
        assert_eq!(taken, PIECES);
    }

    #[tokio::test]
    async fn a_body_that_is_broken_off_is_an_error_for_its_reader() {
        let (outlet, body) = Outlet::new();
        tokio::spawn(outlet.break_off("lost the database"));
        assert!(axum::body::to_bytes(body, usize::MAX).await.is_err());
    }
}
