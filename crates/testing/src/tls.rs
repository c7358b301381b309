//! A certificate authority, and the client side of a TLS connection.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

/// The client side of a TLS connection over TCP.
pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

/// A certificate authority of a test.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, as PEM.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// Creates an authority that only this value knows.
    #[expect(clippy::new_without_default, reason = "each authority is another one")]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL takes a certificate for self-signed if its subject has the name of its issuer.
        params.distinguished_name.push(DnType::CommonName, "haul test authority");
        let key = KeyPair::generate().unwrap();
        Self { issuer: CertifiedIssuer::self_signed(params, key).unwrap() }
    }

    /// Issues a certificate for these DNS names and addresses, valid for another day.
    pub fn issue(&self, names: &[&str]) -> Issued {
        self.issue_until(names, SystemTime::now() + Duration::from_secs(2 * 24 * 3600))
    }

    /// Issues a certificate that is valid until `end`.
    pub fn issue_until(&self, names: &[&str], end: SystemTime) -> Issued {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = end.into();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Returns the certificate of the authority, as PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Returns the settings of a client that trusts this authority.
    pub fn client_config(&self) -> ClientConfig {
        self.client_config_with(rustls::DEFAULT_VERSIONS)
    }

    /// Returns the settings of a client that supports only these versions of TLS.
    pub fn client_config_with(
        &self,
        versions: &[&'static SupportedProtocolVersion],
    ) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.issuer.der().to_vec())).unwrap();
        ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// Returns a session of a client that requests `name`.
    pub fn client(&self, name: &str) -> ClientConnection {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        ClientConnection::new(Arc::new(self.client_config()), name).unwrap()
    }

    /// Connects to a server that has a certificate for `localhost`; the handshake is performed by
    /// the first write or read.
    pub fn connect(&self, address: SocketAddr) -> TlsClient {
        StreamOwned::new(self.client("localhost"), TcpStream::connect(address).unwrap())
    }
}

impl Issued {
    /// Writes the files `<name>.crt` and `<name>.key`; returns their paths.
    pub fn write(&self, dir: &Path, name: &str) -> [PathBuf; 2] {
        let paths = ["crt", "key"].map(|extension| dir.join(format!("{name}.{extension}")));
        for (path, text) in paths.iter().zip([&self.certificate, &self.key]) {
            std::fs::write(path, text).unwrap();
        }
        paths
    }
}
