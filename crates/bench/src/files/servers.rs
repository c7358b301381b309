//! Starts the compared file servers: `haul`, and nginx with each setting that may be its fastest.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::options::{Options, Part};
use super::others::{self, OTHERS};
use crate::net::comparison::Variant;
use crate::net::cores::Cores;
use crate::net::nginx::{Module, Nginx};
use crate::net::programs::find;
use crate::net::server::{Placement, Server, free_address};
use haul_measure::{Error, Result};

const SENDFILE_CONFIG: &str = "sendfile on;\ntcp_nopush on;\n";
const THREADS_CONFIG: &str = "sendfile on;\ntcp_nopush on;\naio threads;\n";
const DIRECT_CONFIG: &str =
    "sendfile on;\ntcp_nopush on;\naio threads;\ndirectio 1m;\noutput_buffers 4 1m;\n";

pub(super) static COPY: Variant = Variant::new("haul", "haul", "--cold copy", "copy");
pub(super) static SPLICE: Variant = Variant::new("haul", "haul_splice", "--cold splice", "splice");
static SENDFILE: Variant =
    Variant::new("nginx", "nginx_sendfile", "sendfile, tcp_nopush", SENDFILE_CONFIG);
static NO_PUSH_OFF: Variant =
    Variant::new("nginx", "nginx_sendfile_at_once", "sendfile", "sendfile on;\ntcp_nopush off;\n");
static READ_WRITE: Variant = Variant::new("nginx", "nginx_copy", "sendfile off", "sendfile off;\n");
static THREADS: Variant =
    Variant::new("nginx", "nginx_aio_threads", "sendfile, aio threads", THREADS_CONFIG);
static DIRECT: Variant =
    Variant::new("nginx", "nginx_directio", "directio 1m, aio threads", DIRECT_CONFIG);
static LIGHTTPD: Variant = Variant::new("lighttpd", "lighttpd", "sendfile", "");
static H2O: Variant = Variant::new("h2o", "h2o", "1 thread", "");
static CADDY: Variant = Variant::new("caddy", "caddy", "GOMAXPROCS=1", "");

pub(super) static VARIANTS: [&Variant; 10] = [
    &COPY,
    &SPLICE,
    &SENDFILE,
    &NO_PUSH_OFF,
    &READ_WRITE,
    &THREADS,
    &DIRECT,
    &LIGHTTPD,
    &H2O,
    &CADDY,
];

/// The installed programs, and the directory they serve.
#[derive(Debug)]
pub(super) struct Servers {
    haul: Option<PathBuf>,
    pub(super) nginx: Option<Nginx>,
    /// Installed rivals of the matrix other than nginx, by name; empty if the matrix is not measured.
    pub(super) others: Vec<(&'static str, PathBuf)>,
    pub(super) cores: Cores,
    pub(super) root: PathBuf,
}

impl Servers {
    /// Finds the installed servers, which will serve a directory in `dir`.
    pub(super) fn find(options: &Options, cores: Cores, dir: &Path) -> Self {
        let nginx = Nginx::find(&options.path);
        let is_matrix = options.parts.contains(&Part::Matrix);
        let others = OTHERS.iter().filter(|_| is_matrix);
        let others = others.filter_map(|name| Some((*name, find(&options.path, name)?))).collect();
        Self { haul: options.program.clone(), nginx, others, cores, root: dir.join("site") }
    }

    /// Returns the variants of installed servers.
    pub(super) fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        let is_installed = |one: &&Variant| match one.is_haul() {
            true => self.haul.is_some(),
            false if one.program == "nginx" => self.nginx.is_some(),
            false => self.others.iter().any(|(name, _)| *name == one.program),
        };
        VARIANTS.into_iter().filter(is_installed)
    }

    /// Starts a server; `dir` must be an empty directory, for the server's configuration and log.
    pub(super) fn start(&self, variant: &Variant, dir: &Path) -> Result<Server> {
        let placement = Placement { address: free_address()?, cores: self.cores, dir };
        let missing = || Error::Missing(format!("{} is not installed", variant.program));
        if let Some((_, program)) = self.others.iter().find(|(name, _)| *name == variant.program) {
            let command = others::command(variant.program, program, &self.root, placement)?;
            return Server::start(variant.program, command, false, placement);
        }
        if !variant.is_haul() {
            let nginx = self.nginx.as_ref().ok_or_else(missing)?;
            let body = http_config(variant, placement.address, &self.root);
            return nginx.start(Module::Http, &body, placement);
        }
        let mut command = Command::new(self.haul.as_ref().ok_or_else(missing)?);
        command.arg("files").arg(&self.root).args(["--threads", "1", "--cold", variant.config]);
        command.args(["--requests", "1000000000", "--listen"]);
        command.arg(placement.address.to_string());
        Server::start(variant.program, command, false, placement)
    }
}

/// Returns the content of the block `http` in nginx's configuration: the lines of `variant`, a
/// cache of open files, and persistent connections with practically no limit of requests.
fn http_config(variant: &Variant, address: SocketAddr, root: &Path) -> String {
    format!(
        "{}tcp_nodelay on;\nkeepalive_timeout 3600s;\nkeepalive_requests 1000000000;\n\
         open_file_cache max=50000 inactive=600s;\nopen_file_cache_valid 600s;\n\
         server {{\nlisten {address} backlog=4096;\nroot \"{}\";\n}}\n",
        variant.config,
        root.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_config_matches_the_name_of_the_setting() {
        let address = "127.0.0.1:8080".parse().unwrap();
        for variant in VARIANTS.into_iter().filter(|one| one.program == "nginx") {
            let text = http_config(variant, address, Path::new("/a b"));
            assert!(text.contains("listen 127.0.0.1:8080 backlog=4096;\nroot \"/a b\";\n"));
            let has = |directive: &str| text.contains(directive);
            assert_eq!(has("sendfile on;"), variant != &READ_WRITE, "{variant:?}");
            let no_push = [&SENDFILE, &THREADS, &DIRECT].contains(&variant);
            assert_eq!(has("tcp_nopush on;"), no_push, "{variant:?}");
            let threads = [&THREADS, &DIRECT].contains(&variant);
            assert_eq!(has("aio threads;"), threads, "{variant:?}");
            assert_eq!(has("directio 1m;"), variant == &DIRECT, "{variant:?}");
        }
    }
}
