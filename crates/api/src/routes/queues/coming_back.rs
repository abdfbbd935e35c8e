//! Notes about jobs that come back: some kinds of jobs are added again from records after they were removed. The answer
//! to the operator who removed one says so, and how to stop it.

use crate::app::App;

/// The note after one job was removed, if it comes back.
pub(super) async fn note_of_one(app: &App, queue: &str, job: &str) -> Option<String> {
    app.jobs.comes_back(queue, job).await
}

/// The note after a queue was emptied, if its jobs come back.
pub(super) fn note_of_all(app: &App, queue: &str) -> Option<String> {
    app.jobs.all_come_back(queue).map(str::to_owned)
}
