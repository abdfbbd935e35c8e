//! Error replies, with the texts of Redis 7.0.
//!
//! Clients compare these texts. A text without arguments is a constant, any other a function. A
//! command returns an [`Error`] before it has written to its reply.

/// An error reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Error {
    /// A fixed text.
    Fixed(&'static str),
    /// A text that quotes bytes of the client.
    Quoting(Vec<u8>),
}

/// The result of a command or of one of its steps.
pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

impl Error {
    /// The text; it begins with the error code.
    pub(crate) fn text(&self) -> &[u8] {
        match self {
            Self::Fixed(text) => text.as_bytes(),
            Self::Quoting(text) => text,
        }
    }

    pub(crate) fn quoting(text: String) -> Self {
        Self::Quoting(text.into_bytes())
    }
}

macro_rules! texts {
    ($($name:ident = $text:literal;)*) => {
        $(pub(crate) const $name: Error = Error::Fixed($text);)*
    };
}

texts! {
    WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";
    SYNTAX = "ERR syntax error";
    RECORD_TOO_LARGE = "ERR too large: the changes of one command, script or transaction must fit into 1 GB";
    NEEDS_CONNECTION = "ERR This Redis command is not allowed from script";
    NOT_INTEGER = "ERR value is not an integer or out of range";
    NOT_FLOAT = "ERR value is not a valid float";
    NOT_POSITIVE = "ERR value is out of range, must be positive";
    OUT_OF_RANGE = "ERR value is out of range";
    INDEX_OUT_OF_RANGE = "ERR index out of range";
    OVERFLOW = "ERR increment or decrement would overflow";
    DECREMENT_OVERFLOW = "ERR decrement would overflow";
    NAN_OR_INFINITY = "ERR increment would produce NaN or Infinity";
    OFFSET_OUT_OF_RANGE = "ERR offset is out of range";
    TOO_LONG = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    NO_SUCH_KEY = "ERR no such key";
    HASH_NOT_INTEGER = "ERR hash value is not an integer";
    HASH_NOT_FLOAT = "ERR hash value is not a float";
    SCORE_NAN = "ERR resulting score is not a number (NaN)";
    BAD_SCORE_RANGE = "ERR min or max is not a float";
    BAD_LEX_RANGE = "ERR min or max not valid string range item";
    BAD_CURSOR = "ERR invalid cursor";
    SAME_OBJECT = "ERR source and destination objects are the same";
    DB_OUT_OF_RANGE = "ERR DB index is out of range";
    BAD_STREAM_ID = "ERR Invalid stream ID specified as stream command argument";
    BAD_TIMEOUT = "ERR timeout is not a float or out of range";
    TIMEOUT_OUT_OF_RANGE = "ERR timeout is out of range";
    NEGATIVE_TIMEOUT = "ERR timeout is negative";
    OUT_OF_MEMORY = "OOM command not allowed when used memory > 'maxmemory'.";
    INTERNAL = "ERR internal error: the command has failed, and nothing was changed";
    TIMEOUT_NOT_INTEGER = "ERR timeout is not an integer or out of range";
}

/// A command was called with too few or too many arguments.
pub(crate) fn arity(name: &str) -> Error {
    Error::quoting(format!("ERR wrong number of arguments for '{name}' command"))
}

/// The expiry is out of range.
pub(crate) fn expire_time(name: &str) -> Error {
    Error::quoting(format!("ERR invalid expire time in '{name}' command"))
}

/// The container command has no such subcommand.
pub(crate) fn subcommand(container: &str, given: &[u8]) -> Error {
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(c_string(given, 128));
    text.extend_from_slice(format!("'. Try {} HELP.", container.to_uppercase()).as_bytes());
    Error::Quoting(text)
}

/// The subcommand does not take these arguments.
pub(crate) fn subcommand_syntax(container: &str, given: &[u8]) -> Error {
    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
    text.extend_from_slice(c_string(given, 128));
    text.extend_from_slice(format!("'. Try {} HELP.", container.to_uppercase()).as_bytes());
    Error::Quoting(text)
}

/// There is no such command.
pub(crate) fn unknown_command(args: &[bytes::Bytes]) -> Error {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(c_string(args.first().map_or(&[], |name| name), 128));
    text.extend_from_slice(b"', with args beginning with: ");
    let start = text.len();
    for arg in args.iter().skip(1) {
        let used = text.len() - start;
        if used >= 128 {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(c_string(arg, 128 - used));
        text.extend_from_slice(b"' ");
    }
    Error::Quoting(text)
}

/// The bytes that C's `%.*s` prints.
fn c_string(bytes: &[u8], most: usize) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end.min(most)]
}
