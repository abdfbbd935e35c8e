//! Tokens of identity providers: each algorithm, every refusal, keys that are rotated, a provider that is away.

mod provider;
mod signers;

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{App, eventually};

use self::provider::{Provider, TlsProvider};
use self::signers::{Signer, Signers, now};
use crate::{PATIENCE, start, text};

const SECRET: &str = "a secret of at least thirty-two characters";

/// Good claims of a user and a role.
fn claims(user: &str, role: &str) -> Value {
    json!({ "sub": user, "role": role, "aud": "stampede", "iss": "https://id.example", "exp": now() + 300 })
}

/// Good claims with one changed; `null` removes it.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims("ann", "organiser");
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

async fn start_with(settings: &[(&str, &str)]) -> App {
    let common = [
        ("WORKER_MODE", "api"),
        ("JWT_AUDIENCE", "stampede"),
        ("JWT_ISSUER", "https://id.example"),
    ];
    start(&[&common[..], settings].concat()).await
}

/// The status and code of a request with a token.
async fn told(app: &App, token: &str) -> (u16, String) {
    let answer = app.client(token).get("/api/events").await;
    (answer.status, answer.body["code"].as_str().unwrap_or_default().to_owned())
}

async fn assert_refused(app: &App, token: &str, code: &str) {
    assert_eq!(told(app, token).await, (401, code.to_owned()), "{token}");
}

#[tokio::test]
async fn a_person_signs_in_with_a_token_of_each_algorithm() {
    let signers = Signers::make();
    let file = signers.pem_file();
    let app = start_with(&[("JWT_SECRET", SECRET), ("JWT_KEYS", &file)]).await;
    let secret = Signer::hmac(SECRET);
    for signer in [&secret, &signers.rsa, &signers.ec, &signers.ed] {
        let ann = app.client(&signer.token(&claims("ann", "organiser")));
        let event = ann.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
        assert_eq!(event["owner"], "ann");
        let viewer = app.client(&signer.token(&claims("ann", "viewer")));
        viewer.get(&format!("/api/events/{}", text(&event["id"]))).await.expect(200);
        viewer.post("/api/events", &json!({ "name": "x" })).await.expect(403);
        let bob = app.client(&signer.token(&claims("bob", "organiser")));
        bob.get(&format!("/api/events/{}", text(&event["id"]))).await.expect(403);
        let admin = app.client(&signer.token(&claims("root", "admin")));
        admin.get("/api/queues/status").await.expect(200);
        let key = json!({ "name": signer.name(), "role": "viewer" });
        let key = ann.post("/api/keys", &key).await.expect(201);
        assert_eq!((&key["user"], &key["expiresAt"]), (&json!("ann"), &Value::Null));
    }
    // Keys go on working beside tokens.
    app.admin().get("/api/events").await.expect(200);
    app.client("stp_wrong").get("/api/events").await.expect(401);
}

#[tokio::test]
async fn every_wrong_token_is_refused_with_a_code_of_its_own() {
    let signers = Signers::make();
    let file = signers.pem_file();
    let app = start_with(&[("JWT_SECRET", SECRET), ("JWT_KEYS", &file)]).await;
    let secret = Signer::hmac(SECRET);
    for signer in [&secret, &signers.rsa, &signers.ec, &signers.ed] {
        for (name, value, code) in [
            ("aud", json!("other"), "token_audience"),
            ("aud", Value::Null, "token_audience"),
            ("iss", json!("https://evil.example"), "token_issuer"),
            ("iss", Value::Null, "token_issuer"),
            ("exp", json!(now() - 61), "token_expired"),
            ("exp", Value::Null, "token_malformed"),
            ("exp", json!("tomorrow"), "token_malformed"),
            ("nbf", json!(now() + 120), "token_not_yet"),
            ("iat", json!(now() + 120), "token_not_yet"),
            ("role", json!("boss"), "token_role"),
            ("role", Value::Null, "token_role"),
            ("sub", Value::Null, "token_malformed"),
            ("sub", json!("*"), "token_malformed"),
        ] {
            assert_refused(&app, &signer.token(&with(name, value)), code).await;
        }
        for (name, value) in
            [("exp", json!(now() - 30)), ("nbf", json!(now() + 30)), ("iat", json!(now() + 30))]
        {
            assert_eq!(told(&app, &signer.token(&with(name, value))).await.0, 200, "the leeway");
        }
        let token = signer.token(&claims("ann", "admin"));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        assert_refused(&app, &format!("{signed}."), "token_signature").await;
        let (header, _) = signed.split_once('.').unwrap();
        let other = signers::encoded(&claims("root", "admin"));
        assert_refused(&app, &format!("{header}.{other}.{signature}"), "token_signature").await;
        assert_refused(&app, &format!("{header}.{other}"), "unauthorized").await;
    }
    for none in ["none", "None", "NONE", "RS512", "HS512"] {
        let token = signers::unsigned(none, &claims("root", "admin"));
        assert_refused(&app, &token, "token_algorithm").await;
    }
    for text in ["a.b.c", "..", "eyJhbGciOiJIUzI1NiJ9..", "e30.e30."] {
        assert_eq!(told(&app, text).await.0, 401, "{text}");
    }
    let wrong = Signer::hmac("another secret of at least thirty-two characters");
    assert_refused(&app, &wrong.token(&claims("root", "admin")), "token_signature").await;
}

#[tokio::test]
async fn no_token_chooses_how_its_signature_is_checked() {
    let signers = Signers::make();
    let file = signers.pem_file();
    let only_public = start_with(&[("JWT_KEYS", &file)]).await;
    let admin = claims("root", "admin");
    // The public key as the secret of HS256, in each form in which it is known to everybody.
    for secret in [&std::fs::read_to_string(&file).unwrap(), &signers.rsa_pem()] {
        let forged = Signer::hmac(secret).token(&admin);
        assert_refused(&only_public, &forged, "token_algorithm").await;
    }
    assert_eq!(told(&only_public, &signers.rsa.token(&admin)).await.0, 200);
    let only_secret = start_with(&[("JWT_SECRET", SECRET)]).await;
    for signer in [&signers.rsa, &signers.ec, &signers.ed] {
        assert_refused(&only_secret, &signer.token(&admin), "token_algorithm").await;
        // A signature of one algorithm under the name of another.
        for name in ["RS256", "ES256", "EdDSA"].into_iter().filter(|name| *name != signer.name()) {
            assert_refused(&only_public, &signer.token_named(name, &admin), "token_signature")
                .await;
        }
    }
    // Without any of the settings a token is a key that nobody has.
    let neither = start(&[("WORKER_MODE", "api")]).await;
    assert_refused(&neither, &Signer::hmac("").token(&admin), "unauthorized").await;
}

/// Waits until a token is answered so.
async fn until(app: &App, token: &str, status: u16) {
    eventually(PATIENCE, || async {
        match told(app, token).await {
            (told, _) if told == status => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn keys_of_a_provider_are_fetched_rotated_and_kept_while_it_is_away() {
    let (first, second) = (Signers::make(), Signers::make());
    let third = Signers::make();
    let mut provider = Provider::start(first.jwks("1")).await;
    let app = start_with(&[("JWT_JWKS_URL", &provider.url())]).await;
    let ann = claims("ann", "viewer");
    until(&app, &first.rsa.token_with("1", &ann), 200).await;
    for signer in [&first.ec, &first.ed] {
        assert_eq!(told(&app, &signer.token_with("1", &ann)).await.0, 200);
        assert_eq!(told(&app, &signer.token(&ann)).await.0, 200, "without a kid");
    }
    assert_refused(&app, &second.ec.token_with("1", &ann), "token_signature").await;
    assert_eq!(provider.asked(), 1, "known keys are not fetched again");
    provider.publish(second.jwks("2"));
    // Many requests with the new key share one fetch.
    let tokens: Vec<String> = (0..20).map(|_| second.ec.token_with("2", &ann)).collect();
    let answers = futures::future::join_all(tokens.iter().map(|token| told(&app, token))).await;
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    assert_eq!(provider.asked(), 2);
    assert_refused(&app, &first.ec.token_with("1", &ann), "token_key_unknown").await;
    // Anybody can make up a kid: the provider is not asked again within a minute.
    provider.publish(third.jwks("3"));
    for kid in ["3", "4", "5"] {
        assert_refused(&app, &third.ed.token_with(kid, &ann), "token_key_unknown").await;
    }
    assert_eq!(provider.asked(), 2);
    provider.stop();
    assert_eq!(told(&app, &second.ed.token_with("2", &ann)).await.0, 200, "the last good keys");
    assert!(!app.log().contains(&second.ed.token_with("2", &ann)), "no token is in the log");
}

#[tokio::test]
async fn a_provider_that_is_away_at_the_start_is_found_later() {
    let signers = Signers::make();
    let port = stampede_testkit::free_port();
    let url = format!("http://127.0.0.1:{port}/jwks.json");
    let app = start_with(&[("JWT_JWKS_URL", &url)]).await;
    let token = signers.ec.token_with("1", &claims("ann", "viewer"));
    let answer = app.client(&token).get("/api/events").await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &json!("unavailable")));
    assert!(answer.headers.contains_key("retry-after"));
    app.admin().get("/api/events").await.expect(200);
    let _provider = Provider::start_at(port, signers.jwks("1")).await;
    until(&app, &token, 200).await;
}

#[tokio::test]
async fn answers_of_a_provider_that_are_no_jwks_change_nothing() {
    let signers = Signers::make();
    let token = signers.ed.token_with("1", &claims("ann", "viewer"));
    for answer in ["", "<html>", "[]", r#"{"keys": 7}"#] {
        let provider = Provider::start(answer.to_owned()).await;
        let app = start_with(&[("JWT_JWKS_URL", &provider.url())]).await;
        eventually(Duration::from_secs(30), || async {
            if provider.asked() > 0 { Ok(()) } else { Err("not asked yet") }
        })
        .await;
        assert_eq!(told(&app, &token).await.0, 503, "{answer}");
    }
    let huge = format!(r#"{{"keys": [], "x": "{}"}}"#, "x".repeat(300_000));
    let provider = Provider::start(huge).await;
    let app = start_with(&[("JWT_JWKS_URL", &provider.url())]).await;
    assert_eq!(told(&app, &token).await.0, 503);
}

#[tokio::test]
async fn keys_are_fetched_by_tls_from_an_authority_that_is_trusted() {
    let signers = Signers::make();
    let provider = TlsProvider::start(&signers.jwks("1")).await;
    let token = signers.rsa.token_with("1", &claims("ann", "viewer"));
    let (url, authority) = (provider.url(), provider.authority());
    let app = start_with(&[("JWT_JWKS_URL", &url), ("SSL_CERT_FILE", &authority)]).await;
    until(&app, &token, 200).await;
    let distrustful = start_with(&[("JWT_JWKS_URL", &url)]).await;
    eventually(PATIENCE, || async {
        match distrustful.log().contains("were not fetched") {
            true => Ok(()),
            false => Err("not tried yet"),
        }
    })
    .await;
    assert_eq!(told(&distrustful, &token).await.0, 503);
}
