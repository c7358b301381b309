//! Takes the admin address of the process that this one replaces, once that process has closed it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul_admin_endpoint::{Address, Admin};

use crate::ready;
use crate::report::{OrFail, Result, chain, print_message, try_print_message};

/// The pause between two attempts to listen on the address.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A thread that listens on an admin address as soon as no other process does, and serves it. The
/// endpoint is closed when this value is dropped.
pub(crate) struct AdminTakeover {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminTakeover {
    /// Starts the thread if the server has an admin address in its configuration and does not
    /// listen on it. `bind` listens on the given address.
    pub(crate) fn start_if_taken(
        configured: Option<&Address>,
        bound: Option<&Address>,
        bind: impl Fn(&Address) -> io::Result<Admin> + Send + 'static,
    ) -> Result<Option<Self>> {
        let Some(address) = configured.filter(|_| bound.is_none()) else { return Ok(None) };
        let to = address.clone();
        Self::start(address, move || bind(&to)).map(Some)
    }

    /// Starts the thread, which repeats `bind` until it succeeds.
    fn start(
        address: &Address,
        bind: impl FnMut() -> io::Result<Admin> + Send + 'static,
    ) -> Result<Self> {
        print_message(&format!(
            "the admin address {address} is in use: it is taken when the other process ends"
        ));
        let (stop, stopped) = channel();
        let thread = thread::Builder::new().name("take-admin".to_owned());
        let thread = thread.spawn(move || take(bind, &stopped));
        let thread = thread.or_fail(|| "cannot start a thread for the admin address".to_owned())?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for AdminTakeover {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic.
            drop(thread.join());
        }
    }
}

fn take(mut bind: impl FnMut() -> io::Result<Admin>, stopped: &Receiver<()>) {
    let mut is_reported = false;
    let admin = loop {
        match bind() {
            Ok(admin) => break admin,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse || is_reported => {}
            Err(error) => {
                is_reported = true;
                try_print_message(&chain("cannot listen on the admin address", Some(&error)));
            }
        }
        if stopped.recv_timeout(RETRY_INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    };
    try_print_message(&format!("admin on {}", ready::url(admin.address())));
    // Nothing is sent: the call returns when the server has ended.
    stopped.recv().unwrap_or_default();
}
