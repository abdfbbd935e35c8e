//! TLS towards others: the authorities that the system trusts (`SSL_CERT_FILE` names others), or Mozilla's if there are none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The authorities are read again after this time, so that renewed ones need no restart.
const FRESH: Duration = Duration::from_secs(3_600);

/// Makes connectors. All of them share their sessions, so that a second handshake is short.
#[derive(Default)]
pub(crate) struct Tls {
    config: Mutex<Option<(Instant, Arc<ClientConfig>)>>,
}

impl Tls {
    pub(crate) async fn connector(&self) -> TlsConnector {
        let known = self.config.lock().clone();
        if let Some((read, config)) = known
            && read.elapsed() < FRESH
        {
            return TlsConnector::from(config);
        }
        // Reading the authorities takes milliseconds of the disk.
        let config = tokio::task::spawn_blocking(config).await;
        let config = config.unwrap_or_else(|_| of(RootCertStore::empty()));
        *self.config.lock() = Some((Instant::now(), config.clone()));
        TlsConnector::from(config)
    }
}

fn config() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    of(roots)
}

fn of(mut roots: RootCertStore) -> Arc<ClientConfig> {
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
