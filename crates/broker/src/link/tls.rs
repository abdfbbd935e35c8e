//! TLS for connections that are not the `redis` crate's: those that `sentinel.rs` makes to a master.
//!
//! It trusts the authorities that the `redis` crate trusts: the one that the settings name, otherwise Mozilla's.

use std::sync::Arc;

use redis::TlsCertificates;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Bytes in both directions, in the clear or not.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// How to speak TLS.
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Reads the certificates; `Err` says what is wrong with them.
    pub(super) fn new(certificates: Option<&TlsCertificates>) -> Result<Self, String> {
        let all = |pem: &[u8]| {
            let found: Result<Vec<CertificateDer<'static>>, _> =
                CertificateDer::pem_slice_iter(pem).collect();
            found.map_err(|error| error.to_string())
        };
        let mut roots = RootCertStore::empty();
        match certificates.and_then(|certificates| certificates.root_cert.as_deref()) {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(pem) => {
                for authority in all(pem)? {
                    roots.add(authority).map_err(|error| error.to_string())?;
                }
            }
        }
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match certificates.and_then(|certificates| certificates.client_tls.as_ref()) {
            None => config.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(&own.client_key);
                let key = key.map_err(|error| error.to_string())?;
                config
                    .with_client_auth_cert(all(&own.client_cert)?, key)
                    .map_err(|error| error.to_string())?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Makes a TLS connection to the server at `host:port`, and checks its certificate.
    pub(super) async fn wrap(
        &self,
        server: &str,
        stream: TcpStream,
    ) -> std::io::Result<Box<dyn Wire>> {
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        Ok(Box::new(self.0.connect(name, stream).await?))
    }
}
