//! Failed requests.

use stampede_wire::problem::Problem;

/// A request that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No client can be made on this machine.
    #[error("no HTTP client can be made")]
    Setup(#[source] reqwest::Error),
    /// The server does not answer, or breaks off.
    #[error("no answer from {base}. Is the server running there? Start it with: make run")]
    NoAnswer {
        /// The server.
        base: String,
        /// The cause.
        #[source]
        source: reqwest::Error,
    },
    /// The server refuses the request.
    #[error("{}{}", reason(.problem), hint(*.status))]
    Refused {
        /// The status code.
        status: u16,
        /// The reason.
        problem: Box<Problem>,
    },
    /// The server refuses the request without a reason that can be read; perhaps a proxy answered.
    #[error("{path}: {status}, and no explanation")]
    Unexplained {
        /// The path.
        path: String,
        /// The status.
        status: String,
    },
    /// The answer has another form than expected; perhaps the server has another version.
    #[error("the answer of {path} cannot be read: {source}")]
    Unreadable {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

/// The reason in a sentence. An answer of other software may have only one of the two.
fn reason(problem: &Problem) -> &str {
    if problem.detail.is_empty() { &problem.error } else { &problem.detail }
}

fn hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "; is it the key of somebody who may do this?",
        _ => "",
    }
}

impl Error {
    /// The status code of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The reason of a refusal.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use stampede_wire::problem::Code;

    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let refused = |code: Code, title: &str, detail: &str| Error::Refused {
            status: code.status(),
            problem: Box::new(Problem::new(code, title, detail.to_owned())),
        };
        let missing = refused(Code::NotFound, "Not Found", "Event not found");
        assert_eq!(
            (missing.to_string().as_str(), missing.status()),
            ("Event not found", Some(404))
        );
        let forbidden = refused(Code::Forbidden, "Forbidden", "Access denied").to_string();
        assert_eq!(forbidden, "Access denied; is it the key of somebody who may do this?");
    }
}
