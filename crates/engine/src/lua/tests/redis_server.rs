//! A real redis-server to compare with.
//!
//! It cannot outlive the test: a shell reads a pipe that only the test holds. When the pipe closes,
//! however the test ended, the shell kills the server and removes its folder.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `$0` is the folder, the arguments are the server's command line.
const WATCHED: &str = r#"
exec 3<&0
{ read -r word <&3; kill -9 $$; rm -rf "$0"; } &
exec "$@" 3<&- </dev/null
"#;

pub(crate) struct Server {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        let program = "/usr/bin/redis-server";
        assert!(
            Path::new(program).exists(),
            "this test needs {program}: apt-get install redis-server"
        );
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new("sh")
            .args(["-c", WATCHED])
            .arg(folder.path())
            .args([program, "--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"])
            .current_dir(folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(log)
            .spawn()
            .unwrap();
        let server = Self { child, folder, port };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not start: {}", server.log());
            std::thread::yield_now();
        }
        server
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Sends a command and returns its reply as it came.
    pub(crate) fn call(&mut self, args: &[&[u8]]) -> Vec<u8> {
        let mut command = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            command.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            command.extend_from_slice(arg);
            command.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&command).unwrap();
        let mut reply = Vec::new();
        self.read_reply(&mut reply);
        reply
    }

    fn read_reply(&mut self, reply: &mut Vec<u8>) {
        let mut open = 1_usize;
        while open > 0 {
            open -= 1;
            let start = reply.len();
            let read = self.stream.read_until(b'\n', reply).unwrap();
            assert!(read > 0, "redis-server closed the connection");
            let len: i64 =
                String::from_utf8_lossy(&reply[start + 1..]).trim().parse().unwrap_or(-1);
            match reply[start] {
                b'$' | b'=' if len >= 0 => {
                    let at = reply.len();
                    reply.resize(at + len as usize + 2, 0);
                    self.stream.read_exact(&mut reply[at..]).unwrap();
                }
                b'*' | b'~' | b'>' => open += len.max(0) as usize,
                b'%' => open += 2 * len.max(0) as usize,
                _ => {}
            }
        }
    }
}
