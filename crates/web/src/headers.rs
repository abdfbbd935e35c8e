//! Headers that keep the page safe, sent with every answer.

use http::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

use crate::files::Kind;

/// Everything from here, nothing from elsewhere, no text that becomes code: `require-trusted-types-for` makes the browser
/// refuse `innerHTML` and script addresses that did not pass the policy `stampede` (`assets/js/trusted.js`).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
     font-src 'self'; connect-src 'self'; media-src 'self' blob:; worker-src 'self'; manifest-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types stampede";

/// Only the page may use the camera.
const FOR_THE_PAGE: &str =
    "camera=(self), screen-wake-lock=(self), microphone=(), geolocation=(), usb=(), payment=()";
const FOR_OTHERS: &str = "camera=(), microphone=(), geolocation=(), usb=(), payment=()";

/// The headers of every answer of this kind.
pub(crate) fn security(kind: Kind) -> [(HeaderName, HeaderValue); 6] {
    let permissions = if kind == Kind::Html { FOR_THE_PAGE } else { FOR_OTHERS };
    [
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(permissions)),
    ]
}
