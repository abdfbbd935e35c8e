//! Uploads: bodies that are too large for memory. Their bytes go to a file without a name, at the pace of the client.
//!
//! ```text
//! guard ──▶ type and length ──▶ handler: may it? ──▶ a place ──▶ bytes arrive in a file ──▶ the room reads the file
//!            415, 413           403, 404             429, 503    400, 408, 413
//! ```
//! An upload holds no connection of the database and no memory but one piece of the body while it arrives. It may take
//! longer than other requests, but not stand still: a client has to send 50 KB a second in the mean.

use std::collections::HashMap;
use std::fs::File;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use stampede_guests::Charset;
use stampede_model::Principal;
use stampede_ticketing::Spool;
use stampede_wire::ticketing::uploads::UploadFormat;
use tokio::time::Instant;

use super::arrival::too_long;
use super::unread::Unread;
use super::{check_coding, declared_length, unread};
use crate::app::App;
use crate::auth::{Writer, principal};
use crate::client_address::client_address;
use crate::problem::{Code, Problem};

/// Uploads at the same time, of the whole server.
const AT_ONCE: usize = 16;
/// Uploads at the same time, of one user.
const OF_ONE_USER: usize = 2;
/// Longest pause in the middle of an upload.
const PAUSE: Duration = Duration::from_secs(10);
/// Time that every upload has, however small …
const PATIENCE: Duration = Duration::from_secs(30);
/// … and bytes that earn it another second.
const BYTES_PER_S: u64 = 50 << 10;

/// The media types of uploads.
pub(crate) const TYPES: [(&str, UploadFormat); 5] = [
    ("application/json", UploadFormat::Json),
    ("application/x-ndjson", UploadFormat::Ndjson),
    ("application/ndjson", UploadFormat::Ndjson),
    ("application/jsonl", UploadFormat::Ndjson),
    ("text/csv", UploadFormat::Csv),
];

/// Where uploads are kept, and how many there are.
#[derive(Clone)]
pub struct Uploads {
    spool: Spool,
    most_bytes: usize,
    users: Arc<Mutex<HashMap<String, usize>>>,
}

impl Uploads {
    /// Uploads of at most so many bytes, in files of this spool.
    pub fn new(spool: Spool, most_bytes: usize) -> Self {
        Self { spool, most_bytes, users: Arc::default() }
    }

    /// The spool.
    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    fn take(&self, user: &str) -> Result<Place, Problem> {
        let mut users = self.users.lock();
        if users.get(user).is_some_and(|count| *count >= OF_ONE_USER) {
            let detail = "your other uploads are not read yet; try again";
            return Err(Problem::new(Code::RateLimited, detail).retry_after(5));
        }
        if users.values().sum::<usize>() >= AT_ONCE {
            let detail = "too many files are being uploaded at the same time; try again";
            return Err(Problem::new(Code::Overloaded, detail).retry_after(5));
        }
        *users.entry(user.to_owned()).or_default() += 1;
        Ok(Place { users: Arc::clone(&self.users), user: user.to_owned() })
    }
}

/// The place of an upload; free again when the value is dropped.
pub(crate) struct Place {
    users: Arc<Mutex<HashMap<String, usize>>>,
    user: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut users = self.users.lock();
        if let Some(count) = users.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.user);
            }
        }
    }
}

/// An upload of which nothing was read yet.
pub(crate) struct Upload {
    /// The form of the file.
    pub(crate) format: UploadFormat,
    /// The encoding that was declared.
    pub(crate) charset: Option<Charset>,
    /// The key or token that the upload was sent with.
    pub(crate) credentials: Credentials,
    unread: Unread,
    most: usize,
    user: String,
}

/// The key or token of a request that takes long.
#[derive(Clone)]
pub(crate) struct Credentials {
    headers: HeaderMap,
    from: Option<IpAddr>,
}

impl Credentials {
    /// Refuses unless the key is still valid, and still that of the same user and role.
    pub(crate) async fn check_again(&self, app: &App, caller: &Writer) -> Result<(), Problem> {
        let now = principal(&app.identity, &app.rates, &self.headers, self.from).await?;
        let is_same = |now: &Principal| now.user == caller.0.user && now.role == caller.0.role;
        match now.as_ref().is_some_and(is_same) {
            true => Ok(()),
            false => {
                let detail = "the API key changed while the upload arrived; nothing was done";
                Err(Problem::new(Code::Unauthorized, detail))
            }
        }
    }
}

/// An upload that has arrived.
pub(crate) struct Received {
    /// The file.
    pub(crate) file: File,
    /// The hash of its bytes.
    pub(crate) hash: String,
    /// Kept until the upload is read.
    pub(crate) place: Place,
}

impl FromRequest<App> for Upload {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, _) = request.into_parts();
        let (format, charset) = media_type(&parts.headers)?;
        check_coding(&parts.headers)?;
        // JSON has no lines: a text of it is in memory as a whole.
        let most = match format {
            UploadFormat::Json => app.limits.body_bytes.min(app.uploads.most_bytes),
            UploadFormat::Csv | UploadFormat::Ndjson => app.uploads.most_bytes,
        };
        if declared_length(&parts.headers).is_some_and(|length| length > most) {
            return Err(too_long(most));
        }
        let user = parts.extensions.get::<Principal>().map(|caller| caller.user.clone());
        let unread = unread(&parts)?.clone();
        let credentials =
            Credentials { headers: keys_of(&parts.headers), from: client_address(&parts) };
        Ok(Self { format, charset, credentials, unread, most, user: user.unwrap_or_default() })
    }
}

impl Upload {
    /// Receives the file.
    pub(crate) async fn receive(self, app: &App) -> Result<Received, Problem> {
        let place = app.uploads.take(&self.user)?;
        let mut file = app.uploads.spool.file().await.map_err(unkept)?;
        let mut taken = self.unread.take();
        let (mut hash, mut size) = (Sha256::new(), 0);
        let begun = Instant::now();
        loop {
            let earned = Duration::from_secs(size as u64 / BYTES_PER_S);
            let until = (begun + PATIENCE + earned).min(Instant::now() + PAUSE);
            let Ok(frame) = tokio::time::timeout_at(until, taken.body.frame()).await else {
                return Err(Problem::new(Code::BodyTimeout, too_slow(size)));
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| {
                let detail = format!("the upload broke off after {size} bytes: {error}");
                Problem::new(Code::BadRequest, detail)
            })?;
            let Some(data) = frame.data_ref() else { continue };
            size += data.len();
            if size > self.most {
                return Err(too_long(self.most));
            }
            hash.update(data);
            file.write(data).await.map_err(unkept)?;
        }
        let file = file.finish().await.map_err(unkept)?;
        Ok(Received { file, hash: format!("{:x}", HexBytes(&hash.finalize())), place })
    }
}

/// Bytes as hexadecimal text.
struct HexBytes<'b>(&'b [u8]);

impl std::fmt::LowerHex for HexBytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The headers that hold a key.
fn keys_of(headers: &HeaderMap) -> HeaderMap {
    let is_key = |name: &HeaderName| *name == AUTHORIZATION || name == "x-api-key";
    let keys = headers.iter().filter(|(name, _)| is_key(name));
    keys.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn too_slow(size: usize) -> String {
    format!(
        "the upload did not arrive in time: it paused for more than {PAUSE:?}, or came with less than {} KB a second; \
         {size} bytes had arrived",
        BYTES_PER_S >> 10
    )
}

/// The disk of the uploads is full, or away.
fn unkept(error: std::io::Error) -> Problem {
    tracing::warn!(%error, "an upload cannot be kept");
    Problem::unavailable("the disk for uploads")
}

/// The form of the file, and the encoding that the client declares.
fn media_type(headers: &HeaderMap) -> Result<(UploadFormat, Option<Charset>), Problem> {
    let refused = |detail: String| Err(Problem::new(Code::UnsupportedMediaType, detail));
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let Some((_, format)) = TYPES.iter().find(|(kind, _)| *kind == essence) else {
        let known: Vec<&str> = TYPES.iter().map(|(kind, _)| *kind).collect();
        return refused(format!("the file must have one of the types {}", known.join(", ")));
    };
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    match charset {
        None => Ok((*format, None)),
        Some(label) => match Charset::from_label(label) {
            Some(charset) => Ok((*format, Some(charset))),
            None => refused(
                "the charset of Content-Type is not known; known are utf-8, windows-1251, …"
                    .to_owned(),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(value: &str) -> Result<(UploadFormat, bool), String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        let read = media_type(&headers).map_err(Problem::into_detail)?;
        Ok((read.0, read.1.is_some()))
    }

    #[test]
    fn types_and_charsets_are_read_as_clients_write_them() {
        assert_eq!(read("text/csv"), Ok((UploadFormat::Csv, false)));
        assert_eq!(
            read("Text/CSV; header=present; Charset=\"windows-1251\""),
            Ok((UploadFormat::Csv, true))
        );
        assert_eq!(read("application/jsonl"), Ok((UploadFormat::Ndjson, false)));
        assert_eq!(read("application/json;charset=utf-8"), Ok((UploadFormat::Json, true)));
        assert!(read("multipart/form-data; boundary=x").unwrap_err().contains("text/csv"));
        assert!(read("text/csv; charset=klingon").unwrap_err().contains("charset"));
    }

    #[tokio::test]
    async fn one_user_does_not_keep_others_out() {
        let uploads = Uploads::new(Spool::new("/nonexistent".into()), 1);
        let anns: Vec<Place> =
            (0..OF_ONE_USER).map(|_| uploads.take("ann").ok().unwrap()).collect();
        assert!(uploads.take("ann").is_err());
        let others: Vec<Place> =
            (OF_ONE_USER..AT_ONCE).map(|n| uploads.take(&n.to_string()).ok().unwrap()).collect();
        assert!(uploads.take("zoe").is_err());
        drop(anns);
        assert!(uploads.take("zoe").is_ok());
        drop(others);
        assert!(uploads.users.lock().is_empty());
    }
}
