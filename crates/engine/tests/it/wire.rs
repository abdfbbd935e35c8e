//! A client of the engine on a socket, for tests of single replies, and a server in this process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stampede_engine::{Config, Server};

/// A timeout that is long enough on any machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Status(String),
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Value>),
}

impl Value {
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Int(n) => *n,
            Self::Nil => 0,
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).parse().unwrap(),
            other => panic!("not a number: {other:?}"),
        }
    }

    /// The reply as text, whatever its type.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Array(values) => values.iter().map(Self::text).collect::<Vec<_>>().join(" "),
            other => format!("{other:?}"),
        }
    }
}

/// The bytes of a request.
pub(crate) fn request<T: AsRef<[u8]>>(args: &[T]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap()
    }

    pub(crate) fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::from_stream(stream))
    }

    pub(crate) fn from_stream(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Self { stream, reader }
    }

    /// Sends one command, words separated by spaces, and reads its reply.
    pub(crate) fn say(&mut self, words: &str) -> Value {
        self.call(&words.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Value {
        self.try_call(args).unwrap()
    }

    pub(crate) fn try_call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> io::Result<Value> {
        self.stream.write_all(&request(args))?;
        self.read()
    }

    pub(crate) fn read(&mut self) -> io::Result<Value> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let text = || String::from_utf8_lossy(&line[1..]).into_owned();
        let number = || text().parse::<i64>().unwrap();
        Ok(match line[0] {
            b'+' => Value::Status(text()),
            b'-' => Value::Error(text()),
            b':' => Value::Int(number()),
            b'$' | b'*' if number() < 0 => Value::Nil,
            b'$' => {
                let mut bytes = vec![0; number() as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Value::Bulk(bytes)
            }
            b'*' | b'>' => {
                Value::Array((0..number()).map(|_| self.read()).collect::<Result<_, _>>()?)
            }
            other => panic!("no reply begins with {:?}", char::from(other)),
        })
    }

    /// Waits until the server closes the connection; `true` if it did.
    pub(crate) fn is_closed_by_the_server(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.reader.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}

/// A server in this process; dropping it checks that it has not failed.
pub(crate) struct Running {
    server: Option<Server>,
    pub(crate) address: SocketAddr,
    failure: Arc<Mutex<Option<String>>>,
}

impl Running {
    pub(crate) fn start(config: Config) -> Self {
        let failure = Arc::new(Mutex::new(None));
        let told = failure.clone();
        let server = Server::start(Config {
            tcp: vec![([127, 0, 0, 1], 0).into()],
            on_failure: Some(Arc::new(move |reason| {
                *told.lock().unwrap() = Some(reason.to_owned());
            })),
            ..config
        })
        .unwrap();
        let address = server.tcp_addr().unwrap();
        Self { server: Some(server), address, failure }
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::connect(self.address)
    }

    /// Checks that a new client can connect, write and read promptly.
    pub(crate) fn assert_serves(&self) {
        assert_serves(self.address);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let stopped = self.server.take().map(Server::stop);
        if !std::thread::panicking() {
            assert!(stopped.is_none_or(|stopped| stopped.is_ok()));
            assert_eq!(*self.failure.lock().unwrap(), None, "the server ended by itself");
        }
    }
}

/// Checks that a new client can connect, write and read promptly.
pub(crate) fn assert_serves(address: SocketAddr) {
    let began = Instant::now();
    let mut client = Wire::connect(address);
    let key = format!("alive-{}", fastrand::u64(..));
    assert_eq!(client.call(&["set", &key, "yes"]), Value::Status("OK".into()));
    assert_eq!(client.call(&["getdel", &key]), Value::Bulk(b"yes".to_vec()));
    assert!(began.elapsed() < Duration::from_secs(5), "served after {:?}", began.elapsed());
}

/// Polls until the condition is true.
pub(crate) fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_true() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A number from the environment.
pub(crate) fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
