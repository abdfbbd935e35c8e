//! What jobs may touch. A job that needs more gets it here, where everybody sees it.

use std::sync::Arc;

use stampede_files::Files;
use stampede_store::Store;
use stampede_template::Typesetter;

/// Everything a job can reach.
#[derive(Clone)]
pub struct Environment {
    /// Records.
    pub store: Store,
    /// Rendered output.
    pub files: Files,
    /// Makes PDFs.
    pub typesetter: Arc<Typesetter>,
}
