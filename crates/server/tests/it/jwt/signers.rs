//! Private keys made with openssl, and tokens signed with them.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use ring::{hmac, rsa};
use serde_json::{Value, json};
use stampede_testkit::{TempDir, temp_dir};

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    stampede_model::Timestamp::now().as_second()
}

/// A part of a token.
pub(super) fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token without a signature.
pub(super) fn unsigned(algorithm: &str, claims: &Value) -> String {
    format!("{}.{}.", encoded(&json!({ "alg": algorithm })), encoded(claims))
}

/// A private key.
pub(super) enum Signer {
    Hmac(hmac::Key),
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    pub(super) fn hmac(secret: &str) -> Self {
        Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// The name of its algorithm.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Hmac(_) => "HS256",
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    /// A token without a `kid`.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.token_named(self.name(), claims)
    }

    /// A token whose header names an algorithm, which need not be that of the key.
    pub(super) fn token_named(&self, name: &str, claims: &Value) -> String {
        self.signed(&json!({ "alg": name, "typ": "JWT" }), claims)
    }

    /// A token with a `kid`.
    pub(super) fn token_with(&self, kid: &str, claims: &Value) -> String {
        self.signed(&json!({ "alg": self.name(), "kid": kid }), claims)
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.signature(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn signature(&self, bytes: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Hmac(key) => hmac::sign(key, bytes).as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature).unwrap();
                signature
            }
            Self::Ec(key) => key.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Self::Ed(key) => key.sign(bytes).as_ref().to_vec(),
        }
    }

    /// The public key as an entry of a JWKS.
    fn jwk(&self, kid: &str) -> Value {
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Hmac(_) => panic!("a secret is not published"),
            Self::Rsa(key) => {
                let public = rsa::PublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({ "kty": "RSA", "kid": kid, "use": "sig", "n": part(&public.n), "e": part(&public.e) })
            }
            Self::Ec(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = (part(&point[1..33]), part(&point[33..]));
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "alg": "ES256", "x": x, "y": y })
            }
            Self::Ed(key) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": part(key.public_key().as_ref()) })
            }
        }
    }
}

/// One key of each algorithm.
pub(super) struct Signers {
    pub(super) rsa: Signer,
    pub(super) ec: Signer,
    pub(super) ed: Signer,
    folder: TempDir,
}

impl Signers {
    pub(super) fn make() -> Self {
        let folder = temp_dir();
        let make = |name: &str, options: &str| {
            let file = |ending: &str| folder.path().join(format!("{name}.{ending}"));
            let (key, der, public) = (file("key"), file("der"), file("pem"));
            run(&format!("genpkey {options} -out {}", key.display()));
            // genpkey alone writes another form than PKCS#8 in some versions.
            let (key, out) = (key.display(), der.display());
            run(&format!("pkcs8 -topk8 -nocrypt -in {key} -outform DER -out {out}"));
            run(&format!("pkey -in {key} -pubout -out {}", public.display()));
            std::fs::read(der).unwrap()
        };
        let rsa = make("rsa", "-algorithm RSA -pkeyopt rsa_keygen_bits:2048");
        let ec = make("ec", "-algorithm EC -pkeyopt ec_paramgen_curve:P-256");
        let ed = make("ed", "-algorithm ED25519");
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        Self {
            rsa: Signer::Rsa(RsaKeyPair::from_pkcs8(&rsa).unwrap()),
            ec: Signer::Ec(EcdsaKeyPair::from_pkcs8(kind, &ec, &random).unwrap()),
            ed: Signer::Ed(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&ed).unwrap()),
            folder,
        }
    }

    /// The public key of RSA, as openssl writes it.
    pub(super) fn rsa_pem(&self) -> String {
        std::fs::read_to_string(self.path("rsa.pem")).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file with all public keys, as openssl writes them.
    pub(super) fn pem_file(&self) -> String {
        let all = ["rsa.pem", "ec.pem", "ed.pem"]
            .map(|name| std::fs::read_to_string(self.path(name)).unwrap());
        std::fs::write(self.path("all.pem"), all.concat()).unwrap();
        self.path("all.pem").display().to_string()
    }

    /// All public keys as a JWKS, under one `kid`.
    pub(super) fn jwks(&self, kid: &str) -> String {
        let keys = [&self.rsa, &self.ec, &self.ed].map(|signer| signer.jwk(kid));
        json!({ "keys": keys }).to_string()
    }
}

fn run(options: &str) {
    let made = Command::new("openssl").args(options.split_whitespace()).output();
    let made = made.expect("openssl: apt-get install openssl");
    assert!(made.status.success(), "{options}: {}", String::from_utf8_lossy(&made.stderr));
}
