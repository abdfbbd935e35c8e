//! What jobs may touch. A job that needs more gets it here, where everybody sees it.

use stampede_files::Files;
use stampede_press::Press;
use stampede_store::Store;

/// Everything a job can reach.
#[derive(Clone)]
pub struct Environment {
    /// Records.
    pub store: Store,
    /// Rendered output.
    pub files: Files,
    /// Makes PDFs.
    pub press: Press,
}
