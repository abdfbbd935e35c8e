//! `/u/{token}`: a recipient ends it. The page of GET changes nothing, because mail scanners open links; its button, and the
//! one click of mail programs (RFC 8058), POST. Twice is once. No key, no script, no cookie.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, StatusCode};
use schemars::json_schema;
use sha2::{Digest, Sha256};
use stampede_wire::campaigns::Unsubscription;

use crate::app::App;
use crate::auth::Anyone;
use crate::describe::{Kind, Operation, Sent, escaped};
use crate::input::Id;
use crate::problem::{Code, Problem};
use crate::ranges::set;

/// The style of the page.
const STYLE: &str = include_str!("unsubscribe.css");
/// Search engines must not list it.
const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// The page loads nothing and sends only to itself; its style is known by its hash.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
});

/// A page for people.
pub(crate) struct UnsubscribePage;

impl Kind for UnsubscribePage {
    fn describe(operation: &mut Operation<'_>) {
        let schema = || json_schema!({ "type": "string" });
        operation.answers(200, "A page without scripts.", Some(("text/html", schema())));
        operation.answers(404, "A page that says so.", Some(("text/html", schema())));
        operation.may_refuse(&[Code::Unavailable]);
    }
}

/// Shows whom the link would unsubscribe, with a button.
pub(crate) async fn page(
    State(app): State<App>,
    _: Anyone,
    Id(token): Id<String>,
) -> Result<Sent<UnsubscribePage>, Problem> {
    Ok(answer(app.campaigns.unsubscription(&token).await?.as_ref()))
}

/// Unsubscribes. The body is not looked at: mail programs send `List-Unsubscribe=One-Click`, browsers nothing.
pub(crate) async fn confirm(
    State(app): State<App>,
    _: Anyone,
    Id(token): Id<String>,
) -> Result<Sent<UnsubscribePage>, Problem> {
    let done = app.campaigns.unsubscribe(&token).await?;
    if let Some(done) = &done {
        tracing::info!(sender = done.sender, "an address was unsubscribed");
    }
    Ok(answer(done.as_ref()))
}

fn answer(found: Option<&Unsubscription>) -> Sent<UnsubscribePage> {
    let mut response = Response::new(written(found).into());
    if found.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    set(&mut response, CONTENT_TYPE, "text/html; charset=utf-8");
    set(&mut response, CONTENT_SECURITY_POLICY, &POLICY);
    set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, CACHE_CONTROL, "no-store");
    // The address is the key.
    set(&mut response, REFERRER_POLICY, "no-referrer");
    set(&mut response, X_ROBOTS_TAG, "noindex");
    Sent::new(response)
}

fn written(found: Option<&Unsubscription>) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Unsubscribe</title><style>{STYLE}</style></head><body>"
    );
    let _ = match found {
        None => write!(
            html,
            "<h1>This link is not valid</h1><p>It is not complete. Open it from the message again.</p>"
        ),
        Some(one) if one.is_done => write!(
            html,
            "<h1>You are unsubscribed</h1><p><b>{}</b> gets no more messages from {}.</p>",
            escaped(&one.address),
            escaped(&one.sender)
        ),
        Some(one) => write!(
            html,
            "<h1>Unsubscribe</h1><p><b>{}</b> will get no more messages from {}.</p>\
             <form method=\"post\"><button type=\"submit\">Unsubscribe</button></form>",
            escaped(&one.address),
            escaped(&one.sender)
        ),
    };
    html.push_str("</body></html>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_button_until_it_was_pressed_and_quotes_what_people_wrote() {
        let mut one = Unsubscription {
            address: "<b>@example.com".to_owned(),
            sender: "News & More".to_owned(),
            is_done: false,
        };
        let before = written(Some(&one));
        assert!(before.contains("<form method=\"post\">") && !before.contains("<script"));
        assert!(before.contains("&lt;b&gt;@example.com") && before.contains("News &amp; More"));
        one.is_done = true;
        let after = written(Some(&one));
        assert!(!after.contains("<form") && after.contains("You are unsubscribed"));
        assert!(written(None).contains("not valid"));
    }
}
