//! Verifying without database and network: with the keys of an event, or with a bundle of its check-in.
//!
//! A bundle also knows which tickets were void or replaced when it was read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stampede_model::{Claims, KeyRing, PublicKey, Refusal, Timestamp, Token};
use stampede_wire::checkin::bundle::{Bundle, BundleKey};
use stampede_wire::checkin::packed::{unpack_generations, unpack_serials};

/// What a file knows of an event's tickets.
pub(super) struct Known {
    pub(super) ring: KeyRing,
    validity: Option<Validity>,
}

/// What a bundle knows besides the keys.
struct Validity {
    read_at: Timestamp,
    void: BTreeSet<u32>,
    generations: BTreeMap<u32, u32>,
    blocked: BTreeSet<u32>,
}

/// Reads files with keys or bundles.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Known>> {
    files.iter().map(|file| read_one(file).with_context(|| file.display().to_string())).collect()
}

fn read_one(file: &Path) -> Result<Known> {
    let text = std::fs::read_to_string(file).context("cannot read the file")?;
    match serde_json::from_str::<Bundle>(&text) {
        Ok(bundle) => of_bundle(&bundle),
        // A bundle that is damaged must not pass for a file of keys.
        Err(error) if text.contains("\"checksum\"") => {
            bail!("not a bundle as GET /api/checkin/bundle gives it: {error}")
        }
        Err(_) => Ok(Known { ring: KeyRing::from_json(&text)?, validity: None }),
    }
}

fn of_bundle(bundle: &Bundle) -> Result<Known> {
    if !bundle.is_whole() {
        bail!("the bundle was cut or altered: its checksum is wrong; read it again");
    }
    if !bundle.full {
        bail!("the bundle holds only changes; read it without ?since=");
    }
    let keys: Option<Vec<PublicKey>> =
        bundle.keys.iter().map(|key| public_key(key, bundle.server_time)).collect();
    let keys = keys.context("a key of the bundle is not an Ed25519 key")?;
    let void = unpack_serials(&bundle.voided).context("the void tickets are damaged")?;
    let generations =
        unpack_generations(&bundle.generations).context("the generations are damaged")?;
    let blocked = unpack_serials(&bundle.blocked).context("the blocked tickets are damaged")?;
    let validity = Validity {
        read_at: bundle.server_time,
        void: void.into_iter().collect(),
        generations: generations.into_iter().collect(),
        blocked: blocked.into_iter().collect(),
    };
    let ring = KeyRing::new(bundle.target, bundle.name.clone(), keys)?;
    Ok(Known { ring, validity: Some(validity) })
}

fn public_key(key: &BundleKey, read_at: Timestamp) -> Option<PublicKey> {
    let bytes = URL_SAFE_NO_PAD.decode(&key.public_key).ok()?;
    PublicKey::new(
        key.kid,
        bytes.as_slice().try_into().ok()?,
        read_at,
        key.revoked.then_some(read_at),
    )
}

/// The verdict about one text.
pub(super) struct Verified<'k> {
    /// What a genuine token says, and the file that proved it.
    pub(super) proven: Option<(Claims, &'k Known)>,
    /// Why it does not admit.
    pub(super) refusal: Option<Refusal>,
}

/// Compares a text with what the files know.
pub(super) fn verify<'k>(text: &str, files: &'k [Known]) -> Verified<'k> {
    let proven = text.parse::<Token>().and_then(|token| {
        let known = files.iter().find(|known| known.ring.event() == token.event());
        let known = known.ok_or(Refusal::ForeignEvent)?;
        Ok((token.verify(&known.ring)?, known))
    });
    match proven {
        Err(refusal) => Verified { proven: None, refusal: Some(refusal) },
        Ok((claims, known)) => {
            Verified { refusal: known.refusal(&claims), proven: Some((claims, known)) }
        }
    }
}

impl Known {
    fn refusal(&self, claims: &Claims) -> Option<Refusal> {
        let validity = self.validity.as_ref()?;
        let generation = validity.generations.get(&claims.serial).copied().unwrap_or(1);
        if validity.void.contains(&claims.serial) {
            Some(Refusal::Void)
        } else if claims.generation != generation {
            Some(Refusal::Superseded)
        } else if validity.blocked.contains(&claims.serial) {
            Some(Refusal::Blocked)
        } else {
            None
        }
    }

    /// The source of a verdict, for programs.
    pub(super) fn source(&self) -> &'static str {
        if self.validity.is_some() { "bundle" } else { "keys" }
    }

    /// What could not be looked up, for people.
    pub(super) fn caveat(&self) -> String {
        match &self.validity {
            Some(validity) => format!(
                "Verified with a bundle of {}: the holder, and what happened later, only the server knows",
                validity.read_at
            ),
            None => {
                "Verified with the keys alone: the holder, and whether the ticket was withdrawn or \
                     replaced, only the server knows"
                    .to_owned()
            }
        }
    }
}
