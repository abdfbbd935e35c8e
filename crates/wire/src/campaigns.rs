//! Campaigns: `/api/contracts`, `/api/accounts`, `/api/suppressions`, `stampede campaigns`.
//!
//! The API and older software call a campaign a contract.
//!
//! | file | holds |
//! |---|---|
//! | `accounts.rs` | accounts and their check |
//! | `contracts.rs` | campaigns, their counts, the answers of their verbs |
//! | `audience.rs` | what an import says |
//! | `receipts.rs` | the answer to providers |
//! | `recipients.rs` | recipients, attempts, suppressed addresses |
//! | `trial.rs` | validation, preview, test messages: nothing is changed |
//! | `report.rs` | what has become of a campaign |

mod accounts;
mod audience;
mod contracts;
mod receipts;
mod recipients;
mod report;
mod trial;

pub use self::accounts::{Account, AccountCheck, AccountPage};
pub use self::audience::{Duplicate, ImportColumn, ImportReport, ImportedRow, RowMistake};
pub use self::contracts::{
    Contract, ContractCounts, ContractPage, CreatedContract, PausedContract, SettledRecipients,
};
pub use self::receipts::ReceiptsTaken;
pub use self::recipients::{
    Attempt, Recipient, RecipientLog, RecipientPage, Suppression, SuppressionPage,
    SuppressionsAdded, Unsubscription,
};
pub use self::report::{CodeCount, Minute, Report, TestAttempt};
pub use self::trial::{
    EmptyField, Preview, Segments, TemplateMistake, TestMessage, TooLong, Unsendable, Validation,
};

#[cfg(test)]
mod tests;
