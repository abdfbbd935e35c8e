//! The codes of problems: stable words by which programs tell refusals apart.

/// Declares the codes. The table in docs/http.md is compared with it.
macro_rules! codes {
    ($( $(#[doc = $doc:literal])* $name:ident = $word:literal, $status:literal; )*) => {
        /// The kind of a problem. Each kind has one status.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $( $(#[doc = $doc])* $name, )*
        }

        impl Code {
            /// All codes, by status.
            pub const ALL: &'static [Self] = &[$( Self::$name ),*];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$name => $word, )*
                }
            }

            /// The status of answers with this code.
            pub fn status(self) -> u16 {
                match self {
                    $( Self::$name => $status, )*
                }
            }

            /// The meaning, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $( Self::$name => concat!($($doc),*).trim_ascii(), )*
                }
            }
        }
    };
}

codes! {
    /// The request cannot be read.
    BadRequest = "bad_request", 400;
    /// Parameters of the query are unknown or wrong; `errors` names all of them.
    InvalidQuery = "invalid_query", 400;
    /// A header is wrong.
    InvalidHeader = "invalid_header", 400;
    /// The body is no JSON.
    InvalidJson = "invalid_json", 400;
    /// There is no key, or it is not valid.
    Unauthorized = "unauthorized", 401;
    /// The token (JWT) is not built as a token must be, or lacks a claim such as `exp` or `sub`.
    TokenMalformed = "token_malformed", 401;
    /// The token's algorithm is `none`, or not one of the keys that are set up.
    TokenAlgorithm = "token_algorithm", 401;
    /// No key that is known has the token's `kid`.
    TokenKeyUnknown = "token_key_unknown", 401;
    /// The token's signature is wrong.
    TokenSignature = "token_signature", 401;
    /// The token is for another audience than `JWT_AUDIENCE`.
    TokenAudience = "token_audience", 401;
    /// The token is of another issuer than `JWT_ISSUER`.
    TokenIssuer = "token_issuer", 401;
    /// The token has expired.
    TokenExpired = "token_expired", 401;
    /// The token is not valid yet, or was issued in the future.
    TokenNotYet = "token_not_yet", 401;
    /// The token names no role, or one that does not exist.
    TokenRole = "token_role", 401;
    /// The request is not signed by the provider that the hook is for.
    WrongSignature = "wrong_signature", 401;
    /// The key has no right to this route or record; `needs` lists the roles that have.
    Forbidden = "forbidden", 403;
    /// The key is limited to an event or to queues, and this is outside of its limits.
    OutOfScope = "out_of_scope", 403;
    /// There is no such record or route.
    NotFound = "not_found", 404;
    /// The enrolment code is wrong, used or too old.
    WrongCode = "wrong_code", 404;
    /// The route exists, but not with this method.
    MethodNotAllowed = "method_not_allowed", 405;
    /// A design that ships cannot be changed.
    ReadOnly = "read_only", 405;
    /// The body did not arrive in time.
    BodyTimeout = "body_timeout", 408;
    /// The record's state does not allow it.
    Conflict = "conflict", 409;
    /// The PDF, batch or sticker is not made yet; ask again after `Retry-After`.
    NotReady = "not_ready", 409;
    /// The PDF or sticker could not be made, and is not tried again.
    Failed = "failed", 409;
    /// The ticket is void and cannot be changed.
    Void = "void", 409;
    /// Others change the same record, or jobs of the queue run; try again.
    Busy = "busy", 409;
    /// Every event has its built-in list, and every server the account `console`: they can be changed, not deleted.
    BuiltIn = "built_in", 409;
    /// The record is used by others, which have to go first.
    InUse = "in_use", 409;
    /// There are as many as there may be.
    TooMany = "too_many", 409;
    /// Another key of the user that is not revoked has this name.
    NameTaken = "name_taken", 409;
    /// Another account has this id.
    IdTaken = "id_taken", 409;
    /// The key comes from the setting `ADMIN_KEY` and is changed there.
    PresetKey = "preset_key", 409;
    /// A request with this `Idempotency-Key` is being carried out; ask again after `Retry-After`.
    InFlight = "in_flight", 409;
    /// The request with this `Idempotency-Key` was carried out, but its answer is not kept.
    AnswerNotKept = "answer_not_kept", 409;
    /// The job is in a state that does not allow it.
    WrongState = "wrong_state", 409;
    /// The campaign is in a state that does not allow it; `state` says in which.
    CampaignState = "campaign_state", 409;
    /// The campaign cannot start; `problems` lists why, each in a sentence.
    CampaignNotReady = "campaign_not_ready", 409;
    /// Recipients of the campaign are being imported; try again after `Retry-After`.
    Importing = "importing", 409;
    /// Another device made the scan; the organiser can undo it.
    NotYours = "not_yours", 409;
    /// The scan is older than a device may undo; the organiser can undo it.
    TooLate = "too_late", 409;
    /// The scan was refused, so there is nothing to undo.
    NothingToUndo = "nothing_to_undo", 409;
    /// The guest has left since the scan; the exit has to be undone first.
    ExitFollows = "exit_follows", 409;
    /// The ticket is void: it has no PDF any more.
    Gone = "gone", 410;
    /// The link has ended; ask for a new one.
    LinkExpired = "link_expired", 410;
    /// `If-Match` names a version that is not the latest.
    PreconditionFailed = "precondition_failed", 412;
    /// The body is too large.
    TooLarge = "too_large", 413;
    /// The body is not declared as JSON, or is compressed.
    UnsupportedMediaType = "unsupported_media_type", 415;
    /// The file has no such part; `Content-Range` says how long it is.
    RangeNotSatisfiable = "range_not_satisfiable", 416;
    /// The request cannot be carried out as it is.
    Invalid = "invalid", 422;
    /// Fields are missing, wrong or unknown; `errors` names all of them.
    InvalidFields = "invalid_fields", 422;
    /// Rows of an uploaded file have mistakes; `errors` names the first thousand with their lines, `errorCount` counts all.
    InvalidRows = "invalid_rows", 422;
    /// An uploaded file cannot be read: another encoding, no column for names, quotes that are not closed, too many rows.
    UnreadableFile = "unreadable_file", 422;
    /// The template does not work; `diagnostics` lists its mistakes.
    InvalidTemplate = "invalid_template", 422;
    /// The request is strict, and there are warnings.
    HasWarnings = "has_warnings", 422;
    /// The `Idempotency-Key` was used for another request.
    KeyReused = "key_reused", 422;
    /// The list is not one of the event.
    UnknownList = "unknown_list", 422;
    /// The gate is not one of the event.
    UnknownGate = "unknown_gate", 422;
    /// The nonce was used for another ticket or direction.
    NonceUsed = "nonce_used", 422;
    /// The operation destroys something and was not confirmed.
    NotConfirmed = "not_confirmed", 422;
    /// Your other requests, of your key or your address, take all that you may have; try again after `Retry-After`.
    RateLimited = "rate_limited", 429;
    /// Too many wrong enrolment codes came in the last minute.
    TooManyWrongCodes = "too_many_wrong_codes", 429;
    /// An internal error; the server's log has the cause under the id in `detail`.
    Internal = "internal", 500;
    /// The database, Redis or the template compiler does not answer; try again after `Retry-After`.
    Unavailable = "unavailable", 503;
    /// The server is full; try again after `Retry-After`.
    Overloaded = "overloaded", 503;
    /// The request took too long and was ended.
    TooSlow = "too_slow", 503;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_distinct_words_with_a_meaning() {
        let words: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            let word = code.as_str();
            assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{word}");
            assert!(code.meaning().ends_with('.'), "{word}: {}", code.meaning());
        }
        assert!(Code::ALL.is_sorted_by_key(|code| code.status()));
    }
}
