//! Public keys of identity providers: read from PEM or JWKS, each for one algorithm.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use tokio_rustls::rustls::pki_types::SubjectPublicKeyInfoDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::token::Algorithm;

/// Most keys of one file or answer.
const MOST_KEYS: usize = 100;
/// Bytes before the point of a P-256 key in its SubjectPublicKeyInfo (RFC 5480).
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Bytes before an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410).
const ED25519_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The algorithm of an RSA key in its SubjectPublicKeyInfo (RFC 3279).
const RSA_ALGORITHM: [u8; 15] =
    [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

/// A public key that verifies tokens of one algorithm.
#[derive(Clone)]
pub struct PublicKey {
    pub(super) kid: Option<String>,
    pub(super) algorithm: Algorithm,
    bytes: Bytes,
}

#[derive(Clone)]
enum Bytes {
    /// Modulus and exponent.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An RSAPublicKey, as DER.
    RsaDer(Vec<u8>),
    /// A point of P-256, uncompressed.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({}, {:?})", self.algorithm, self.kid)
    }
}

impl PublicKey {
    /// Whether this key made the signature.
    pub(super) fn verifies(&self, signed: &str, signature: &[u8]) -> bool {
        let signed = signed.as_bytes();
        let rsa = &RSA_PKCS1_2048_8192_SHA256;
        match &self.bytes {
            Bytes::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(rsa, signed, signature),
            Bytes::RsaDer(der) => UnparsedPublicKey::new(rsa, der).verify(signed, signature),
            Bytes::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            Bytes::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(signed, signature),
        }
        .is_ok()
    }

    fn new(kid: Option<String>, bytes: Bytes) -> Self {
        let algorithm = match bytes {
            Bytes::Rsa { .. } | Bytes::RsaDer(_) => Algorithm::Rs256,
            Bytes::P256(_) => Algorithm::Es256,
            Bytes::Ed25519(_) => Algorithm::EdDsa,
        };
        Self { kid, algorithm, bytes }
    }
}

/// Reads a file of public keys: a JWKS, or PEM blocks. The error says what would be right.
pub fn parse_keys(file: &[u8]) -> Result<Vec<PublicKey>, String> {
    let keys = match file.trim_ascii_start().first() {
        Some(b'{') => parse_jwks(file)?,
        _ => parse_pem(file)?,
    };
    if keys.is_empty() {
        return Err("has no public key for RS256, ES256 or EdDSA; it needs PEM blocks \
             \"BEGIN PUBLIC KEY\" or a JWKS"
            .to_owned());
    }
    Ok(keys)
}

fn parse_pem(file: &[u8]) -> Result<Vec<PublicKey>, String> {
    let blocks = SubjectPublicKeyInfoDer::pem_slice_iter(file).take(MOST_KEYS);
    let key = |block: Result<SubjectPublicKeyInfoDer<'_>, _>| match block {
        Ok(der) => bytes_of(&der).map(|bytes| PublicKey::new(None, bytes)).ok_or_else(|| {
            "has a key that is neither RSA of 2048 to 8192 bits, nor P-256, nor Ed25519".to_owned()
        }),
        Err(error) => Err(format!("cannot be read as PEM: {error:?}")),
    };
    blocks.map(key).collect()
}

/// The key of a SubjectPublicKeyInfo. The forms are fixed but for the lengths of RSA keys.
fn bytes_of(der: &[u8]) -> Option<Bytes> {
    if let Some(point) = der.strip_prefix(&P256_PREFIX) {
        return (point.len() == 65 && point[0] == 4).then(|| Bytes::P256(point.to_vec()));
    }
    if let Some(key) = der.strip_prefix(&ED25519_PREFIX) {
        return (key.len() == 32).then(|| Bytes::Ed25519(key.to_vec()));
    }
    let body = with_length(der, 0x30)?.strip_prefix(&RSA_ALGORITHM)?;
    let key = with_length(body, 0x03)?.strip_prefix(&[0])?;
    Some(Bytes::RsaDer(key.to_vec()))
}

/// The content of a DER value with a length of two bytes, which ends with the input.
fn with_length(der: &[u8], tag: u8) -> Option<&[u8]> {
    let [first, 0x82, high, low, content @ ..] = der else { return None };
    let length = usize::from(*high) << 8 | usize::from(*low);
    (*first == tag && content.len() == length).then_some(content)
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// Reads a JWKS. Keys of other kinds and for other purposes are left out.
pub(super) fn parse_jwks(text: &[u8]) -> Result<Vec<PublicKey>, String> {
    let set: Set = serde_json::from_slice(text)
        .map_err(|error| format!("is no JWKS (an object with a list of keys): {error}"))?;
    if set.keys.len() > MOST_KEYS {
        return Err(format!("has {} keys; at most {MOST_KEYS} are read", set.keys.len()));
    }
    Ok(set.keys.into_iter().filter_map(|key| usable(serde_json::from_value(key).ok()?)).collect())
}

fn usable(jwk: Jwk) -> Option<PublicKey> {
    let decoded = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
    let bytes = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => Bytes::Rsa { n: trimmed(decoded(&jwk.n)?), e: trimmed(decoded(&jwk.e)?) },
        ("EC", Some("P-256")) => {
            let (x, y) = (decoded(&jwk.x)?, decoded(&jwk.y)?);
            let fits = x.len() == 32 && y.len() == 32;
            Bytes::P256(fits.then(|| [&[4][..], &x, &y].concat())?)
        }
        ("OKP", Some("Ed25519")) => Bytes::Ed25519(decoded(&jwk.x).filter(|key| key.len() == 32)?),
        _ => return None,
    };
    let key = PublicKey::new(jwk.kid, bytes);
    let for_signatures = jwk.purpose.is_none_or(|purpose| purpose == "sig");
    let same = jwk.alg.is_none_or(|alg| Algorithm::named(&alg) == Some(key.algorithm));
    (for_signatures && same).then_some(key)
}

/// A number without the zeros before it.
fn trimmed(number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn algorithms(text: &str) -> Result<Vec<String>, String> {
        let keys = parse_keys(text.as_bytes())?;
        Ok(keys.iter().map(|key| key.algorithm.to_string()).collect())
    }

    #[test]
    fn a_jwks_has_keys_for_signatures_and_never_a_secret() {
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let set = json!({ "keys": [
            { "kty": "oct", "k": x, "alg": "HS256" },
            { "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "1" },
            { "kty": "OKP", "crv": "X25519", "x": x },
            { "kty": "EC", "crv": "P-256", "x": x, "y": x, "use": "sig", "alg": "ES256" },
            { "kty": "EC", "crv": "P-256", "x": x, "y": "AA" },
            { "kty": "EC", "crv": "P-384", "x": x, "y": x },
            { "kty": "RSA", "n": x, "e": "AQAB", "use": "enc" },
            { "kty": "RSA", "n": x, "e": "AQAB", "alg": "RS512" },
            { "kty": "RSA", "n": x, "e": "AQAB", "alg": "RS256" },
            { "kty": "RSA", "n": x, "e": "AQAB", "alg": "HS256" },
            7, {},
        ] });
        let found = algorithms(&set.to_string()).unwrap();
        assert_eq!(found, ["EdDSA", "ES256", "RS256"]);
    }

    #[test]
    fn a_file_without_a_usable_key_is_told_what_it_needs() {
        for file in
            ["", "hello", "{}", r#"{"keys": []}"#, r#"{"keys": [{"kty": "oct", "k": "AA"}]}"#]
        {
            assert!(algorithms(file).is_err(), "{file}");
        }
        let short = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----\n";
        assert!(algorithms(short).unwrap_err().contains("neither RSA"), "{short}");
    }
}
