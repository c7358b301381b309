//! Runs nginx with one worker and a generated configuration.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::{find, output, version};
use super::server::{Placement, Server};
use crate::report::Report;
use haul_measure::{Error, Result};

/// The directives of the fastest setting for files in the page cache.
pub(crate) const SENDFILE: &str = "sendfile on;\ntcp_nopush on;\n";

/// The nginx program, with its version and build options.
#[derive(Debug, Clone)]
pub(crate) struct Nginx {
    program: PathBuf,
    pub(crate) version: Option<String>,
    build: String,
}

/// The module of nginx that a configuration uses: `http` serves files, `stream` relays TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    Http,
    Stream,
}

impl Nginx {
    pub(crate) fn find(path: &OsStr) -> Option<Self> {
        let program = find(path, "nginx")?;
        let build = output(&program, &["-V"]);
        Some(Self { version: version(&build), build, program })
    }

    /// Adds the version of nginx to a report, or a note that nginx is not installed.
    pub(crate) fn describe(nginx: Option<&Self>, report: &mut Report) {
        match nginx {
            Some(nginx) => {
                let version = nginx.version.clone().map(|version| ("nginx".to_owned(), version));
                report.host.versions.extend(version);
            }
            None => {
                report.notes.push("nginx is not installed, so it was not measured.".to_owned());
            }
        }
    }

    /// Starts nginx with `body` as the content of the block `http` or `stream`; `at.dir` must be
    /// empty.
    pub(crate) fn start(&self, module: Module, body: &str, at: Placement<'_>) -> Result<Server> {
        let dir = at.dir;
        let file = if module == Module::Stream { stream_module(&self.build)? } else { None };
        let is_root = rustix::process::geteuid().is_root();
        let text = config(module, body, file.as_deref(), dir, is_root);
        let file = dir.join("nginx.conf");
        let what = || format!("write {}", file.display());
        fs::write(&file, text).map_err(Error::other(what()))?;
        let mut command = Command::new(&self.program);
        command.arg("-e").arg("stderr").arg("-p").arg(dir).arg("-c").arg(&file);
        Server::start("nginx", command, false, at)
    }
}

/// Returns a content of the block `http` that serves the files below `root`: the lines `directives`,
/// a cache of open files, and persistent connections with practically no limit of requests. With
/// `tls`, a certificate and its key, the server accepts only TLS 1.3.
pub(crate) fn file_site(
    directives: &str,
    address: SocketAddr,
    root: &Path,
    tls: Option<[&Path; 2]>,
) -> String {
    let (ssl, certificate) = match tls {
        Some([certificate, key]) => {
            let (certificate, key) = (certificate.display(), key.display());
            let files = format!(
                "ssl_certificate \"{certificate}\";\nssl_certificate_key \"{key}\";\n\
                 ssl_protocols TLSv1.3;\n"
            );
            (" ssl", files)
        }
        None => ("", String::new()),
    };
    format!(
        "{directives}tcp_nodelay on;\nkeepalive_timeout 3600s;\nkeepalive_requests 1000000000;\n\
         open_file_cache max=50000 inactive=600s;\nopen_file_cache_valid 600s;\n\
         server {{\nlisten {address}{ssl} backlog=4096;\n{certificate}root \"{}\";\n}}\n",
        root.display(),
    )
}

/// Returns the file of the stream module, or `None` if the module is built in.
fn stream_module(build: &str) -> Result<Option<PathBuf>> {
    let words = || build.split_whitespace();
    if words().any(|word| word == "--with-stream") {
        return Ok(None);
    }
    let dir = words().find_map(|word| word.strip_prefix("--modules-path="));
    let module = dir.map(|dir| Path::new(dir).join("ngx_stream_module.so"));
    module.filter(|module| module.is_file()).map(Some).ok_or_else(|| {
        let why = "nginx has no stream module (Debian: install libnginx-mod-stream)";
        Error::Missing(why.to_owned())
    })
}

fn config(module: Module, body: &str, file: Option<&Path>, dir: &Path, is_root: bool) -> String {
    let mut text = String::new();
    if let Some(file) = file {
        text += &format!("load_module {};\n", file.display());
    }
    if is_root {
        // By default, a worker of root changes to another user, who may have no access to the
        // files.
        text += "user root;\n";
    }
    let dir = dir.display();
    text += &format!(
        "daemon off;\nworker_processes 1;\npid {dir}/pid;\nerror_log stderr crit;\n\
         worker_rlimit_nofile 65536;\nevents {{ worker_connections 16384; }}\n"
    );
    match module {
        Module::Stream => text + &format!("stream {{\n{body}}}\n"),
        Module::Http => {
            let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let paths = kinds.map(|kind| format!("{kind}_temp_path {dir}/{kind};\n")).concat();
            text + &format!("http {{\naccess_log off;\n{paths}{body}}}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_has_one_worker_and_no_path_outside_its_directory() {
        let dir = Path::new("/scratch/nginx");
        let http = config(Module::Http, "server { }\n", None, dir, false);
        assert!(http.contains("worker_processes 1;\n") && http.contains("access_log off;\n"));
        assert!(http.ends_with("server { }\n}\n") && !http.contains("user root"));
        for line in http.lines().filter(|line| line.contains("_path ") || line.contains("pid ")) {
            assert!(line.contains(" /scratch/nginx/"), "{line}");
        }
        let module = Path::new("/modules/ngx_stream_module.so");
        let stream = config(Module::Stream, "server { }\n", Some(module), dir, true);
        assert!(stream.starts_with("load_module /modules/ngx_stream_module.so;\nuser root;\n"));
        assert!(stream.ends_with("stream {\nserver { }\n}\n"));
    }

    #[test]
    fn stream_module_is_built_in_dynamic_or_missing() {
        assert_eq!(stream_module("arguments: --with-stream --x").unwrap(), None);
        let dir = tempfile::tempdir().unwrap();
        let build = format!("--with-stream=dynamic --modules-path={} --x", dir.path().display());
        assert!(stream_module(&build).unwrap_err().to_string().contains("libnginx-mod-stream"));
        let module = dir.path().join("ngx_stream_module.so");
        fs::write(&module, "").unwrap();
        assert_eq!(stream_module(&build).unwrap(), Some(module));
    }
}
