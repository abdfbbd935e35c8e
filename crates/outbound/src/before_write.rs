//! The last word of a caller: asked when the connection is there, before the first byte of the request leaves.

use std::pin::Pin;

/// The answer of [`BeforeWrite::allows`].
pub type Allowed<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// A caller that has to know when its request leaves: connecting may take long.
pub trait BeforeWrite: Send {
    /// Whether the request may leave now. It is asked again for a request that is written to another connection.
    fn allows(&mut self) -> Allowed<'_>;
}

/// A request that may leave at any moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtOnce;

impl BeforeWrite for AtOnce {
    fn allows(&mut self) -> Allowed<'_> {
        Box::pin(std::future::ready(true))
    }
}
