//! Servers that speak TLS, and their clients.

use std::path::PathBuf;
use std::process::Command;

use stampede_broker::TlsFiles;
use stampede_testkit::{Redis, free_port, temp_dir};

/// A key and certificates signed by an authority of our own, made with openssl.
pub(super) struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    pub(super) fn make() -> Self {
        let folder = temp_dir();
        let run = |arguments: &[&str]| {
            let made = Command::new("openssl").args(arguments).current_dir(&folder).output();
            let made = made.expect("openssl: apt-get install openssl");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        };
        let new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let authority = ["-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key"];
        run(&[&new[..], &authority, &["-out", "ca.pem"]].concat());
        let server = ["-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"];
        run(&[&new[..], &server].concat());
        std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
        let sign = "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
                    -extfile names -out server.pem";
        run(&sign.split_whitespace().collect::<Vec<_>>());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What servers, Sentinels and nodes of a Cluster need to speak TLS, with clients that have a
    /// certificate, too.
    pub(super) fn settings(&self, port: u16) -> Vec<(&'static str, String)> {
        let file = |name| self.path(name).display().to_string();
        vec![
            ("tls-port", port.to_string()),
            ("tls-cert-file", file("server.pem")),
            ("tls-key-file", file("server.key")),
            ("tls-ca-cert-file", file("ca.pem")),
            ("tls-auth-clients", "yes".to_owned()),
        ]
    }

    /// A server, and its port for TLS.
    pub(super) async fn server(&self, more: &[(&'static str, &str)]) -> (Redis, u16) {
        let port = free_port();
        let settings = self.settings(port);
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain(more.iter().copied())
            .collect();
        (Redis::with_config(&settings).await, port)
    }

    /// What a client needs to speak TLS with them.
    pub(super) fn files(&self) -> TlsFiles {
        let own = (self.path("server.pem"), self.path("server.key"));
        TlsFiles { authority: Some(self.path("ca.pem")), own: Some(own) }
    }
}
