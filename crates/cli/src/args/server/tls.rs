//! Defines the arguments of TLS, for the servers that terminate it.

use std::path::PathBuf;

use clap::Args;
use haul_tls::CertificateFiles;

#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Accept only TLS, with the certificate in this PEM file; repeatable, with one --tls-key each
    ///
    /// The file contains the certificate of the server, followed by the intermediate certificates.
    /// The first certificate is the default. Each other one is used for clients that request one of
    /// its DNS names (SNI). The files are read again on SIGHUP, and within 5 seconds after they
    /// change; open connections continue. TLS 1.2 and 1.3 are accepted.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Vec<PathBuf>,
    /// Private key of the certificate, a PEM file without a passphrase; repeatable
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Vec<PathBuf>,
}

impl TlsArgs {
    /// Returns the files of the certificates, or an error message if a key or a certificate is
    /// missing.
    pub(crate) fn files(&self) -> Result<Vec<CertificateFiles>, String> {
        let (certificates, keys) = (self.tls_cert.len(), self.tls_key.len());
        if certificates != keys {
            return Err(format!(
                "--tls-cert is given {certificates} times and --tls-key {keys} times; give one \
                 key for each certificate, in the same order"
            ));
        }
        let pairs = self.tls_cert.iter().zip(&self.tls_key);
        let files = |(chain, key): (&PathBuf, &PathBuf)| CertificateFiles {
            chain: chain.clone(),
            key: key.clone(),
        };
        Ok(pairs.map(files).collect())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Cli, Command};

    #[test]
    fn certificates_and_keys_are_paired_in_order() {
        let files = |arguments: &[&str]| {
            let cli = Cli::try_parse_from(["haul", "files", "d"].iter().chain(arguments))
                .map_err(|error| error.to_string())?;
            let Command::Files(args) = cli.command else { panic!("not files") };
            args.tls.files()
        };
        assert_eq!(files(&[]), Ok(Vec::new()));
        let pairs = ["--tls-cert=a", "--tls-cert=b", "--tls-key=c", "--tls-key=d"];
        let pairs = files(&pairs).unwrap();
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[1].chain.to_str(), Some("b"));
        assert_eq!(pairs[1].key.to_str(), Some("d"));
        assert!(files(&["--tls-cert=a"]).unwrap_err().contains("--tls-key"));
        let unequal = files(&["--tls-cert=a", "--tls-key=b", "--tls-key=c"]).unwrap_err();
        assert!(unequal.contains("1 times and --tls-key 2 times"), "{unequal}");
    }
}
