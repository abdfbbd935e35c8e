//! The claims of a token whose signature is right: audience, issuer, times, user and role.

use serde_json::{Map, Value};
use stampede_model::{EVERYBODY, Limit, Principal, Role, Timestamp, check_text};

use super::TokenRefusal;
use super::token::malformed;

/// How far clocks may differ, in seconds.
const LEEWAY: f64 = 60.0;

/// What tokens must say.
pub(super) struct Expected {
    pub(super) audience: String,
    pub(super) issuer: Option<String>,
    pub(super) role_claim: String,
}

impl Expected {
    /// The user and role that the claims name.
    pub(super) fn principal(
        &self,
        payload: &[u8],
        now: Timestamp,
    ) -> Result<Principal, TokenRefusal> {
        let claims: Map<String, Value> = serde_json::from_slice(payload)
            .map_err(|_| malformed("its payload is no JSON object"))?;
        self.check_audience(claims.get("aud"))?;
        self.check_issuer(claims.get("iss"))?;
        check_times(&claims, now.as_millisecond() as f64 / 1000.0)?;
        Ok(Principal::new(user(&claims)?, self.role(&claims)?))
    }

    fn check_audience(&self, claim: Option<&Value>) -> Result<(), TokenRefusal> {
        let is_for = |value: &Value| value.as_str() == Some(&self.audience);
        let fits = match claim {
            Some(Value::Array(all)) => all.iter().any(is_for),
            Some(one) => is_for(one),
            None => false,
        };
        if fits { Ok(()) } else { Err(TokenRefusal::Audience) }
    }

    fn check_issuer(&self, claim: Option<&Value>) -> Result<(), TokenRefusal> {
        let Some(issuer) = &self.issuer else { return Ok(()) };
        match claim.and_then(Value::as_str) == Some(issuer) {
            true => Ok(()),
            false => Err(TokenRefusal::Issuer),
        }
    }

    /// The role: a word, or the one word of a list that is a role.
    fn role(&self, claims: &Map<String, Value>) -> Result<Role, TokenRefusal> {
        let refused =
            |why: &str| TokenRefusal::Role(format!("its claim {:?} {why}", self.role_claim));
        let role = |value: &Value| value.as_str().and_then(|word| word.parse::<Role>().ok());
        match claims.get(&self.role_claim) {
            None => Err(refused("is missing")),
            Some(Value::Array(words)) => {
                let roles: Vec<Role> = words.iter().filter_map(role).collect();
                match roles.as_slice() {
                    [role] => Ok(*role),
                    [] => Err(refused("has no role")),
                    _ => Err(refused("has several roles")),
                }
            }
            Some(word) => role(word).ok_or_else(|| refused("is no role")),
        }
    }
}

fn check_times(claims: &Map<String, Value>, now: f64) -> Result<(), TokenRefusal> {
    let exp = time(claims, "exp")?.ok_or_else(|| malformed("it has no exp"))?;
    if exp + LEEWAY <= now {
        return Err(TokenRefusal::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|time| time - LEEWAY > now) {
            return Err(TokenRefusal::NotYet);
        }
    }
    Ok(())
}

/// A time in seconds since 1970, perhaps with a fraction.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, TokenRefusal> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64().filter(|time| time.is_finite()) {
            Some(time) => Ok(Some(time)),
            None => Err(malformed(&format!("its {name} is no number"))),
        },
    }
}

/// The user: `sub`. Nobody can be the user whose viewers read everybody's records.
fn user(claims: &Map<String, Value>) -> Result<String, TokenRefusal> {
    let sub = claims.get("sub").and_then(Value::as_str);
    let sub = sub.ok_or_else(|| malformed("it has no sub"))?;
    match check_text(sub, Limit::NAME) {
        Ok(user) if user == sub && user != EVERYBODY => Ok(user),
        _ => Err(malformed("its sub cannot be the name of a user")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn principal(claims: &Value) -> Result<Principal, TokenRefusal> {
        let expected = Expected {
            audience: "stampede".into(),
            issuer: Some("https://id.example".into()),
            role_claim: "role".into(),
        };
        let now = Timestamp::from_second(NOW).unwrap();
        expected.principal(claims.to_string().as_bytes(), now)
    }

    /// Good claims with one changed; `null` removes it.
    fn with(name: &str, value: Value) -> Value {
        let mut claims = json!({
            "aud": "stampede", "iss": "https://id.example", "sub": "ann", "role": "organiser",
            "exp": NOW + 300, "nbf": NOW, "iat": NOW,
        });
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        claims
    }

    #[test]
    fn good_claims_name_a_user_and_a_role() {
        let ann = Principal::new("ann", Role::Organiser);
        for (name, value) in [
            ("aud", json!(["other", "stampede"])),
            ("role", json!(["offline_access", "organiser"])),
            ("exp", json!(NOW - 59)),
            ("exp", json!(NOW as f64 + 0.5)),
            ("nbf", json!(NOW + 60)),
            ("iat", json!(NOW + 60)),
            ("nbf", Value::Null),
            ("iat", Value::Null),
        ] {
            assert_eq!(principal(&with(name, value.clone())), Ok(ann.clone()), "{name} {value}");
        }
    }

    #[test]
    fn every_other_claim_is_refused_by_its_kind() {
        use TokenRefusal::{Audience, Expired, Issuer, NotYet};
        for (name, value, refusal) in [
            ("aud", json!("other"), Audience),
            ("aud", json!(["other"]), Audience),
            ("aud", json!([]), Audience),
            ("aud", Value::Null, Audience),
            ("iss", json!("https://id.example/"), Issuer),
            ("iss", Value::Null, Issuer),
            ("exp", json!(NOW - 60), Expired),
            ("exp", json!(0), Expired),
            ("nbf", json!(NOW + 61), NotYet),
            ("iat", json!(NOW + 61), NotYet),
        ] {
            assert_eq!(principal(&with(name, value.clone())), Err(refusal), "{name} {value}");
        }
        for (name, value) in [
            ("exp", Value::Null),
            ("exp", json!("2100-01-01")),
            ("exp", json!([NOW + 300])),
            ("nbf", json!("never")),
            ("sub", Value::Null),
            ("sub", json!("*")),
            ("sub", json!("")),
            ("sub", json!(7)),
            ("sub", json!("a\nb")),
            ("sub", json!(" ann")),
        ] {
            let refused = principal(&with(name, value.clone()));
            assert!(
                matches!(refused, Err(TokenRefusal::Malformed(_))),
                "{name} {value} {refused:?}"
            );
        }
        for role in [Value::Null, json!("boss"), json!(""), json!([]), json!(["admin", "viewer"])] {
            let refused = principal(&with("role", role.clone()));
            assert!(matches!(refused, Err(TokenRefusal::Role(_))), "{role} {refused:?}");
        }
    }
}
