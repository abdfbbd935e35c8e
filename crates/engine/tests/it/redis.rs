//! A real redis-server to compare with, and a minimal client for it.
//!
//! The server cannot outlive the test: a shell reads a pipe that only the test holds, and kills the
//! server when the pipe closes, however the test ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

const SCRIPT: &str = r#"
exec 3<&0
{
    cat <&3 >/dev/null
    kill -9 $$
    rm -rf "$0"
} &
exec "$@" 3<&- </dev/null
"#;

/// A server on a free port with an empty folder, killed on drop.
pub(crate) struct Server {
    child: Child,
    folder: PathBuf,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let port = free_port();
        let folder =
            std::env::temp_dir().join(format!("stampede-diff-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{error}"));
        let child = Command::new("sh")
            .args(["-c", SCRIPT])
            .arg(&folder)
            .args(["redis-server", "--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--hz", "500"])
            .current_dir(&folder)
            // `SORT ALPHA` of Redis goes by the language of its environment; the engine by bytes.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start sh: {error}"));
        let server = Self { child, folder, port };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(
                Instant::now() < deadline,
                "this test needs redis-server, which does not come up; run: apt-get install redis-server"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }
}

/// A free port outside the range that the system assigns to port 0: otherwise an engine of another
/// test could take it before the server does.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = std::process::id().wrapping_mul(37) as u16 % 8000;
    (0..8000)
        .map(|_| 20_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 8000)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .unwrap_or_else(|| panic!("no free loopback port"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server replaced the shell, so it has the shell's process id.
        self.child.kill().ok();
        self.child.wait().ok();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

/// A connection that sends commands and returns the raw bytes of replies.
pub(crate) struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let reader = BufReader::with_capacity(1 << 16, stream.try_clone().unwrap());
        Self { stream, reader }
    }

    /// Sends commands in one batch and returns the reply of each.
    pub(crate) fn call_all<'a>(
        &mut self,
        commands: impl Iterator<Item = &'a Vec<Vec<u8>>>,
    ) -> Vec<Vec<u8>> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for args in commands {
            write!(bytes, "*{}\r\n", args.len()).unwrap();
            for arg in args {
                write!(bytes, "${}\r\n", arg.len()).unwrap();
                bytes.extend_from_slice(arg);
                bytes.extend_from_slice(b"\r\n");
            }
            count += 1;
        }
        self.stream.write_all(&bytes).unwrap();
        (0..count)
            .map(|_| {
                let mut reply = Vec::new();
                self.read(&mut reply);
                reply
            })
            .collect()
    }

    fn read(&mut self, reply: &mut Vec<u8>) {
        let start = reply.len();
        let read = self.reader.read_until(b'\n', reply).unwrap();
        assert!(read > 0, "redis-server closed the connection");
        let kind = reply[start];
        let number = std::str::from_utf8(&reply[start + 1..reply.len() - 2]).unwrap_or_default();
        match (kind, number.parse::<i64>().unwrap_or(-1)) {
            (b'$', len @ 0..) => {
                let from = reply.len();
                reply.resize(from + len as usize + 2, 0);
                self.reader.read_exact(&mut reply[from..]).unwrap();
            }
            (b'*' | b'~', count @ 0..) => (0..count).for_each(|_| self.read(reply)),
            (b'%', count @ 0..) => (0..2 * count).for_each(|_| self.read(reply)),
            _ => {}
        }
    }
}
