//! A mail server that misbehaves by recipient: PyPI's aiosmtpd, with what arrived read by Python's `email`.
//!
//! | recipient | what happens |
//! |---|---|
//! | `greylist@`, `later@`, `nobody@`, `full@`, `busy@` | refused at `RCPT` with 451, 450, 550 5.1.1, 552 5.2.2, 421 |
//! | `spam@`, `unsigned@`, `disabled@` | refused after the dot with 554 5.7.1, 550 5.7.26, 550 5.2.1 |
//! | `mute@`, `silent@` | no answer to `RCPT`, no answer to the dot |
//! | `gone@`, `before@`, `cut@` | hangs up at `RCPT`, in the content, after the dot |
//! | all others | accepted |

use rustix::process::Signal;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::guarded::{Guarded, free_port};
use crate::python::python;
use crate::temp_dir;

/// A running mail server.
#[derive(Debug)]
pub struct MailServer {
    // Declared before the folder: the server must be gone when the folder is removed.
    _server: Guarded,
    port: u16,
    folder: TempDir,
}

/// A mail that arrived.
#[derive(Debug, Clone, Deserialize)]
pub struct Mail {
    /// The envelope's sender.
    pub from: String,
    /// The envelope's recipients.
    pub to: Vec<String>,
    /// Tells connections apart.
    pub connection: u16,
    /// Whether it came over TLS.
    pub secure: bool,
    /// The headers, decoded, in their order.
    pub headers: Vec<(String, String)>,
    /// The parts that hold something.
    pub parts: Vec<MailPart>,
    /// What Python's `email` has to complain about.
    pub defects: Vec<String>,
}

/// A part of a mail.
#[derive(Debug, Clone, Deserialize)]
pub struct MailPart {
    /// The media type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The name of the file.
    pub name: Option<String>,
    /// The content in base64.
    pub bytes: String,
    /// The content of a text.
    pub text: Option<String>,
}

impl Mail {
    /// The values of a header.
    pub fn header(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }
}

impl MailServer {
    /// Starts a server without TLS and logins.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts a server with arguments of `mail.py`.
    pub async fn with(arguments: &[&str]) -> Self {
        let (folder, port) = (temp_dir(), free_port());
        let script = folder.path().join("mail.py");
        std::fs::write(&script, include_str!("mail.py"))
            .unwrap_or_else(|error| panic!("cannot write mail.py: {error}"));
        let mut command =
            vec![python("mail-packages"), script.display().to_string(), port.to_string()];
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let mut server = Guarded::spawn(folder.path(), Signal::KILL, &command);
        let ready = server
            .ready(|_| async move {
                let connected = TcpStream::connect(("127.0.0.1", port)).await;
                connected.map(drop).map_err(|error| error.to_string())
            })
            .await;
        if let Err(log) = ready {
            panic!("the mail server does not start: {log}");
        }
        Self { _server: server, port, folder }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// All mails that arrived so far.
    pub fn mails(&self) -> Vec<Mail> {
        let text = std::fs::read_to_string(self.folder.path().join("mails.jsonl"));
        let text = text.unwrap_or_default();
        let read =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        text.lines().map(read).collect()
    }
}
