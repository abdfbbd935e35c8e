//! Everything that a scanner needs to decide without a network, or what has changed since it last asked.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stampede_model::{CheckInList, EventId, ListId, Principal, PublicKey};
use stampede_store::{AdmissionMark, Snapshot};
use stampede_wire::checkin::bundle::{Bundle, BundleKey, BundleList};
use stampede_wire::checkin::packed::{pack_bitmap, pack_generations, pack_serials};

use crate::present::Door;
use crate::{CheckIn, Error, answers, now};

/// The result of reading a bundle.
#[derive(Debug)]
pub enum BundleRead {
    /// The bundle.
    Ready(Box<Bundle>),
    /// The caller may not let guests in at the event.
    Forbidden,
    /// There is no such event.
    NotFound,
    /// The request names no event, and the key is limited to none.
    NoTarget,
}

impl CheckIn {
    /// The bundle of an event; with `since`, only changes after that number, if they are enough.
    pub async fn bundle(
        &self,
        caller: &Principal,
        target: Option<EventId>,
        since: Option<u64>,
    ) -> Result<BundleRead, Error> {
        let event = match self.door(caller, target).await? {
            None => return Ok(BundleRead::NoTarget),
            Some(Door::Forbidden) => return Ok(BundleRead::Forbidden),
            Some(Door::NotFound) => return Ok(BundleRead::NotFound),
            Some(Door::At(event)) => event,
        };
        let store = &self.shared.store;
        let Some(snapshot) = store.check_in_snapshot(event.id, since).await? else {
            return Ok(BundleRead::NotFound);
        };
        let device = self.own_device(caller).await?;
        let bundle = Bundle {
            target: event.id,
            name: event.details.name.clone(),
            seq: snapshot.seq,
            since: since.filter(|_| !snapshot.full),
            full: snapshot.full,
            server_time: now(),
            keys: snapshot.keys.iter().map(bundle_key).collect(),
            gates: snapshot.gates.iter().cloned().map(Into::into).collect(),
            device: device.map(answers::device),
            capacity: snapshot.last_serial,
            voided: pack_serials(
                snapshot.tickets.iter().filter(|t| t.generation.is_none()).map(|t| t.serial),
            ),
            generations: pack_generations(
                snapshot.tickets.iter().filter_map(|t| Some((t.serial, t.generation?))),
            ),
            blocked: pack_serials(snapshot.blocked.iter().copied()),
            admitted: by_list(&snapshot, |list, mark| list.rules.is_used_up(mark.state)),
            readmitted: match snapshot.full {
                true => BTreeMap::new(),
                false => by_list(&snapshot, |list, mark| !list.rules.is_used_up(mark.state)),
            },
            lists: snapshot.lists.iter().map(|list| bundle_list(list, &snapshot)).collect(),
            checksum: String::new(),
        };
        Ok(BundleRead::Ready(Box::new(bundle.sealed())))
    }
}

fn bundle_key(key: &PublicKey) -> BundleKey {
    BundleKey {
        kid: key.number,
        public_key: URL_SAFE_NO_PAD.encode(key.to_bytes()),
        revoked: key.is_revoked(),
    }
}

fn bundle_list(list: &CheckInList, snapshot: &Snapshot) -> BundleList {
    let members = (!list.rules.includes_all()).then(|| {
        let is_member = list.rules.membership();
        let on_list = snapshot.seats.iter().filter_map(|(serial, batch, seat)| {
            is_member(*batch, seat.as_deref()).then_some(*serial)
        });
        pack_bitmap(on_list, snapshot.last_serial)
    });
    BundleList { list: list.clone().into(), members }
}

/// For each list, the serials of tickets whose state has this property.
fn by_list(
    snapshot: &Snapshot,
    has: impl Fn(&CheckInList, &AdmissionMark) -> bool,
) -> BTreeMap<ListId, String> {
    let mut all = BTreeMap::new();
    for list in &snapshot.lists {
        let marks = snapshot.admissions.iter().filter(|mark| mark.list == list.id);
        let serials: Vec<u32> =
            marks.filter(|mark| has(list, mark)).map(|mark| mark.serial).collect();
        if !serials.is_empty() {
            all.insert(list.id, pack_serials(serials));
        }
    }
    all
}
