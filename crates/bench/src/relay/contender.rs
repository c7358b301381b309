//! Who relays: ours, and the programs others use for it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::net::cores::Cores;
use crate::net::nginx::{Nginx, Part};
use crate::net::programs::{find, says, version};
use crate::net::server::{Server, Start, free_address};

/// The relay that Go's library makes of itself.
const GO_SOURCE: &str = include_str!("relay.go");

/// A family of relays, which comes into ratios with the best of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Ours.
    Haul,
    /// With splice.
    HaproxySplice,
    /// The same program without.
    HaproxyCopy,
    /// Its stream module, which copies.
    Nginx,
    /// `io.Copy`, which splices.
    Go,
    /// A process for each connection, which copies.
    Socat,
    /// `copy_bidirectional`, which copies.
    Tokio,
}

impl Family {
    /// As part of the name of a ratio.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Haul => "haul",
            Self::HaproxySplice => "haproxy_splice",
            Self::HaproxyCopy => "haproxy_copy",
            Self::Nginx => "nginx_stream",
            Self::Go => "go",
            Self::Socat => "socat",
            Self::Tokio => "tokio",
        }
    }

    /// The program, which is its name on the command line too.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Haul => "haul",
            Self::HaproxySplice | Self::HaproxyCopy => "haproxy",
            Self::Nginx => "nginx",
            Self::Go => "go",
            Self::Socat => "socat",
            Self::Tokio => "tokio",
        }
    }
}

/// A relay in one of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) family: Family,
    pub(super) setting: &'static str,
    /// Whether it has a process for each connection.
    pub(super) forks: bool,
    /// What is told apart: words of a command line, or lines of a configuration.
    told: &'static str,
}

impl Way {
    pub(super) fn is_ours(self) -> bool {
        self.family == Family::Haul
    }
}

const fn way(family: Family, setting: &'static str, told: &'static str) -> Way {
    Way { family, setting, told, forks: false }
}

pub(super) const AUTO: Way = way(Family::Haul, "auto", "auto");
pub(super) const COPY: Way = way(Family::Haul, "copy", "copy");
pub(super) const SPLICE: Way = way(Family::Haul, "splice", "splice");

const SPLICE_BOTH: &str = "    option splice-request\n    option splice-response\n";
/// The same through pipes as large as ours: of what is told as a whole the last counts.
const SPLICE_LARGE: &str = "    option splice-request\n    option splice-response\n\
                            global\n    tune.pipesize 1048576\n";

const BUFFERS: &str = "global\n    tune.bufsize 65536\n";

/// Everybody, in all settings that may be their best.
const WAYS: [Way; 14] = [
    AUTO,
    COPY,
    SPLICE,
    way(Family::HaproxySplice, "splice-auto", "    option splice-auto\n"),
    way(Family::HaproxySplice, "splice-request, -response", SPLICE_BOTH),
    way(Family::HaproxySplice, "the same, pipes of 1 MiB", SPLICE_LARGE),
    way(Family::HaproxyCopy, "no splice", ""),
    way(Family::HaproxyCopy, "no splice, tune.bufsize 65536", BUFFERS),
    way(Family::Nginx, "proxy_buffer_size 16k", "16k"),
    way(Family::Nginx, "proxy_buffer_size 64k", "64k"),
    way(Family::Go, "io.Copy", ""),
    Way { forks: true, ..way(Family::Socat, "-b 65536", "65536") },
    way(Family::Tokio, "copy_bidirectional", "8192"),
    way(Family::Tokio, "copy_bidirectional, 64 KiB", "65536"),
];

/// What relays are started from.
#[derive(Debug)]
pub(super) struct Relays {
    haul: Option<PathBuf>,
    haproxy: Option<PathBuf>,
    nginx: Option<Nginx>,
    go: Option<PathBuf>,
    socat: Option<PathBuf>,
    tokio: Option<PathBuf>,
    cores: Cores,
}

impl Relays {
    /// Those that are there, of those that are wanted. The relay in Go is built in `dir`.
    pub(super) fn find(options: &super::Options, cores: Cores, dir: &Path) -> Result<Self> {
        let path = options.path.as_os_str();
        let wanted = |name: &str| {
            options.rivals.as_ref().is_none_or(|all| all.iter().any(|one| one == name))
        };
        let program = |name: &str| find(path, name).filter(|_| wanted(name));
        let go = program("go").map(|go| build(&go, path, dir)).transpose()?;
        Ok(Self {
            haul: options.program.clone(),
            haproxy: program("haproxy"),
            nginx: Nginx::find(path).filter(|_| wanted("nginx")),
            go,
            socat: program("socat"),
            tokio: options.compare.clone().filter(|_| wanted("tokio")),
            cores,
        })
    }

    fn has(&self, family: Family) -> bool {
        match family {
            Family::Haul => self.haul.is_some(),
            Family::HaproxySplice | Family::HaproxyCopy => self.haproxy.is_some(),
            Family::Nginx => self.nginx.is_some(),
            Family::Go => self.go.is_some(),
            Family::Socat => self.socat.is_some(),
            Family::Tokio => self.tokio.is_some(),
        }
    }

    pub(super) fn ways(&self) -> Vec<Way> {
        WAYS.into_iter().filter(|way| self.has(way.family)).collect()
    }

    /// The programs that are not there, or not wanted.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = WAYS
            .iter()
            .filter(|way| !self.has(way.family))
            .map(|way| way.family.program())
            .collect();
        names.dedup();
        names
    }

    /// Names and versions of those that are there.
    pub(super) fn versions(&self, path: &OsStr) -> Vec<(String, String)> {
        let go = self.go.as_ref().and_then(|_| find(path, "go"));
        let ask = |program: Option<&PathBuf>, words: &[&str]| version(&says(program?, words));
        let all = [
            ("haproxy", ask(self.haproxy.as_ref(), &["-v"])),
            ("nginx", self.nginx.as_ref().and_then(|nginx| nginx.version.clone())),
            ("go", ask(go.as_ref(), &["version"])),
            ("socat", ask(self.socat.as_ref(), &["-V"])),
        ];
        all.into_iter().filter_map(|(name, found)| Some((name.to_owned(), found?))).collect()
    }

    /// Starts one of them. `dir` is its own, and empty.
    pub(super) fn start(&self, way: Way, to: SocketAddr, dir: &Path) -> Result<Server> {
        let address = free_address()?;
        let (listen, target) = (address.to_string(), to.to_string());
        let missing = || Error::Missing(format!("there is no {}", way.family.program()));
        let command = |program: &Option<PathBuf>, words: &[&str]| -> Result<Command> {
            let mut command = Command::new(program.as_ref().ok_or_else(missing)?);
            command.args(words);
            Ok(command)
        };
        let command = match way.family {
            Family::Haul => {
                let words = ["relay", "--listen", &listen, "--to", &target];
                let more = ["--threads", "1", "--move", way.told];
                command(&self.haul, &[&words[..], &more].concat())?
            }
            Family::Nginx => {
                let nginx = self.nginx.as_ref().ok_or_else(missing)?;
                let body = nginx_body(way.told, address, to);
                return nginx.start("nginx", Part::Stream, &body, (address, self.cores), dir);
            }
            Family::HaproxySplice | Family::HaproxyCopy => {
                let file = dir.join("haproxy.cfg");
                let what = || format!("write {}", file.display());
                fs::write(&file, haproxy(way.told, address, to)).map_err(Error::other(what()))?;
                let mut command = command(&self.haproxy, &["-db", "-q", "-f"])?;
                command.arg(&file);
                command
            }
            Family::Go => {
                let mut command = command(&self.go, &[&listen, &target])?;
                command.env("GOMAXPROCS", "1");
                command
            }
            Family::Socat => {
                let from = format!(
                    "TCP-LISTEN:{},bind={},fork,reuseaddr,nodelay,backlog=4096",
                    address.port(),
                    address.ip()
                );
                let to = format!("TCP:{}:{},nodelay", to.ip(), to.port());
                command(&self.socat, &["-b", way.told, &from, &to])?
            }
            Family::Tokio => {
                let words = ["--relay", "tokio", "--listen", &listen, "--to", &target];
                let more = ["--buffer-bytes", way.told];
                command(&self.tokio, &[&words[..], &more].concat())?
            }
        };
        let (name, cores, forks) = (way.family.program(), self.cores, way.forks);
        Server::start(Start { name, command, address, cores, dir, forks })
    }
}

/// Builds the relay in Go.
fn build(go: &Path, path: &OsStr, dir: &Path) -> Result<PathBuf> {
    let (source, program) = (dir.join("relay.go"), dir.join("relay-in-go"));
    let what = || format!("write {}", source.display());
    fs::write(&source, GO_SOURCE).map_err(Error::other(what()))?;
    let output = Command::new(go)
        .arg("build")
        .arg("-o")
        .args([&program, &source])
        .env("PATH", with_dir_of(go, path))
        .env("CGO_ENABLED", "0")
        .output()
        .map_err(Error::other("start go build"))?;
    if output.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Missing(format!("cannot build the relay in Go: {said}")))
}

fn with_dir_of(program: &Path, path: &OsStr) -> OsString {
    let mut dirs: Vec<PathBuf> = program.parent().map(PathBuf::from).into_iter().collect();
    dirs.extend(std::env::split_paths(path));
    std::env::join_paths(dirs).unwrap_or_else(|_| path.to_owned())
}

/// haproxy on one thread. Its pipes may be as many as its connections: by default a quarter would
/// have to copy.
fn haproxy(told: &str, listen: SocketAddr, to: SocketAddr) -> String {
    format!(
        "global\n    nbthread 1\n    maxconn 2000\n    maxpipes 2000\n    tune.pipesize 262144\n\
         defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 600s\n    \
         timeout server 600s\n{told}frontend near\n    bind {listen}\n    default_backend far\n\
         backend far\n    server far {to}\n"
    )
}

/// The inside of nginx's `stream`.
fn nginx_body(buffer: &str, listen: SocketAddr, to: SocketAddr) -> String {
    format!(
        "server {{\nlisten {listen} backlog=4096;\ntcp_nodelay on;\nproxy_buffer_size {buffer};\n\
         proxy_timeout 600s;\nproxy_pass {to};\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_say_what_they_are_called_after() {
        let (near, far) =
            ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse::<SocketAddr>().unwrap());
        for way in WAYS {
            match way.family {
                Family::HaproxySplice | Family::HaproxyCopy => {
                    let text = haproxy(way.told, near, far);
                    let splices = way.family == Family::HaproxySplice;
                    assert_eq!(text.contains("option splice-"), splices, "{text}");
                    let is_asked = way.setting.contains("tune.bufsize 65536");
                    assert_eq!(text.contains("tune.bufsize 65536"), is_asked, "{text}");
                    for line in
                        ["nbthread 1", "mode tcp", "bind 127.0.0.1:1", "server far 127.0.0.1:2"]
                    {
                        assert!(text.lines().any(|found| found.trim() == line), "{line}: {text}");
                    }
                }
                Family::Nginx => {
                    let text = nginx_body(way.told, near, far);
                    assert!(text.contains(&format!("{};", way.setting)), "{text}");
                    assert!(text.contains("listen 127.0.0.1:1 ") && text.contains("127.0.0.1:2;"));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn go_is_found_by_its_own_tools() {
        let path = with_dir_of(Path::new("/go/bin/go"), OsStr::new("/bin:/usr/bin"));
        assert_eq!(path, "/go/bin:/bin:/usr/bin");
    }
}
