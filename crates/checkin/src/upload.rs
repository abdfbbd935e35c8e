//! Scans that a device decided without a network, sent later.
//!
//! A device's clock may be wrong. Its clock at the moment of sending is part of the request, so each moment is
//! corrected by the difference to the server's clock. Scans are recorded in the order of the corrected moments.
//! Each is idempotent by its nonce, so an upload can be repeated, whole or in parts.

use stampede_model::{EventId, Principal, ScanResult, Timestamp};
use stampede_store::{NewScan, Offline};
use stampede_wire::checkin::scans::{Redeemed, Uploaded, UploadedScan};

use crate::present::Door;
use crate::redeem::{Happened, OnItsWay, answered};
use crate::{CheckIn, Error, Refused, ScanRequest, now};

/// Most scans of one upload.
pub const MAX_UPLOAD: usize = 1_000;

/// Scans that share one transaction with those of others.
const CHUNK: usize = 250;

/// A scan with the decision of the device.
#[derive(Debug, Clone)]
pub struct OfflineScan {
    /// The scan; it has a nonce and the moment by the device's clock.
    pub request: ScanRequest,
    /// What the device decided.
    pub verdict: ScanResult,
}

/// An upload.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The device's clock when it sent the upload.
    pub device_now: Timestamp,
    /// How many scans the device has not sent yet.
    pub unsent: Option<u32>,
    /// The event; `None`: the key's, or else that of each ticket.
    pub target: Option<EventId>,
    /// The scans, in any order.
    pub scans: Vec<OfflineScan>,
}

impl CheckIn {
    /// Records scans that were decided without the server. The error names the first scan that is a mistake of the
    /// client; the scans of earlier moments are recorded then.
    pub async fn upload(
        &self,
        caller: &Principal,
        upload: Upload,
    ) -> Result<Result<Uploaded, (usize, Refused)>, Error> {
        let now = now();
        let target = match self.door(caller, upload.target).await? {
            None => None,
            Some(Door::At(event)) => Some(event.id),
            Some(Door::Forbidden) => return Ok(Err((0, Refused::Forbidden))),
            Some(Door::NotFound) => return Ok(Err((0, Refused::NoSuchEvent))),
        };
        let mut results: Vec<Option<Redeemed>> = vec![None; upload.scans.len()];
        let mut waiting = Vec::new();
        for (index, scan) in upload.scans.iter().enumerate() {
            let at = corrected(scan.request.device_at, upload.device_now, now);
            let happened = Happened { at, offline: Some(Offline { verdict: scan.verdict }) };
            match self.on_its_way(caller, target, &scan.request, happened).await? {
                OnItsWay::Scan(new, event) => waiting.push((index, new, event)),
                OnItsWay::Answered(redeemed) => results[index] = Some(*redeemed),
            }
        }
        waiting.sort_by_key(|(index, scan, _)| (scan.at, *index));
        for chunk in waiting.chunks(CHUNK) {
            let scans: Vec<NewScan> = chunk.iter().map(|(_, scan, _)| (**scan).clone()).collect();
            let recorded = self.shared.commits.commit(scans).await.map_err(|e| Error::from(&*e))?;
            for ((index, _, event), recorded) in chunk.iter().zip(recorded) {
                match answered(recorded, event) {
                    Ok(redeemed) => results[*index] = Some(redeemed),
                    Err(refused) => return Ok(Err((*index, refused))),
                }
            }
        }
        if let Some(key) = caller.key {
            self.shared.store.touch_device(key, upload.unsent, now).await?;
        }
        let results = upload.scans.into_iter().zip(results).filter_map(|(scan, redeemed)| {
            Some(UploadedScan { nonce: scan.request.nonce?, redeemed: redeemed? })
        });
        Ok(Ok(Uploaded { results: results.collect(), server_time: now }))
    }
}

/// A moment of the device's clock by the server's; never in the future.
fn corrected(at: Option<Timestamp>, device_now: Timestamp, now: Timestamp) -> Timestamp {
    let Some(at) = at else { return now };
    let ago = device_now.duration_since(at);
    let moment = now.checked_sub(ago).unwrap_or(now).min(now);
    Timestamp::from_millisecond(moment.as_millisecond()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_by_a_day_does_not_matter() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let day = 86_400;
        for wrong in [-day, -1, 0, 1, day, 400 * day] {
            let scanned = Some(at(wrong - 300));
            assert_eq!(corrected(scanned, at(wrong), at(0)), at(-300), "{wrong}");
        }
        assert_eq!(corrected(Some(at(10)), at(0), at(0)), at(0), "nothing happens in the future");
        assert_eq!(corrected(None, at(0), at(5)), at(5));
    }
}
