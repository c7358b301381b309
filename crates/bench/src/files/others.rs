//! Configures file servers that are measured only in the matrix: lighttpd, h2o and Caddy.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::net::programs::{output, version};
use crate::net::server::Placement;
use haul_measure::{Error, Result};

pub(super) const OTHERS: [&str; 3] = ["lighttpd", "h2o", "caddy"];

/// Returns the version of an installed server.
pub(super) fn installed_version(name: &str, program: &Path) -> Option<String> {
    let argument = if name == "caddy" { "version" } else { "-v" };
    let text = output(program, &[argument]);
    version(text.trim_start_matches('v'))
}

/// Writes the configuration of a server with one thread, and returns the command that starts it.
pub(super) fn command(
    name: &str,
    program: &Path,
    root: &Path,
    at: Placement<'_>,
) -> Result<Command> {
    let file = at.dir.join("config");
    let written = fs::write(&file, config(name, at.address, root));
    written.map_err(Error::other(format!("write {}", file.display())))?;
    let mut command = Command::new(program);
    match name {
        "lighttpd" => command.arg("-D").arg("-f").arg(file),
        "h2o" => command.arg("-m").arg("worker").arg("-c").arg(file),
        _ => {
            command.env("GOMAXPROCS", "1").env("HOME", at.dir).arg("run");
            command.args(["--adapter", "caddyfile", "--config"]).arg(file)
        }
    };
    Ok(command)
}

fn config(name: &str, address: SocketAddr, root: &Path) -> String {
    let (host, port, root) = (address.ip(), address.port(), root.display());
    match name {
        "lighttpd" => format!(
            "server.document-root = \"{root}\"\nserver.bind = \"{host}\"\nserver.port = {port}\n\
             server.max-connections = 8192\nserver.max-fds = 16384\n\
             server.max-keep-alive-requests = 65535\nserver.max-keep-alive-idle = 3600\n\
             server.network-backend = \"sendfile\"\nserver.stat-cache-engine = \"simple\"\n"
        ),
        "h2o" => {
            // By default, h2o of root changes to another user, who may have no access to the files.
            let user = if rustix::process::geteuid().is_root() { "user: root\n" } else { "" };
            format!(
                "{user}num-threads: 1\nmax-connections: 8192\nlisten:\n  host: {host}\n  \
                 port: {port}\nhosts:\n  default:\n    paths:\n      \"/\":\n        \
                 file.dir: \"{root}\"\n"
            )
        }
        _ => format!(
            "{{\n\tadmin off\n\tauto_https off\n}}\n\
             http://{host}:{port} {{\n\tbind {host}\n\troot * \"{root}\"\n\tfile_server\n}}\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_have_the_address_and_the_directory() {
        let address = "127.0.0.1:8123".parse().unwrap();
        for name in OTHERS {
            let text = config(name, address, Path::new("/a b"));
            assert!(text.contains("127.0.0.1") && text.contains("8123"), "{text}");
            assert!(text.contains("\"/a b\""), "{text}");
        }
    }
}
