//! Starts the compared file servers: `haul`, and nginx with each setting that may be its fastest.

use std::path::{Path, PathBuf};

use super::options::{Options, Part};
use super::others::{self, GO_NAME, HYPER_NAME};
use crate::net::comparison::Variant;
use crate::net::cores::Cores;
use crate::net::haul;
use crate::net::http::tls::Tls;
use crate::net::nginx::{self, Module, Nginx, file_site};
use crate::net::programs::{build_go, find};
use crate::net::server::{Placement, Server, free_address};
use haul_measure::{Error, Result};

/// The source of a server that uses only Go's standard library.
const GO_SOURCE: &str = include_str!("serve.go");

const THREADS_CONFIG: &str = "sendfile on;\ntcp_nopush on;\naio threads;\n";
const DIRECT_CONFIG: &str =
    "sendfile on;\ntcp_nopush on;\naio threads;\ndirectio 1m;\noutput_buffers 4 1m;\n";

pub(super) static COPY: Variant = Variant::new("haul", "haul", "--cold copy", "copy");
pub(super) static SPLICE: Variant = Variant::new("haul", "haul_splice", "--cold splice", "splice");
static SENDFILE: Variant =
    Variant::new("nginx", "nginx_sendfile", "sendfile, tcp_nopush", nginx::SENDFILE);
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
static HYPER: Variant = Variant::new("hyper", "hyper", "1 thread, files in memory", "");
static GO: Variant = Variant::new("go", "go", "http.ServeFile, GOMAXPROCS=1", "");
pub(super) static HAUL_TLS: Variant = Variant::new("haul", "haul_tls", "TLS", "copy");
static NGINX_TLS: Variant =
    Variant::new("nginx", "nginx_tls", "sendfile, tcp_nopush, TLS", nginx::SENDFILE);
static CADDY_TLS: Variant = Variant::new("caddy", "caddy_tls", "GOMAXPROCS=1, TLS", "");

pub(super) static VARIANTS: [&Variant; 15] = [
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
    &HYPER,
    &GO,
    &HAUL_TLS,
    &NGINX_TLS,
    &CADDY_TLS,
];

/// Returns `true` if the servers of a variant accept only TLS.
pub(super) fn is_tls(variant: &Variant) -> bool {
    [&HAUL_TLS, &NGINX_TLS, &CADDY_TLS].contains(&variant)
}

/// The installed programs, and the directory they serve.
#[derive(Debug)]
pub(super) struct Servers {
    haul: Option<PathBuf>,
    pub(super) nginx: Option<Nginx>,
    /// Rivals other than nginx that the selected parts measure, by name.
    pub(super) others: Vec<(&'static str, PathBuf)>,
    /// The versions of these rivals.
    pub(super) versions: Vec<(String, String)>,
    /// The certificate of the servers with TLS; `None` if they are not measured.
    pub(super) tls: Option<Tls>,
    pub(super) cores: Cores,
    pub(super) root: PathBuf,
}

impl Servers {
    /// Finds the installed servers, which will serve a directory in `dir`.
    pub(super) fn find(options: &Options, cores: Cores, dir: &Path) -> Result<Self> {
        let nginx = Nginx::find(&options.path);
        let (mut others, mut versions) = (Vec::new(), Vec::new());
        for name in others::wanted(&options.parts) {
            let found = match name {
                HYPER_NAME => Some(options.bench_program.clone()).filter(|path| path.is_file()),
                _ => find(&options.path, name),
            };
            let Some(mut program) = found else { continue };
            let found = others::installed_version(name, &program);
            versions.extend(found.map(|version| (name.to_owned(), version)));
            if name == GO_NAME {
                program = build_go(&program, &options.path, dir, "serve-in-go", GO_SOURCE)?;
            }
            others.push((name, program));
        }
        let is_tls = options.parts.contains(&Part::Tls);
        let tls = is_tls.then(|| Tls::new(dir)).transpose()?;
        Ok(Self {
            haul: options.program.clone(),
            nginx,
            others,
            versions,
            tls,
            cores,
            root: dir.join("site"),
        })
    }

    /// Returns the variants of installed servers.
    pub(super) fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        let is_installed = |one: &&Variant| match one.is_haul() {
            true => self.haul.is_some(),
            false if one.program == "nginx" => self.nginx.is_some(),
            false => self.others.iter().any(|(name, _)| *name == one.program),
        };
        let is_wanted = |one: &&Variant| self.tls.is_some() || !is_tls(one);
        VARIANTS.into_iter().filter(is_wanted).filter(is_installed)
    }

    /// Starts a server; `dir` must be an empty directory, for the server's configuration and log.
    pub(super) fn start(&self, variant: &Variant, dir: &Path) -> Result<Server> {
        let placement = Placement { address: free_address()?, cores: self.cores, dir };
        let tls = self.tls.as_ref().filter(|_| is_tls(variant));
        let tls = tls.map(|tls| [&*tls.certificate, &*tls.key]);
        let missing = || Error::Missing(format!("{} is not installed", variant.program));
        if let Some((_, program)) = self.others.iter().find(|(name, _)| *name == variant.program) {
            let command = others::command(program, variant.program, (&self.root, tls), placement)?;
            return Server::start(variant.program, command, false, placement);
        }
        if !variant.is_haul() {
            let nginx = self.nginx.as_ref().ok_or_else(missing)?;
            let body = file_site(variant.config, placement.address, &self.root, tls);
            return nginx.start(Module::Http, &body, placement);
        }
        let program = self.haul.as_ref().ok_or_else(missing)?;
        let mut command = haul::files(program, &self.root, placement.address);
        command.args(["--cold", variant.config]);
        if let Some([certificate, key]) = tls {
            command.arg("--tls-cert").arg(certificate).arg("--tls-key").arg(key);
        }
        Server::start(variant.program, command, false, placement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_config_matches_the_name_of_the_setting() {
        let address = "127.0.0.1:8080".parse().unwrap();
        for variant in VARIANTS.into_iter().filter(|one| one.program == "nginx") {
            let text = file_site(variant.config, address, Path::new("/a b"), None);
            assert!(text.contains("listen 127.0.0.1:8080 backlog=4096;\nroot \"/a b\";\n"));
            let has = |directive: &str| text.contains(directive);
            assert_eq!(has("sendfile on;"), variant != &READ_WRITE, "{variant:?}");
            let no_push = [&SENDFILE, &THREADS, &DIRECT, &NGINX_TLS].contains(&variant);
            assert_eq!(has("tcp_nopush on;"), no_push, "{variant:?}");
            let threads = [&THREADS, &DIRECT].contains(&variant);
            assert_eq!(has("aio threads;"), threads, "{variant:?}");
            assert_eq!(has("directio 1m;"), variant == &DIRECT, "{variant:?}");
        }
    }

    #[test]
    fn nginx_config_with_tls_has_the_certificate() {
        let address = "127.0.0.1:8080".parse().unwrap();
        let tls = ["/a.crt", "/a.key"].map(Path::new);
        let text = file_site(NGINX_TLS.config, address, Path::new("/a b"), Some(tls));
        for line in [
            "listen 127.0.0.1:8080 ssl backlog=4096;",
            "ssl_certificate \"/a.crt\";",
            "ssl_certificate_key \"/a.key\";",
            "ssl_protocols TLSv1.3;",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
    }
}
