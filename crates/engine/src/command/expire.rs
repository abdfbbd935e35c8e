//! Commands on expiries (`EXPIRE`, `TTL` …). All effects carry absolute times.

use bytes::Bytes;

use super::args::int;
use crate::db::Db;
use crate::error::{Error, Result, expire_time};
use crate::reply::Reply;

/// The unit of an expiry argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds from now.
    InSeconds,
    /// Milliseconds from now.
    InMs,
    /// Seconds since 1970.
    AtSeconds,
    /// Milliseconds since 1970.
    AtMs,
}

impl Unit {
    /// Converts to milliseconds since 1970; `None` if out of range.
    fn to_ms(self, value: i64, now_ms: i64) -> Option<i64> {
        let ms = match self {
            Self::InSeconds | Self::AtSeconds => value.checked_mul(1000)?,
            Self::InMs | Self::AtMs => value,
        };
        match self {
            Self::InSeconds | Self::InMs => ms.checked_add(now_ms),
            Self::AtSeconds | Self::AtMs => Some(ms),
        }
    }
}

/// Parses the expiry option of a string command, which must be positive.
pub(super) fn at_ms(db: &Db, unit: Unit, text: &[u8], command: &str) -> Result<i64> {
    let value = int(text)?;
    let at = unit.to_ms(value, db.now_ms()).filter(|_| value > 0);
    at.ok_or_else(|| expire_time(command))
}

pub(super) fn expire(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    expire_key(db, args, Unit::InSeconds, "expire", reply)
}

pub(super) fn pexpire(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    expire_key(db, args, Unit::InMs, "pexpire", reply)
}

pub(super) fn expireat(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    expire_key(db, args, Unit::AtSeconds, "expireat", reply)
}

pub(super) fn pexpireat(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    expire_key(db, args, Unit::AtMs, "pexpireat", reply)
}

pub(super) fn ttl(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let now = db.now_ms();
    moment(db, args, reply, |at| (at.saturating_sub(now).max(0).saturating_add(500)) / 1000)
}

pub(super) fn pttl(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let now = db.now_ms();
    moment(db, args, reply, |at| at.saturating_sub(now).max(0))
}

pub(super) fn expiretime(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    moment(db, args, reply, |at| at.saturating_add(500) / 1000)
}

pub(super) fn pexpiretime(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    moment(db, args, reply, |at| at)
}

pub(super) fn persist(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let expires = db.expiry(&args[1]).flatten().is_some();
    if expires {
        db.set_expiry(&args[1], None);
    }
    reply.int(expires.into());
    Ok(())
}

fn moment(db: &mut Db, args: &[Bytes], reply: &mut Reply, show: impl Fn(i64) -> i64) -> Result {
    reply.int(match db.expiry(&args[1]) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => show(at),
    });
    Ok(())
}

/// The conditions `NX`, `XX`, `GT` and `LT` of the `EXPIRE` family.
#[derive(Debug, Default)]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Conditions {
    fn parse(words: &[Bytes]) -> Result<Self> {
        let mut found = Self::default();
        for word in words {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => found.nx = true,
                b"XX" => found.xx = true,
                b"GT" => found.gt = true,
                b"LT" => found.lt = true,
                _ => {
                    let text = [b"ERR Unsupported option ".as_slice(), word].concat();
                    return Err(Error::Quoting(text));
                }
            }
        }
        if found.nx && (found.xx || found.gt || found.lt) {
            return Err(Error::Fixed(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if found.gt && found.lt {
            return Err(Error::Fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(found)
    }

    fn allow(&self, old: Option<i64>, new: i64) -> bool {
        !(self.nx && old.is_some()
            || self.xx && old.is_none()
            || self.gt && old.is_none_or(|old| new <= old)
            || self.lt && old.is_some_and(|old| new >= old))
    }
}

fn expire_key(db: &mut Db, args: &[Bytes], unit: Unit, command: &str, reply: &mut Reply) -> Result {
    let key = &args[1];
    let conditions = Conditions::parse(&args[3..])?;
    let at = unit.to_ms(int(&args[2])?, db.now_ms()).ok_or_else(|| expire_time(command))?;
    let allowed = db.expiry(key).is_some_and(|old| conditions.allow(old, at));
    if allowed && at <= db.now_ms() {
        db.remove(key);
        db.record(&[b"DEL", &**key]);
    } else if allowed {
        db.set_expiry(key, Some(at));
        db.record(&[b"PEXPIREAT", &**key, at.to_string().as_bytes()]);
    }
    reply.int(allowed.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_with_the_expiry_there_is() {
        for (word, old, new, allowed) in [
            ("NX", None, 5, true),
            ("NX", Some(9), 5, false),
            ("XX", None, 5, false),
            ("XX", Some(9), 5, true),
            ("GT", None, 5, false),
            ("GT", Some(4), 5, true),
            ("LT", None, 5, true),
            ("LT", Some(5), 5, false),
        ] {
            let conditions = Conditions::parse(&[Bytes::from_static(word.as_bytes())]).unwrap();
            assert_eq!(conditions.allow(old, new), allowed, "{word} {old:?}");
        }
    }
}
