//! A compiled template as bytes that can be stored and sent: self-contained, versioned, checked.
//!
//! ```text
//!   bytes 0 … 3   4 … 5              6 … 37               38 …
//!         STPL    version, u16 LE    SHA-256 of the body  body (postcard)
//! ```
//!
//! The hash finds damage, not malice: whoever can write a body can write its hash. So everything in
//! the body is checked before anyone uses it; see `blob/check.rs`.

mod check;

use sha2::{Digest, Sha256};

use crate::compiled::Compiled;

pub(crate) use check::check;

/// First bytes of every compiled template.
const MAGIC: &[u8; 4] = b"STPL";
/// Changes with every change of [`crate::compiled`] and of what it means.
pub const VERSION: u16 = 1;
const HEADER: usize = 4 + 2 + 32;
/// Largest blob that is read.
pub const MAX_BYTES: usize = 64 << 20;

/// Why bytes are not a compiled template that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Something else, or only the beginning of one.
    #[error("this is not a compiled template")]
    NotATemplate,
    /// Made by another version of Stampede.
    #[error(
        "the template was compiled in format {found}, this version reads {VERSION}: publish it again"
    )]
    OtherVersion {
        /// The format it is in.
        found: u16,
    },
    /// Bytes were changed on the way.
    #[error("the compiled template is damaged: its checksum is wrong")]
    Damaged,
    /// The checksum is right, but the content makes no sense.
    #[error("the compiled template is inconsistent: {0}")]
    Inconsistent(String),
}

/// Writes a compiled template.
pub fn encode(compiled: &Compiled) -> Vec<u8> {
    let body = serialise(compiled);
    let mut blob = Vec::with_capacity(HEADER + body.len());
    blob.extend_from_slice(MAGIC);
    blob.extend_from_slice(&VERSION.to_le_bytes());
    blob.extend_from_slice(&Sha256::digest(&body));
    blob.extend_from_slice(&body);
    blob
}

/// Plain data as postcard writes it.
pub(crate) fn serialise(data: &impl serde::Serialize) -> Vec<u8> {
    // Plain data in memory always serialises.
    postcard::serialize_with_flavor(data, Growing(Vec::new())).unwrap_or_default()
}

/// Memory that grows while it is written to.
struct Growing(Vec<u8>);

impl postcard::ser_flavors::Flavor for Growing {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// Reads a compiled template and checks all of it.
pub fn decode(blob: &[u8]) -> Result<Compiled, Error> {
    let (header, body) = blob.split_at_checked(HEADER).ok_or(Error::NotATemplate)?;
    let version = header.strip_prefix(MAGIC).ok_or(Error::NotATemplate)?;
    let found = u16::from_le_bytes([version[0], version[1]]);
    if found != VERSION {
        return Err(Error::OtherVersion { found });
    }
    if blob.len() > MAX_BYTES {
        return Err(Error::Inconsistent(format!("it is larger than {MAX_BYTES} bytes")));
    }
    if header[6..] != *Sha256::digest(body) {
        return Err(Error::Damaged);
    }
    let unreadable = |_| Error::Inconsistent("its body cannot be read".to_owned());
    let (compiled, rest) = postcard::take_from_bytes::<Compiled>(body).map_err(unreadable)?;
    if !rest.is_empty() {
        return Err(Error::Inconsistent("something follows its body".to_owned()));
    }
    if let Compiled::Stamped(stamped) = &compiled {
        check(stamped).map_err(Error::Inconsistent)?;
    }
    Ok(compiled)
}

/// What tells two compiled templates apart: 32 hexadecimal digits of the hash. Any bytes have one.
pub fn content_hash(blob: &[u8]) -> String {
    let hash = match blob.get(6..HEADER) {
        Some(hash) if blob.starts_with(MAGIC) => hash[..16].to_vec(),
        _ => Sha256::digest(blob)[..16].to_vec(),
    };
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
