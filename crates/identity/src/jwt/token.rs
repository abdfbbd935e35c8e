//! The three parts of a token: header, claims and signature.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::TokenRefusal;

/// Longest token that is looked at, in bytes.
const LONGEST: usize = 16 << 10;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// HMAC with SHA-256, by a secret.
    Hs256,
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// The algorithm of a name in a header or in a JWKS.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "HS256" => Some(Self::Hs256),
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        })
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<IgnoredAny>,
}

/// A token whose signature is not checked yet.
pub(super) struct Token<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    /// The text that is signed.
    pub(super) signed: &'a str,
    /// The claims, as JSON.
    pub(super) payload: Vec<u8>,
    pub(super) signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// Reads the parts of a token.
    pub(super) fn parse(text: &'a str) -> Result<Self, TokenRefusal> {
        if text.len() > LONGEST {
            return Err(malformed(&format!("it is longer than {LONGEST} bytes")));
        }
        let (signed, signature) =
            text.rsplit_once('.').ok_or_else(|| malformed("it has no dots"))?;
        let (header, payload) =
            signed.split_once('.').ok_or_else(|| malformed("it has one dot"))?;
        let header: Header = serde_json::from_slice(&decoded(header, "header")?)
            .map_err(|_| malformed("its header is no JSON object with an alg"))?;
        if header.crit.is_some() {
            return Err(malformed("its header demands extensions (crit), and none is known"));
        }
        let algorithm = Algorithm::named(&header.alg)
            .ok_or_else(|| TokenRefusal::Algorithm(header.alg.chars().take(20).collect()))?;
        Ok(Self {
            algorithm,
            kid: header.kid,
            signed,
            payload: decoded(payload, "payload")?,
            signature: decoded(signature, "signature")?,
        })
    }
}

fn decoded(part: &str, name: &str) -> Result<Vec<u8>, TokenRefusal> {
    let decoded = URL_SAFE_NO_PAD.decode(part);
    decoded.map_err(|_| malformed(&format!("its {name} is not base64url")))
}

pub(super) fn malformed(why: &str) -> TokenRefusal {
    TokenRefusal::Malformed(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(header: &str) -> Result<Algorithm, TokenRefusal> {
        let text = format!("{}.{}.", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode("{}"));
        Token::parse(&text).map(|token| token.algorithm)
    }

    #[test]
    fn a_header_names_an_algorithm_that_exists() {
        assert_eq!(parse(r#"{"alg":"ES256","typ":"JWT","kid":"1"}"#), Ok(Algorithm::Es256));
        for none in ["none", "None", "NONE", "nOnE", "", "RS512", "HS384", "hs256"] {
            let refused = parse(&format!(r#"{{"alg":"{none}"}}"#));
            assert_eq!(refused, Err(TokenRefusal::Algorithm(none.to_owned())));
        }
    }

    #[test]
    fn what_is_no_token_is_told_so() {
        for header in [
            "",
            "[]",
            r#"{"alg":1}"#,
            "{}",
            r#"{"alg":"RS256","crit":["exp"]}"#,
            r#"{"alg":"RS256"}x"#,
        ] {
            assert!(matches!(parse(header), Err(TokenRefusal::Malformed(_))), "{header}");
        }
        for text in ["..", "a.b.c", "é.é.é", "eyJhbGciOiJSUzI1NiJ9.e30.=", &"x".repeat(99_999)] {
            assert!(matches!(Token::parse(text), Err(TokenRefusal::Malformed(_))), "{text}");
        }
    }
}
