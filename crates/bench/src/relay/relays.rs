//! Finds and starts the compared relays: `haul` and its rivals, each with the settings that may be
//! its fastest.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::options::{Options, RIVALS};
use crate::net::comparison::Variant;
use crate::net::cores::Cores;
use crate::net::nginx::{Module, Nginx};
use crate::net::programs::{build_go, find, output, version};
use crate::net::server::{Placement, Server, free_address};
use haul_measure::{Error, Result};

/// The source of a relay that uses only Go's standard library.
const GO_SOURCE: &str = include_str!("relay.go");

const SPLICE_BOTH: &str = "    option splice-request\n    option splice-response\n";
/// Splicing with pipes as large as those of `haul`. haproxy uses the last value of a global
/// setting, so this value overrides the value in [`haproxy_config`].
const SPLICE_LARGE: &str = "    option splice-request\n    option splice-response\n\
                            global\n    tune.pipesize 1048576\n";
const LARGE_BUFFERS: &str = "global\n    tune.bufsize 65536\n";

const fn new(program: &'static str, setting: &'static str, config: &'static str) -> Variant {
    Variant::new(program, program, setting, config)
}

const fn haproxy(key: &'static str, setting: &'static str, config: &'static str) -> Variant {
    Variant::new("haproxy", key, setting, config)
}

const fn nginx(setting: &'static str, buffer: &'static str) -> Variant {
    Variant::new("nginx", "nginx_stream", setting, buffer)
}

/// All variants. The `config` of a variant is an argument of the program, or lines of its
/// configuration file.
pub(super) static VARIANTS: [Variant; 14] = [
    new("haul", "auto", "auto"),
    new("haul", "copy", "copy"),
    new("haul", "splice", "splice"),
    haproxy("haproxy_splice", "splice-auto", "    option splice-auto\n"),
    haproxy("haproxy_splice", "splice-request, -response", SPLICE_BOTH),
    haproxy("haproxy_splice", "the same, pipes of 1 MiB", SPLICE_LARGE),
    haproxy("haproxy_copy", "no splice", ""),
    haproxy("haproxy_copy", "no splice, tune.bufsize 65536", LARGE_BUFFERS),
    nginx("proxy_buffer_size 16k", "16k"),
    nginx("proxy_buffer_size 64k", "64k"),
    new("go", "io.Copy", ""),
    Variant { forks: true, ..new("socat", "-b 65536", "65536") },
    new("tokio", "copy_bidirectional", "8192"),
    new("tokio", "copy_bidirectional, 64 KiB", "65536"),
];

/// The relays that are installed and selected.
#[derive(Debug)]
pub(super) struct Relays {
    /// The path of each program, except nginx.
    programs: BTreeMap<&'static str, PathBuf>,
    nginx: Option<Nginx>,
    versions: Vec<(String, String)>,
    cores: Cores,
}

impl Relays {
    /// Finds the selected relays that are installed, and builds the relay in Go in `dir`.
    pub(super) fn find(options: &Options, cores: Cores, dir: &Path) -> Result<Self> {
        let path = options.path.as_os_str();
        let is_selected = |name: &str| {
            options.rivals.as_ref().is_none_or(|rivals| rivals.iter().any(|rival| rival == name))
        };
        let mut programs = BTreeMap::new();
        let mut versions = Vec::new();
        programs.extend(options.program.clone().map(|program| ("haul", program)));
        let nginx = Nginx::find(path).filter(|_| is_selected("nginx"));
        for name in RIVALS.into_iter().filter(|name| is_selected(name)) {
            let (found, argument) = match name {
                "haproxy" => (find(path, name), "-v"),
                "go" => (find(path, name), "version"),
                "socat" => (find(path, name), "-V"),
                "tokio" => {
                    programs.extend(options.compare.clone().map(|program| (name, program)));
                    continue;
                }
                _ => continue,
            };
            let Some(program) = found else { continue };
            let version = version(&output(&program, &[argument]));
            versions.extend(version.map(|version| (name.to_owned(), version)));
            let program = match name {
                "go" => build_go(&program, path, dir, "relay-in-go", GO_SOURCE)?,
                _ => program,
            };
            programs.insert(name, program);
        }
        let version = nginx.as_ref().and_then(|nginx| nginx.version.clone());
        versions.extend(version.map(|version| ("nginx".to_owned(), version)));
        Ok(Self { programs, nginx, versions, cores })
    }

    fn has(&self, program: &str) -> bool {
        self.programs.contains_key(program) || (program == "nginx" && self.nginx.is_some())
    }

    pub(super) fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        VARIANTS.iter().filter(|variant| self.has(variant.program))
    }

    /// Returns the programs that are not installed, or not selected.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = VARIANTS.iter().map(|variant| variant.program).collect();
        names.dedup();
        names.retain(|name| !self.has(name));
        names
    }

    /// Returns the versions of the rivals.
    pub(super) fn versions(&self) -> Vec<(String, String)> {
        self.versions.clone()
    }

    /// Starts a relay that connects to `to`; `dir` must be an empty directory, for the relay's
    /// configuration and log.
    pub(super) fn start(&self, variant: &Variant, to: SocketAddr, dir: &Path) -> Result<Server> {
        let placement = Placement { address: free_address()?, cores: self.cores, dir };
        let (from, name) = (placement.address, variant.program);
        let missing = || Error::Missing(format!("{name} is not installed"));
        if name == "nginx" {
            let nginx = self.nginx.as_ref().ok_or_else(missing)?;
            return nginx.start(Module::Stream, &nginx_config(variant.config, from, to), placement);
        }
        let (listen, target) = (from.to_string(), to.to_string());
        let mut command = Command::new(self.programs.get(name).ok_or_else(missing)?);
        match name {
            "haul" => {
                command.args(["relay", "--listen", &listen, "--to", &target, "--threads", "1"]);
                command.args(["--move", variant.config])
            }
            "haproxy" => {
                let file = dir.join("haproxy.cfg");
                let written = fs::write(&file, haproxy_config(variant.config, from, to));
                written.map_err(Error::other(format!("write {}", file.display())))?;
                command.args(["-db", "-q", "-f"]).arg(&file)
            }
            "go" => command.args([listen, target]).env("GOMAXPROCS", "1"),
            "socat" => {
                let options = "fork,reuseaddr,nodelay,backlog=4096";
                let from = format!("TCP-LISTEN:{},bind={},{options}", from.port(), from.ip());
                command.args(["-b", variant.config, &from, &format!("TCP:{target},nodelay")])
            }
            _ => {
                command.args(["--relay", "tokio", "--listen", &listen, "--to", &target]);
                command.args(["--buffer-bytes", variant.config])
            }
        };
        Server::start(name, command, variant.forks, placement)
    }
}

/// Returns the configuration of haproxy with one thread and as many pipes as connections. With the
/// default, a quarter of `maxconn`, haproxy would copy on the connections without a pipe.
fn haproxy_config(lines: &str, listen: SocketAddr, to: SocketAddr) -> String {
    format!(
        "global\n    nbthread 1\n    maxconn 2000\n    maxpipes 2000\n    tune.pipesize 262144\n\
         defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 600s\n    \
         timeout server 600s\n{lines}frontend relay\n    bind {listen}\n    \
         default_backend target\nbackend target\n    server target {to}\n"
    )
}

/// Returns the content of the block `stream` in nginx's configuration.
fn nginx_config(buffer: &str, listen: SocketAddr, to: SocketAddr) -> String {
    format!(
        "server {{\nlisten {listen} backlog=4096;\ntcp_nodelay on;\nproxy_buffer_size {buffer};\n\
         proxy_timeout 600s;\nproxy_pass {to};\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_match_the_names_of_their_settings() {
        let (from, to) =
            ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse::<SocketAddr>().unwrap());
        for variant in &VARIANTS {
            match variant.program {
                "haproxy" => {
                    let text = haproxy_config(variant.config, from, to);
                    let splices = variant.key == "haproxy_splice";
                    assert_eq!(text.contains("option splice-"), splices, "{text}");
                    let is_set = variant.setting.contains("tune.bufsize 65536");
                    assert_eq!(text.contains("tune.bufsize 65536"), is_set, "{text}");
                    for line in
                        ["nbthread 1", "mode tcp", "bind 127.0.0.1:1", "server target 127.0.0.1:2"]
                    {
                        assert!(text.lines().any(|found| found.trim() == line), "{line}: {text}");
                    }
                }
                "nginx" => {
                    let text = nginx_config(variant.config, from, to);
                    assert!(text.contains(&format!("{};", variant.setting)), "{text}");
                    assert!(text.contains("listen 127.0.0.1:1 ") && text.contains("127.0.0.1:2;"));
                }
                _ => {}
            }
        }
    }
}
