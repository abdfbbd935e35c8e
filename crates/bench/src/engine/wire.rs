//! A small blocking client for what the broker does not ask: INFO, XREAD, GET in a tight loop.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// An answer that takes longer than this never comes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Where a server listens on this machine.
#[derive(Debug, Clone)]
pub(super) enum Address {
    /// A port on loopback.
    Tcp(u16),
    /// A socket file.
    Unix(PathBuf),
}

/// An answer in RESP2.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Text(String),
    Error(String),
    Number(i64),
    List(Vec<Answer>),
    Nothing,
}

impl Answer {
    pub(super) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// The text of a string; everything else has none.
    pub(super) fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    /// The elements of a list; everything else has none.
    pub(super) fn list(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }
}

/// A connection.
pub(super) struct Wire {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
}

impl Wire {
    pub(super) fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Ok(Self::new(stream.try_clone()?, stream))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                Ok(Self::new(stream.try_clone()?, stream))
            }
        }
    }

    fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        Self { reader: BufReader::new(Box::new(reader)), writer: Box::new(writer) }
    }

    /// Sends a command and waits for its answer.
    pub(super) fn ask(&mut self, words: &[&str]) -> io::Result<Answer> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.writer.write_all(request.as_bytes())?;
        self.answer()
    }

    /// A figure of `INFO`.
    pub(super) fn info(&mut self, section: &str, name: &str) -> io::Result<Option<u64>> {
        let answer = self.ask(&["INFO", section])?;
        let line =
            answer.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(line.and_then(|value| value.trim().parse().ok()))
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let line = self.line()?;
        let rest = line.get(1..).unwrap_or_default();
        let number =
            || rest.parse::<i64>().map_err(|_| io::Error::other(format!("odd answer {line}")));
        Ok(match line.as_bytes().first() {
            Some(b'+') => Answer::Text(rest.to_owned()),
            Some(b'-') => Answer::Error(rest.to_owned()),
            Some(b':') => Answer::Number(number()?),
            Some(b'$') => match usize::try_from(number()?) {
                Err(_) => Answer::Nothing,
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.reader.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Answer::Text(String::from_utf8_lossy(&bytes).into_owned())
                }
            },
            Some(b'*') => match usize::try_from(number()?) {
                Err(_) => Answer::Nothing,
                Ok(length) => {
                    Answer::List((0..length).map(|_| self.answer()).collect::<io::Result<_>>()?)
                }
            },
            _ => return Err(io::Error::other(format!("odd answer {line:?}"))),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_come() {
        let bytes = b"*3\r\n$2\r\na\n\r\n:-5\r\n*2\r\n$-1\r\n-ERR no\r\n+OK\r\n".as_slice();
        let mut wire = Wire::new(bytes, Vec::new());
        let wanted = vec![
            Answer::Text("a\n".into()),
            Answer::Number(-5),
            Answer::List(vec![Answer::Nothing, Answer::Error("ERR no".into())]),
        ];
        assert_eq!(wire.ask(&["GET", "x"]).unwrap(), Answer::List(wanted));
        assert_eq!(wire.ask(&["PING"]).unwrap(), Answer::Text("OK".into()));
        assert!(wire.ask(&["PING"]).is_err());
    }
}
