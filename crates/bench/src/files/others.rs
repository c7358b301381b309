//! Configures file servers that are measured only in some parts: lighttpd, h2o, Caddy, a server in
//! Go, and the server with hyper, which is this program.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::options::Part;
use crate::net::programs::{output, version};
use crate::net::server::Placement;
use haul_measure::{Error, Result};

/// The name of the server with hyper.
pub(super) const HYPER_NAME: &str = "hyper";
/// The name of the server in Go.
pub(super) const GO_NAME: &str = "go";
const CADDY_NAME: &str = "caddy";

/// Returns the names of the servers that the parts measure.
pub(super) fn wanted(parts: &[Part]) -> impl Iterator<Item = &'static str> {
    let measures = |wanted: &[Part]| wanted.iter().any(|part| parts.contains(part));
    let matrix = measures(&[Part::Matrix]);
    [
        ("lighttpd", matrix),
        ("h2o", matrix),
        (HYPER_NAME, matrix),
        (GO_NAME, measures(&[Part::Warm, Part::Cold, Part::Matrix])),
        (CADDY_NAME, measures(&[Part::Matrix, Part::Tls])),
    ]
    .into_iter()
    .filter_map(|(name, is_wanted)| is_wanted.then_some(name))
}

/// Returns the version of an installed server.
pub(super) fn installed_version(name: &str, program: &Path) -> Option<String> {
    let text = match name {
        HYPER_NAME => return None,
        CADDY_NAME | GO_NAME => output(program, &["version"]),
        _ => output(program, &["-v"]),
    };
    version(text.trim_start_matches('v'))
}

/// Writes the configuration of a server with one thread, and returns the command that starts it.
/// The site is a directory, and for servers with TLS a certificate and its key.
pub(super) fn command(
    program: &Path,
    name: &str,
    site: (&Path, Option<[&Path; 2]>),
    at: Placement<'_>,
) -> Result<Command> {
    if name == HYPER_NAME {
        let mut command = Command::new(program);
        command.args(["files", "--hyper"]).arg(at.address.to_string()).arg("--dir").arg(site.0);
        return Ok(command);
    }
    if name == GO_NAME {
        let mut command = Command::new(program);
        command.arg(at.address.to_string()).arg(site.0).env("GOMAXPROCS", "1");
        return Ok(command);
    }
    let file = at.dir.join("config");
    let written = fs::write(&file, config(name, at.address, site));
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

fn config(name: &str, address: SocketAddr, (root, tls): (&Path, Option<[&Path; 2]>)) -> String {
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
        _ => {
            let (name, tls) = match tls {
                Some([certificate, key]) => {
                    let (certificate, key) = (certificate.display(), key.display());
                    let files = format!("\"{certificate}\" \"{key}\"");
                    let version = "protocols tls1.3 tls1.3";
                    (format!(":{port}"), format!("\ttls {files} {{\n\t\t{version}\n\t}}\n"))
                }
                None => (format!("http://{host}:{port}"), String::new()),
            };
            format!(
                "{{\n\tadmin off\n\tauto_https off\n}}\n{name} {{\n\tbind {host}\n{tls}\
                 \troot * \"{root}\"\n\tfile_server\n}}\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_have_the_address_and_the_directory() {
        let address = "127.0.0.1:8123".parse().unwrap();
        for name in ["lighttpd", "h2o", CADDY_NAME] {
            let text = config(name, address, (Path::new("/a b"), None));
            assert!(text.contains("127.0.0.1") && text.contains("8123"), "{text}");
            assert!(text.contains("\"/a b\""), "{text}");
        }
        let tls = ["/a.crt", "/a.key"].map(Path::new);
        let text = config(CADDY_NAME, address, (Path::new("/a b"), Some(tls)));
        assert!(
            text.contains("\ttls \"/a.crt\" \"/a.key\" {") && !text.contains("http:"),
            "{text}"
        );
    }

    #[test]
    fn parts_select_servers() {
        let names = |parts: &[Part]| wanted(parts).collect::<Vec<_>>();
        assert_eq!(names(&[Part::Matrix]), ["lighttpd", "h2o", HYPER_NAME, GO_NAME, CADDY_NAME]);
        assert_eq!(names(&[Part::Hot, Part::Tls]), [CADDY_NAME]);
        assert_eq!(names(&[Part::Hot, Part::Cold]), [GO_NAME]);
        assert!(names(&[Part::Hot, Part::Latency]).is_empty());
    }
}
