//! Loads a certificate for the TLS of an event loop, and reloads it after it was renewed.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::Path;

use haul_tls::{Acceptor, Alpn, CertificateFiles, Identities};

/// Writes a new certificate and its key, as a renewal does.
fn issue(chain: &Path, key: &Path) -> Result<(), Box<dyn Error>> {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    std::fs::write(key, issued.signing_key.serialize_pem())?;
    Ok(std::fs::write(chain, issued.cert.pem())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (chain, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    issue(&chain, &key)?;
    let files = CertificateFiles { chain: chain.clone(), key: key.clone() };
    let identities = Identities::load(vec![files])?;
    for warning in identities.warnings() {
        println!("{warning}");
    }
    // A server calls `acceptor.accept(socket)` for each accepted socket of its reactor.
    let _acceptor = Acceptor::new(identities.clone(), Alpn::Http1)?;

    issue(&chain, &key)?;
    identities.reload()?; // new connections use the new certificate
    std::fs::write(&key, "damaged")?;
    println!("{}", identities.reload().err().ok_or("a damaged key was loaded")?);
    Ok(()) // the new certificate is still in use
}
