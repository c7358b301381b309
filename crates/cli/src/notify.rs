//! Notifies the service manager of the state of a server (`sd_notify(3)`).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::{env, io};

use crate::report::{chain, try_print_message};

/// The variable with the address of the service manager.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Notifies the service manager that clients can connect to `addresses`.
pub(crate) fn ready(addresses: &str) {
    notify(&format!("READY=1\nSTATUS={addresses}"));
}

/// Notifies the service manager that the server stops.
pub(crate) fn stopping() {
    notify("STOPPING=1\nSTATUS=finishing requests in progress");
}

/// Sends `state` to the service manager, if there is one. An error is only reported: the server works
/// without a service manager.
fn notify(state: &str) {
    let sent = env::var_os(VARIABLE).map_or(Ok(()), |to| send(&to, state));
    if let Err(error) = sent {
        try_print_message(&chain("cannot notify the service manager", Some(&error)));
    }
}

/// Sends one datagram to a socket: a path, or `@` and the name of an abstract socket.
fn send(to: &OsStr, state: &str) -> io::Result<()> {
    let address = match to.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(to)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 100];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn state_is_sent_to_paths_and_abstract_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&socket), "READY=1");

        let name = format!("haul-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&socket), "STOPPING=1");

        assert!(send(dir.path().join("nowhere").as_os_str(), "READY=1").is_err());
    }
}
