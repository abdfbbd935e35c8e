//! Tokens of identity providers: `JWT_SECRET`, `JWT_KEYS`, `JWT_JWKS_URL` and what belongs to them.

use stampede_identity::{JwtConfig, PublicKey, parse_keys};
use url::{Host, Url};

use super::reader::Reader;
use super::table::Values;

/// Reads `JWT_JWKS_URL`.
pub(super) fn parse_url(text: &str) -> Result<Url, String> {
    let right = "must be the address of a JWKS such as https://id.example/.well-known/jwks.json";
    let url = Url::parse(text).map_err(|error| format!("{right}: {error}"))?;
    let fits = ["http", "https"].contains(&url.scheme()) && url.host().is_some();
    let has_user = !url.username().is_empty() || url.password().is_some();
    match fits && !has_user {
        true => Ok(url),
        false => Err(format!("{right}, with http or https and without a user")),
    }
}

/// Whether somebody on the way could replace the keys of this address.
pub(crate) fn is_in_the_clear(url: &Url) -> bool {
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !here
}

/// How tokens are checked; `None`: they are not accepted.
pub(super) fn read_jwt(reader: &mut Reader<'_>, values: &Values) -> Option<JwtConfig> {
    let given = ["JWT_SECRET", "JWT_KEYS", "JWT_JWKS_URL"];
    let is_on = given.iter().any(|name| reader.is_given(name));
    let others = ["JWT_AUDIENCE", "JWT_ISSUER", "JWT_ROLE_CLAIM"];
    if !is_on {
        let alone = others.into_iter().find(|name| reader.is_given(name));
        if let Some(name) = alone {
            let right = "does nothing without JWT_SECRET, JWT_KEYS or JWT_JWKS_URL";
            reader.mistake(name, "…", right);
        }
        return None;
    }
    let keys = read_keys(reader, values);
    let Some(audience) = values.jwt_audience.clone() else {
        let right = "must be the audience (aud) of the tokens: without it, tokens that your \
             identity provider made for other services would be accepted";
        reader.mistake("JWT_AUDIENCE", "", right);
        return None;
    };
    Some(JwtConfig {
        secret: values.jwt_secret.clone(),
        keys,
        jwks_url: values.jwt_jwks_url.clone(),
        audience,
        issuer: values.jwt_issuer.clone(),
        role_claim: values.jwt_role_claim.clone(),
    })
}

fn read_keys(reader: &mut Reader<'_>, values: &Values) -> Vec<PublicKey> {
    let Some(path) = &values.jwt_keys else { return Vec::new() };
    let file = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"));
    file.and_then(|file| parse_keys(&file)).unwrap_or_else(|right| {
        reader.mistake("JWT_KEYS", path.display(), right);
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use crate::settings::{Given, Settings};

    fn mistakes(variables: &[(&str, &str)]) -> Vec<String> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        match Settings::resolve(&Given::default(), &environment) {
            Ok(_) => Vec::new(),
            Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn tokens_need_an_audience_and_a_key() {
        let secret = ("JWT_SECRET", "0123456789abcdef0123456789abcdef");
        let audience = ("JWT_AUDIENCE", "stampede");
        assert_eq!(mistakes(&[secret, audience]), [""; 0]);
        for (variables, told) in [
            (&[secret][..], "JWT_AUDIENCE=: must be the audience"),
            (&[audience], "JWT_AUDIENCE=…: does nothing without"),
            (&[("JWT_ISSUER", "x")], "JWT_ISSUER=…: does nothing without"),
            (&[("JWT_SECRET", "short"), audience], "JWT_SECRET=…: must be at least 32"),
            (&[("JWT_KEYS", "/nowhere"), audience], "JWT_KEYS=/nowhere: cannot be read"),
            (&[("JWT_JWKS_URL", "ftp://x/y"), audience], "JWT_JWKS_URL=ftp://x/y: must be"),
            (&[("JWT_JWKS_URL", "https://u:p@x/y"), audience], "without a user"),
            (&[("ADMIN_KEY", "a.b.c")], "must not have exactly two dots"),
        ] {
            let told_all = mistakes(variables);
            assert!(told_all.len() == 1 && told_all[0].contains(told), "{told}: {told_all:?}");
        }
    }
}
