//! Check-in: lists, gates, devices, scans, bundles for scanners without a network, statistics.
//!
//! | file | answers of |
//! |---|---|
//! | [`setup`] | `/api/events/{id}/lists`, `/api/events/{id}/gates`, `/api/lists/{id}`, `/api/gates/{id}` |
//! | [`devices`] | `/api/events/{id}/devices`, `/api/checkin/enrol`, `/api/checkin/me` |
//! | [`scans`] | `/api/checkin/redeem`, `/api/checkin/undo`, `/api/checkin/scans`, `/api/events/{id}/scans` |
//! | [`bundle`] | `/api/checkin/bundle`, read by `stampede verify --keys` too |
//! | [`statistics`] | `/api/events/{id}/checkin` |

pub mod blocks;
pub mod bundle;
pub mod devices;
pub mod packed;
pub mod scans;
pub mod setup;
pub mod statistics;
