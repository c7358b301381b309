//! Writes configurations of nginx with one worker.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::{Program, output};
use super::server::Start;
use haul_measure::{Error, Result};

pub(crate) const NGINX: Program = Program::new("nginx", "nginx", "-v");
/// The directives of the fastest setting for files in the page cache.
pub(crate) const SENDFILE: &str = "sendfile on;\ntcp_nopush on;\n";

/// Returns the command of a server of the site's files with the lines `directives`, a cache of open
/// files, and persistent connections with practically no limit of requests.
pub(crate) fn file_server(at: &Start<'_>, has_tls: bool, directives: &str) -> Result<Command> {
    let (mut ssl, mut certificate) = ("", String::new());
    if let Some([file, key]) = at.tls.filter(|_| has_tls) {
        ssl = " ssl";
        certificate = format!(
            "ssl_certificate \"{}\";\nssl_certificate_key \"{}\";\nssl_protocols TLSv1.3;\n",
            file.display(),
            key.display()
        );
    }
    let (address, site) = (at.address, at.site.display());
    let server = format!(
        "{directives}open_file_cache max=50000 inactive=600s;\nopen_file_cache_valid 600s;\n\
         server {{\nlisten {address}{ssl} backlog=4096;\n{certificate}root \"{site}\";\n}}\n"
    );
    http(at, &server)
}

/// Returns the command of a relay of HTTP requests.
pub(crate) fn http_relay(at: &Start<'_>) -> Result<Command> {
    let Start { address, target, .. } = at;
    let server = format!(
        "upstream target {{\nserver {target};\nkeepalive 64;\n}}\n\
         server {{\nlisten {address} backlog=4096;\nlocation / {{\nproxy_pass http://target;\n\
         proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n}}\n}}\n"
    );
    http(at, &server)
}

/// Returns the command of a relay of TCP connections.
pub(crate) fn stream_relay(at: &Start<'_>, buffer: &str) -> Result<Command> {
    let Start { address, target, .. } = at;
    let module = stream_module(&output(at.program, &["-V"]))?;
    let module = module.map(|file| format!("load_module {};\n", file.display()));
    let server = format!(
        "stream {{\nserver {{\nlisten {address} backlog=4096;\ntcp_nodelay on;\n\
         proxy_buffer_size {buffer};\nproxy_timeout 600s;\nproxy_pass {target};\n}}\n}}\n"
    );
    command(at, &(module.unwrap_or_default() + &main_directives(at.dir)), &server)
}

fn http(at: &Start<'_>, server: &str) -> Result<Command> {
    let mut http = "http {\naccess_log off;\ntcp_nodelay on;\nkeepalive_timeout 3600s;\n\
                    keepalive_requests 1000000000;\n"
        .to_owned();
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let dir = at.dir.display();
        writeln!(http, "{kind}_temp_path {dir}/{kind};").unwrap_or_default();
    }
    command(at, &main_directives(at.dir), &format!("{http}{server}}}\n"))
}

fn main_directives(dir: &Path) -> String {
    // By default, a worker of root changes to another user, who may have no access to the files.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    format!(
        "{user}daemon off;\nworker_processes 1;\npid {}/pid;\nerror_log stderr crit;\n\
         worker_rlimit_nofile 65536;\nevents {{ worker_connections 16384; }}\n",
        dir.display()
    )
}

fn command(at: &Start<'_>, main: &str, block: &str) -> Result<Command> {
    let file = at.write("nginx.conf", &format!("{main}{block}"))?;
    let mut command = Command::new(at.program);
    command.arg("-e").arg("stderr").arg("-p").arg(at.dir).arg("-c").arg(file);
    Ok(command)
}

/// Returns the file of the stream module, or `None` if the module is built in.
fn stream_module(build: &str) -> Result<Option<PathBuf>> {
    let mut words = build.split_whitespace();
    if words.clone().any(|word| word == "--with-stream") {
        return Ok(None);
    }
    let dir = words.find_map(|word| word.strip_prefix("--modules-path="));
    let module = dir.map(|dir| Path::new(dir).join("ngx_stream_module.so"));
    module.filter(|module| fs::exists(module).unwrap_or_default()).map(Some).ok_or_else(|| {
        let why = "nginx has no stream module (Debian: install libnginx-mod-stream)";
        Error::Missing(why.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
