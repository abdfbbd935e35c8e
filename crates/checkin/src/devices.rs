//! Devices and their enrolment: a phone gets a key of its own by a code that works once.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_model::{Event, GateId, KeyHash, KeyId, ListId, Principal, Role, Scope, Timestamp};
use stampede_store::{Device, NewDevice, NewKey};
use stampede_wire::checkin::devices::{
    Device as ShownDevice, Devices, DoorEvent, Enrolled, Me, NewDevice as ShownNewDevice,
};

use crate::{CheckIn, Error, Written, answers, now};

/// How long an enrolment code works.
const CODE_PERIOD: Duration = Duration::from_secs(10 * 60);
/// Characters of a code: 80 random bits, too many to guess in ten minutes.
const CODE_LENGTH: usize = 16;
/// Characters that nobody takes for others.
const CODE_ALPHABET: &[u8; 32] = b"ABCDEFGHJKMNPQRSTUVWXYZ023456789";
/// Wrong codes a minute before further ones are told to wait.
const WRONG_CODES: u32 = 60;
/// Most events that a key is told of.
const MOST_EVENTS: u32 = 200;

/// A device to be made.
#[derive(Debug, Clone)]
pub struct DeviceRequest {
    /// Its name.
    pub name: String,
    /// The gate where it stands.
    pub gate: Option<GateId>,
    /// The list that it scans for.
    pub list: Option<ListId>,
    /// When its key ends.
    pub expires_at: Option<Timestamp>,
}

/// The result of making a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewDeviceResult {
    /// It is made.
    Made(Box<ShownNewDevice>),
    /// The event has no such gate.
    NoSuchGate,
    /// The event has no such list.
    NoSuchList,
}

/// The result of an enrolment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enrolment {
    /// The device has a key.
    Done(Box<Enrolled>),
    /// The device has this key already: an equal request came before, and its answer was lost.
    Again(Box<Enrolled>),
    /// The code is wrong, used or too old.
    Wrong,
    /// Too many codes were wrong in the last minute.
    TooManyWrong,
}

impl CheckIn {
    /// The devices of an event.
    pub async fn devices(&self, event: &Event) -> Result<Devices, Error> {
        let devices = self.shared.store.devices(event.id).await?;
        Ok(Devices { devices: devices.into_iter().map(answers::device).collect() })
    }

    /// Makes a device with a key and an enrolment code.
    pub async fn create_device(
        &self,
        event: &Event,
        request: DeviceRequest,
    ) -> Result<NewDeviceResult, Error> {
        let store = &self.shared.store;
        if let Some(gate) = request.gate
            && store.gate(gate).await?.is_none_or(|gate| gate.event_id != event.id)
        {
            return Ok(NewDeviceResult::NoSuchGate);
        }
        if let Some(list) = request.list
            && store.check_in_list(list).await?.is_none_or(|list| list.event_id != event.id)
        {
            return Ok(NewDeviceResult::NoSuchList);
        }
        let (now, secret, code) = (now(), new_key(), new_code());
        let scope = Scope { event: Some(event.id), queues: None };
        let principal = Principal { scope, ..Principal::new(event.owner.clone(), Role::Scanner) };
        let device = NewDevice {
            key: NewKey {
                id: KeyId::generate(),
                hash: KeyHash::of(&secret),
                principal,
                name: request.name,
                expires_at: request.expires_at,
            },
            event_id: event.id,
            gate: request.gate,
            list: request.list,
            enrol_code: KeyHash::of(&code),
            enrol_until: now.checked_add(CODE_PERIOD).unwrap_or(now),
        };
        store.insert_device(&device, now).await?;
        let Some(made) = store.device(device.key.id).await? else {
            return Err(Error::Internal("a new device is gone".to_owned()));
        };
        Ok(NewDeviceResult::Made(Box::new(ShownNewDevice {
            device: answers::device(made),
            key: secret,
            enrol_url: format!("/gate#enrol={code}"),
            enrol_code: code,
            enrol_until: device.enrol_until,
        })))
    }

    /// A device, to check who may change it.
    pub async fn device(&self, id: KeyId) -> Result<Option<ShownDevice>, Error> {
        Ok(self.shared.store.device(id).await?.map(answers::device))
    }

    /// Revokes a device's key; with `seen`, only that version of it.
    pub async fn revoke_device(
        &self,
        id: KeyId,
        seen: Option<Timestamp>,
    ) -> Result<Written<()>, Error> {
        Ok(Written::of(self.shared.store.revoke_device_as_seen(id, seen, now()).await?))
    }

    /// The device that a code is for, with its owner; `None`: the code is wrong, used or too old.
    pub async fn device_of_code(&self, code: &str) -> Result<Option<(ShownDevice, String)>, Error> {
        let device = self.shared.store.device_of_code(&hash_of_code(code), now()).await?;
        Ok(device.map(|device| {
            let owner = device.owner.clone();
            (answers::device(device), owner)
        }))
    }

    /// Gives the device of a code a fresh key; the key that was shown before stops working.
    ///
    /// The key of a request with a nonce is derived from code and nonce, so that the same request, whose answer was lost, gets
    /// the same key for ten minutes. Only its hash is kept.
    pub async fn enrol(&self, code: &str, nonce: Option<&str>) -> Result<Enrolment, Error> {
        let store = &self.shared.store;
        let secret = match nonce {
            Some(nonce) => {
                format!("stp_{}", hex::encode(store.enrolment_secret(&typed(code), nonce)?))
            }
            None => new_key(),
        };
        let code = hash_of_code(code);
        match store.enrol_device(&code, &KeyHash::of(&secret), now()).await? {
            Some(device) => {
                let device = answers::device(device);
                Ok(Enrolment::Done(Box::new(Enrolled { key: secret, device })))
            }
            None if nonce.is_some() => match self.enrolled_with(&secret).await? {
                Some(device) => {
                    let device = answers::device(device);
                    Ok(Enrolment::Again(Box::new(Enrolled { key: secret, device })))
                }
                None => Ok(self.wrong_code()),
            },
            None => Ok(self.wrong_code()),
        }
    }

    fn wrong_code(&self) -> Enrolment {
        match self.shared.wrong_codes.one_more() {
            true => Enrolment::Wrong,
            false => Enrolment::TooManyWrong,
        }
    }

    /// The device that got this key in the last ten minutes, and still has it.
    async fn enrolled_with(&self, secret: &str) -> Result<Option<Device>, Error> {
        let (store, now) = (&self.shared.store, now());
        let Some(found) = store.principal(&KeyHash::of(secret), now).await? else {
            return Ok(None);
        };
        let Some(key) = found.key else { return Ok(None) };
        let device = store.device(key).await?;
        let since = now.checked_sub(CODE_PERIOD).unwrap_or(now);
        Ok(device.filter(|device| device.updated_at >= since))
    }

    /// What a key may do at the door.
    pub async fn me(&self, caller: &Principal) -> Result<Me, Error> {
        let store = &self.shared.store;
        let events = match caller.scope.event {
            Some(only) => store.event(only).await?.into_iter().collect(),
            None => store.events(caller.visible_owner(), None, MOST_EVENTS).await?,
        };
        let events = events.into_iter().filter(|event| caller.may_admit(&event.owner, event.id));
        let device = self.own_device(caller).await?;
        Ok(Me {
            device: device.map(answers::device),
            user: caller.user.clone(),
            role: caller.role,
            events: events.map(door_event).collect(),
            server_time: now(),
        })
    }

    /// The device of the caller's key, which has just been seen.
    pub(crate) async fn own_device(&self, caller: &Principal) -> Result<Option<Device>, Error> {
        let Some(key) = caller.key else { return Ok(None) };
        let Some(device) = self.shared.store.device(key).await? else { return Ok(None) };
        self.shared.store.touch_device(key, None, now()).await?;
        Ok(Some(device))
    }
}

fn door_event(event: Event) -> DoorEvent {
    let details = event.details;
    DoorEvent {
        id: event.id,
        name: details.name,
        starts_at: details.starts_at,
        time_zone: details.time_zone,
    }
}

/// The hash of a code as people type it.
fn hash_of_code(code: &str) -> KeyHash {
    KeyHash::of(&typed(code))
}

/// A code as people type it, in the form in which it was shown.
fn typed(code: &str) -> String {
    let typed = code.chars().filter(|c| !c.is_whitespace() && *c != '-');
    typed.map(|c| c.to_ascii_uppercase()).collect()
}

fn new_key() -> String {
    format!("stp_{}", hex::encode(rand::random::<[u8; 32]>()))
}

fn new_code() -> String {
    let bytes: [u8; CODE_LENGTH] = rand::random();
    bytes.iter().map(|byte| char::from(CODE_ALPHABET[usize::from(byte % 32)])).collect()
}

/// Counts wrong codes. Right ones are never refused, so nobody can lock others out.
#[derive(Default)]
pub(crate) struct WrongCodes {
    minute: Mutex<Option<(Instant, u32)>>,
}

impl WrongCodes {
    /// Counts one more; `false` if there were too many in this minute.
    fn one_more(&self) -> bool {
        let mut minute = self.minute.lock();
        let (since, count) = match *minute {
            Some((since, count)) if since.elapsed() < Duration::from_secs(60) => (since, count + 1),
            _ => (Instant::now(), 1),
        };
        *minute = Some((since, count));
        count <= WRONG_CODES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_wrong_codes_are_told_to_wait() {
        let wrong = WrongCodes::default();
        let told: Vec<bool> = (0..WRONG_CODES + 2).map(|_| wrong.one_more()).collect();
        assert_eq!(told.iter().filter(|ok| **ok).count(), WRONG_CODES as usize);
        assert!(told.is_sorted_by_key(|ok| !ok));
    }

    #[test]
    fn codes_are_random_and_easy_to_read() {
        let codes: std::collections::HashSet<String> = (0..100).map(|_| new_code()).collect();
        assert_eq!(codes.len(), 100);
        assert!(
            codes
                .iter()
                .all(|code| code.len() == CODE_LENGTH && !code.contains(['O', '1', 'I', 'L']))
        );
    }
}
