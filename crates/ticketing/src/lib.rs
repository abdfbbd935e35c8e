//! Orders and tickets: everything that is done with them, one file a verb.
//!
//! ```text
//!   place ──▶ store ──▶ queue `tickets` ──▶ jobs/generate_ticket ──▶ generate ──▶ files, store ──▶ announce
//!                          ▲                                                          │
//!                          ├── reconcile: pending tickets without a job               ▼
//!                          └── edit, reissue, remake: the PDF has to be made again   download
//! ```
//!
//! | file | verb |
//! |---|---|
//! | `place.rs` | an order becomes a batch of tickets and jobs |
//! | `upload.rs`, `upload/`, `spool.rs` | a file of guests becomes an order, however large |
//! | `generate.rs`, `jobs/generate_ticket.rs` | the PDF of one ticket; the job that makes it |
//! | `slow_lane.rs` | tickets that take their time share the slots fairly |
//! | `warming.rs` | one ticket makes a template ready; others of it do not hold slots meanwhile |
//! | `suspects.rs` | templates that bring down the processes that work with them |
//! | `remake.rs` | a PDF that is stale, short or missing goes back to the queue |
//! | `edit.rs`, `reissue.rs`, `void.rs`, `delete.rs` | changes of a ticket |
//! | `cancel.rs` | a batch cancelled, or tried again |
//! | `download.rs`, `download/` | one PDF; a batch as ZIP, merged PDF or CSV |
//! | `qr_code.rs` | the QR code of a ticket alone |
//! | `links.rs` | links for people without a key |
//! | `preflight.rs` | warnings before tickets are ordered or edited |
//! | `reconcile.rs` | pending tickets that have no job get one |
//! | `outages.rs` | what is logged while tickets wait |
//! | `counts.rs` | what metrics count |
//! | `announce.rs`, `announce/` | channels and `batch:{id}` in Redis |
//! | `batch_status.rs`, `read.rs`, `verify.rs` | questions |
//!
//! [`Ticketing`] is the one type that callers hold. The store is the truth: jobs, files and what Redis shows
//! can be made again from it.
//!
//! This crate must never name HTTP. It answers with closed results; `api` makes answers of them.

mod announce;
mod batch_status;
mod cancel;
mod completions;
mod counts;
mod delete;
mod download;
mod edit;
mod error;
mod generate;
mod groups;
pub mod jobs;
mod links;
mod outages;
mod place;
mod preflight;
mod qr_code;
mod read;
mod reconcile;
mod reissue;
mod remake;
mod slow_lane;
mod spool;
mod suspects;
mod tasks;
mod test_hooks;
mod ticket_reader;
mod ticketing;
mod upload;
mod verify;
mod void;
mod warming;

pub use delete::EventDeletion;
pub use download::{BatchDownload, BatchFile, BatchFormat, Download, Extent, Pieces};
pub use edit::{Edit, TicketPatch};
pub use error::Error;
pub use jobs::generate_ticket::GenerateTicket;
pub use links::{Linked, OpenedLink};
pub use place::{OrderLine, OrderRequest, Placement};
pub use preflight::{Strictness, Warnings};
pub use qr_code::{CodeFormat, CodePicture};
pub use reconcile::Reconciler;
pub use reissue::Reissue;
pub use spool::{Spool, SpoolFile};
pub use ticketing::{Limits, Parts, Ticketing};
pub use upload::{Purpose, UploadRead, UploadRequest, Uploaded};
pub use verify::verification;
