//! Loads the certificates of a server, and reloads them on SIGHUP and when their files change.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_tls::{Acceptor, Alpn, Error, Identities};

use crate::args::TlsArgs;
use crate::report::{Exit, Failure, OrFail, Result, print_message, try_print_message};

/// The time between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// The certificates of a running server.
#[derive(Clone)]
pub(crate) struct Certificates(Arc<Identities>);

impl Certificates {
    /// Loads the certificates that the command line names, if any, and prints warnings about them.
    pub(crate) fn load(args: &TlsArgs) -> Result<Option<Self>> {
        let files = args.files().map_err(|reason| Failure::new(reason).exit(Exit::Usage))?;
        if files.is_empty() {
            return Ok(None);
        }
        let identities = Identities::load(files).map_err(not_loaded)?;
        identities.warnings().iter().for_each(|warning| print_message(warning));
        Ok(Some(Self(identities)))
    }

    /// Returns the settings of the TLS connections of a server.
    pub(crate) fn acceptor(&self, alpn: Alpn) -> Result<Acceptor> {
        Acceptor::new(Arc::clone(&self.0), alpn).map_err(not_loaded)
    }

    /// Reloads the files, and prints the result; never blocks on stderr.
    pub(crate) fn reload(&self) {
        self.print(self.0.reload());
    }

    /// Starts a thread that reloads the files when they change.
    pub(crate) fn watch(&self) -> Result {
        let certificates = self.clone();
        let watch = move || {
            loop {
                thread::sleep(CHECK_INTERVAL);
                match certificates.0.reload_if_changed() {
                    Ok(false) => {}
                    result => certificates.print(result.map(drop)),
                }
            }
        };
        let started = thread::Builder::new().name("certificates".to_owned()).spawn(watch);
        started.map(drop).or_fail(|| "cannot start a thread for certificates".to_owned())
    }

    fn print(&self, result: haul_tls::Result<()>) {
        match result {
            Ok(()) => {
                try_print_message("certificates reloaded");
                self.0.warnings().iter().for_each(|warning| try_print_message(warning));
            }
            Err(error) => {
                let context = "cannot reload the certificates; the previous ones stay in use";
                let failure = Failure::new(context).because(error);
                try_print_message(&failure.text().unwrap_or_default());
            }
        }
    }
}

fn not_loaded(error: Error) -> Failure {
    Failure::new("cannot use the certificates").because(error).exit(Exit::NotStarted)
}
