//! Creates the certificate of all servers, and the configuration of clients that trust it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_testing::tls::Authority;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};

use super::transport::SERVER_NAME;
use haul_measure::{Error, Result};

/// A certificate in two files, and clients that trust it.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client: Arc<ClientConfig>,
}

impl Tls {
    /// Creates a certificate in `dir`. Clients accept only TLS 1.3 with one cipher, so that all
    /// servers use the same.
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let authority = Authority::new();
        let [certificate, key] = authority.issue(&[SERVER_NAME]).write(dir, "site");
        let client = client(&authority.certificate());
        let client = Arc::new(client.map_err(Error::other("set up clients with TLS"))?);
        Ok(Self { certificate, key, client })
    }
}

fn client(authority: &str) -> std::io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let authority =
        CertificateDer::from_pem_slice(authority.as_bytes()).map_err(std::io::Error::other)?;
    roots.add(authority).map_err(std::io::Error::other)?;
    let mut provider = default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(std::io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
