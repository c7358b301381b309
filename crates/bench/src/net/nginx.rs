//! nginx with one worker, and a configuration of our own.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cores::Cores;
use super::programs::{find, says, version};
use super::server::{Server, Start};
use crate::error::{Error, Result};

/// The program, and what it was built with.
#[derive(Debug, Clone)]
pub(crate) struct Nginx {
    program: PathBuf,
    pub(crate) version: Option<String>,
    built: String,
}

/// Which of its modules a configuration is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Http,
    Stream,
}

impl Nginx {
    pub(crate) fn find(path: &OsStr) -> Option<Self> {
        let program = find(path, "nginx")?;
        let built = says(&program, &["-V"]);
        Some(Self { version: version(&built), built, program })
    }

    /// Starts it with `body` as the inside of `http` or `stream`. `dir` is its own, and empty.
    pub(crate) fn start(
        &self,
        name: &str,
        part: Part,
        body: &str,
        (address, cores): (SocketAddr, Cores),
        dir: &Path,
    ) -> Result<Server> {
        let module = if part == Part::Stream { stream_module(&self.built)? } else { None };
        let is_root = rustix::process::geteuid().is_root();
        let text = config(part, body, module.as_deref(), dir, is_root);
        let file = dir.join("nginx.conf");
        let what = || format!("write {}", file.display());
        fs::write(&file, text).map_err(Error::other(what()))?;
        let mut command = Command::new(&self.program);
        command.arg("-e").arg("stderr").arg("-p").arg(dir).arg("-c").arg(&file);
        Server::start(Start { name, command, address, cores, dir, forks: false })
    }
}

/// The file that holds the stream module; `None` where it is built in.
fn stream_module(built: &str) -> Result<Option<PathBuf>> {
    let words = || built.split_whitespace();
    if words().any(|word| word == "--with-stream") {
        return Ok(None);
    }
    let dir = words().find_map(|word| word.strip_prefix("--modules-path="));
    let module = dir.map(|dir| Path::new(dir).join("ngx_stream_module.so"));
    module.filter(|module| module.is_file()).map(Some).ok_or_else(|| {
        let why = "nginx has no stream module here (Debian: the package libnginx-mod-stream)";
        Error::Missing(why.to_owned())
    })
}

fn config(part: Part, body: &str, module: Option<&Path>, dir: &Path, is_root: bool) -> String {
    let mut text = String::new();
    if let Some(module) = module {
        text += &format!("load_module {};\n", module.display());
    }
    if is_root {
        // The worker reads what we made for ourselves.
        text += "user root;\n";
    }
    let dir = dir.display();
    text += &format!(
        "daemon off;\nworker_processes 1;\npid {dir}/pid;\nerror_log stderr crit;\n\
         worker_rlimit_nofile 65536;\nevents {{ worker_connections 16384; }}\n"
    );
    match part {
        Part::Stream => text + &format!("stream {{\n{body}}}\n"),
        Part::Http => {
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
    fn there_is_one_worker_and_nothing_is_kept_outside_the_directory() {
        let dir = Path::new("/scratch/nginx");
        let http = config(Part::Http, "server { }\n", None, dir, false);
        assert!(http.contains("worker_processes 1;\n") && http.contains("access_log off;\n"));
        assert!(http.ends_with("server { }\n}\n") && !http.contains("user root"));
        for line in http.lines().filter(|line| line.contains("_path ") || line.contains("pid ")) {
            assert!(line.contains(" /scratch/nginx/"), "{line}");
        }
        let module = Path::new("/modules/ngx_stream_module.so");
        let stream = config(Part::Stream, "server { }\n", Some(module), dir, true);
        assert!(stream.starts_with("load_module /modules/ngx_stream_module.so;\nuser root;\n"));
        assert!(stream.ends_with("stream {\nserver { }\n}\n"));
    }

    #[test]
    fn the_stream_module_is_built_in_beside_or_missing() {
        assert_eq!(stream_module("arguments: --with-stream --x").unwrap(), None);
        let dir = tempfile::tempdir().unwrap();
        let built = format!("--with-stream=dynamic --modules-path={} --x", dir.path().display());
        assert!(stream_module(&built).unwrap_err().to_string().contains("libnginx-mod-stream"));
        let module = dir.path().join("ngx_stream_module.so");
        fs::write(&module, "").unwrap();
        assert_eq!(stream_module(&built).unwrap(), Some(module));
    }
}
