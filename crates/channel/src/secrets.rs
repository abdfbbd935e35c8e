//! Texts of a provider without the secrets of an account: a provider may say back what it was sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use stampede_model::campaign::{Channel, Failure, Outcome};
use url::form_urlencoded::byte_serialize;

use crate::account::Account;
use crate::answers;

/// Secrets that are shorter are not looked for in texts: they would be found everywhere.
const SHORTEST: usize = 4;
/// What stands in place of a secret.
const MASK: &str = "***";

/// The secrets of an account, in all forms in which they are sent.
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The texts in an account's credentials, what follows `Bearer` or `Basic` in its headers, and what is made of them for a
    /// login or a form.
    pub(crate) fn of(account: &Account) -> Self {
        let credentials = serde_json::from_slice(&account.credentials).unwrap_or_default();
        let mut found = Vec::new();
        collect(&credentials, &mut found);
        let headers = credentials["headers"].as_object().into_iter().flatten();
        let values = headers.filter_map(|(_, value)| value.as_str()?.split_once(' '));
        found.extend(values.map(|(_, proof)| proof.trim().to_owned()));
        found.extend(logins(account, &credentials));
        let in_forms = found.iter().map(|text| byte_serialize(text.as_bytes()).collect());
        found.extend(in_forms.collect::<Vec<String>>());
        found.retain(|secret| secret.len() >= SHORTEST);
        // A secret that contains another one goes first.
        found.sort_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
        found.dedup();
        Self(found)
    }

    /// A text that a provider told, cut like the text of a failure.
    pub(crate) fn text(&self, told: &str) -> String {
        self.failure(Failure::new("", told)).text
    }

    /// A failure without secrets.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        let text = self.masked(&failure.text, Failure::LONGEST);
        let code = self.masked(&failure.code, answers::LONGEST_CODE);
        Failure { text, code, after: failure.after }
    }

    /// An outcome whose failure has no secrets.
    pub(crate) fn outcome(&self, outcome: Outcome) -> Outcome {
        let told = |failure| self.failure(failure);
        match outcome {
            sent @ Outcome::Sent { .. } => sent,
            Outcome::NotSent(failure) => Outcome::NotSent(told(failure)),
            Outcome::Unknown(failure) => Outcome::Unknown(told(failure)),
            Outcome::Moved(address, failure) => Outcome::Moved(address, told(failure)),
            Outcome::SlowDown(pause, failure) => Outcome::SlowDown(pause, told(failure)),
            Outcome::WaitForRecipient(pause, failure) => {
                Outcome::WaitForRecipient(pause, told(failure))
            }
            Outcome::Temporary(failure) => Outcome::Temporary(told(failure)),
            Outcome::Never(failure, reason) => Outcome::Never(told(failure), reason),
            Outcome::Bounced(failure, reason) => Outcome::Bounced(told(failure), reason),
            Outcome::Refused(failure) => Outcome::Refused(told(failure)),
            Outcome::Content(failure) => Outcome::Content(told(failure)),
            Outcome::Account(failure) => Outcome::Account(told(failure)),
            Outcome::Withheld(failure) => Outcome::Withheld(told(failure)),
        }
    }

    /// A text that was cut to `longest` before.
    fn masked(&self, text: &str, longest: usize) -> String {
        let mut masked = text.to_owned();
        for secret in self.0.iter().filter(|secret| text.contains(*secret)) {
            masked = masked.replace(secret, MASK);
        }
        // A text that was cut may end in the beginning of a secret. A letter that did not fit left up to three bytes free.
        if text.len() + 3 >= longest {
            let ends_in = |secret: &String| {
                let begins = (SHORTEST..secret.len()).rev().filter_map(|end| secret.get(..end));
                begins.filter(|begin| masked.ends_with(begin)).map(str::len).next()
            };
            if let Some(length) = self.0.iter().filter_map(ends_in).max() {
                masked.truncate(masked.len() - length);
                masked.push_str(MASK);
            }
        }
        masked
    }
}

/// All texts in a value.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
        Value::Object(object) => object.values().for_each(|value| collect(value, found)),
        _ => {}
    }
}

/// What an account logs in with: base64 of a user and a password.
fn logins(account: &Account, credentials: &Value) -> Vec<String> {
    let texts = match account.channel {
        Channel::Sms => {
            let settings: Value = serde_json::from_str(&account.settings).unwrap_or_default();
            let user = settings["accountSid"].as_str().unwrap_or_default();
            let mut tokens = Vec::new();
            collect(&credentials["authToken"], &mut tokens);
            tokens.into_iter().map(|token| format!("{user}:{token}")).collect()
        }
        Channel::Smtp => {
            let text = |name: &str| credentials[name].as_str().unwrap_or_default();
            match (text("user"), text("password")) {
                (_, "") => Vec::new(),
                // AUTH PLAIN sends both, AUTH LOGIN one after the other.
                (user, password) => vec![format!("\0{user}\0{password}"), password.to_owned()],
            }
        }
        Channel::Console | Channel::Webhook | Channel::Telegram | Channel::Whatsapp => Vec::new(),
    };
    texts.into_iter().map(|text| STANDARD.encode(text)).collect()
}

#[cfg(test)]
mod tests {
    use stampede_model::Timestamp;

    use super::*;

    fn secrets(channel: Channel, settings: &str, credentials: &str) -> Secrets {
        let id = "a".parse().unwrap();
        let (settings, credentials) = (settings.to_owned(), credentials.as_bytes().to_vec());
        Secrets::of(&Account { id, channel, settings, credentials, version: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn a_text_with_a_secret_in_it_is_told_without() {
        let credentials = r#"{"token":"123:abcdef","list":["abc","abcdef"],"n":1}"#;
        let secrets = secrets(Channel::Telegram, "{}", credentials);
        let failure = Failure::new("404", "no bot123:abcdef, nor abcdef or abc");
        match secrets.outcome(Outcome::Account(failure)) {
            Outcome::Account(failure) => assert_eq!(failure.text, "no bot***, nor *** or abc"),
            other => panic!("{other:?}"),
        }
        let told = |text: String| secrets.failure(Failure::new("404", &text)).text;
        let cut = told(format!("{}123:abcdef", "x".repeat(505)));
        assert!(cut.ends_with("x***"), "{cut}");
        // Masking made the text shorter.
        let twice = told(format!("123:abcdef{}123:abcdef", "x".repeat(495)));
        assert!(twice.starts_with("***x") && twice.ends_with("x***"), "{twice}");
    }

    #[test]
    fn a_secret_in_a_code_or_in_the_text_of_a_check_is_masked() {
        let credentials = r#"{"headers":{"X-Key":"key-12345"}}"#;
        let secrets = secrets(Channel::Sms, "{}", credentials);
        let failure = secrets.failure(Failure::new("bad key-12345", "no"));
        assert_eq!(failure.code, "bad ***");
        let cut = secrets.failure(Failure::new(format!("{}key-12", "x".repeat(58)), "no"));
        assert!(cut.code.ends_with("x***"), "{}", cut.code);
        let told = secrets.text(&format!("the account key-12345 {}", "x".repeat(10_000)));
        assert!(told.starts_with("the account *** x"), "{told}");
        assert!(told.len() <= Failure::LONGEST);
    }

    #[test]
    fn a_secret_is_known_in_the_forms_in_which_it_is_sent() {
        let sms = secrets(
            Channel::Sms,
            r#"{"profile":"http"}"#,
            r#"{"headers":{"Authorization":"Bearer abc+123"},"secret":{"key":"s p&c"}}"#,
        );
        assert_eq!(
            sms.text("Bearer abc+123, abc+123, abc%2B123, s p&c, key=s+p%26c"),
            "***, ***, ***, ***, key=***"
        );
        let twilio = secrets(
            Channel::Sms,
            r#"{"profile":"twilio","accountSid":"AC1"}"#,
            r#"{"authToken":["t0ken","f0rmer"]}"#,
        );
        // base64 of AC1:t0ken and AC1:f0rmer.
        assert_eq!(twilio.text("Basic QUMxOnQwa2Vu or QUMxOmYwcm1lcg=="), "Basic *** or ***");
        let mail = secrets(Channel::Smtp, "{}", r#"{"user":"ann","password":"sesame"}"#);
        // base64 of NUL ann NUL sesame, and of sesame.
        let said = mail.text("500 AUTH PLAIN AGFubgBzZXNhbWU=? c2VzYW1l? sesame? ann?");
        assert_eq!(said, "500 AUTH PLAIN ***? ***? ***? ann?");
    }

    #[test]
    fn credentials_that_cannot_be_read_hold_no_secrets() {
        let none = secrets(Channel::Smtp, "", "{");
        assert_eq!(none.text("nothing to mask"), "nothing to mask");
    }
}
