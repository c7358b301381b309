//! Runs the command of a systemd unit as the unit states it.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Machine;
use crate::http::Client;
use crate::running::Running;

/// The directory of the units.
const UNITS: &str = "/usr/lib/systemd/system";

/// A setting of a unit, in the order of the file.
pub(crate) fn settings(machine: &Machine, unit: &str, name: &str) -> Vec<String> {
    let text = machine.text(&format!("{UNITS}/{unit}"));
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    text.lines().filter_map(value).collect()
}

/// Returns the command of the unit, run as its user. `before` are the words of a command that runs
/// it, such as `strace`.
pub(crate) fn command(machine: &Machine, unit: &str, before: &[&str]) -> Command {
    let start = settings(machine, unit, "ExecStart").remove(0);
    let user = settings(machine, unit, "User").remove(0);
    let user = [format!("--reuid={user}"), format!("--regid={user}")];
    let mut words = before.to_vec();
    words.extend(["setpriv", &user[0], &user[1], "--clear-groups", "--no-new-privs", "--"]);
    words.extend(start.split_whitespace());
    machine.command(&words)
}

/// A running service.
pub(crate) struct Service {
    running: Running,
    /// The first address that the service listens on.
    pub(crate) address: String,
}

impl Service {
    /// Starts the service, and waits for the notification that systemd waits for.
    pub(crate) fn start(mut command: Command) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("haul-test-{}-{number}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let notified = UnixDatagram::bind_addr(&address).unwrap();
        notified.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let running = Running::start(command.env("NOTIFY_SOCKET", format!("@{name}")));
        let mut buffer = [0; 500];
        let length = notified.recv(&mut buffer).expect("the service notifies systemd");
        let state = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(state.starts_with("READY=1\nSTATUS="), "{state}");
        let (_, rest) = running.line.split_once("127.0.0.1:").unwrap();
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Self { running, address: format!("127.0.0.1:{port}") }
    }

    /// Sends a request, and returns the status and the body of the response.
    pub(crate) fn request(&self, method: &str, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut client = Client::connect(&self.address).unwrap();
        let response = client.request(method, target, body).unwrap();
        (response.status, response.body)
    }

    pub(crate) fn stop(self) {
        self.running.stop();
    }
}
