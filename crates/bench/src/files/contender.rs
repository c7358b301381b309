//! Who serves: ours, and nginx in the settings that may be its best.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Claim;
use crate::error::Result;
use crate::net::cores::Cores;
use crate::net::nginx::{Nginx, Part};
use crate::net::server::{Server, Start, free_address};

/// A server in one of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Haul,
    HaulSplice,
    Sendfile,
    SendfileAtOnce,
    Copy,
    Threads,
    Direct,
}

impl Way {
    pub(super) const RIVALS: [Self; 5] =
        [Self::Sendfile, Self::SendfileAtOnce, Self::Copy, Self::Threads, Self::Direct];

    const OURS: [Self; 2] = [Self::Haul, Self::HaulSplice];

    pub(super) fn is_ours(self) -> bool {
        Self::OURS.contains(&self)
    }

    pub(super) fn server(self) -> &'static str {
        if self.is_ours() { "haul" } else { "nginx" }
    }

    pub(super) fn setting(self) -> &'static str {
        match self {
            Self::Haul => "--cold copy",
            Self::HaulSplice => "--cold splice",
            Self::Sendfile => "sendfile, tcp_nopush",
            Self::SendfileAtOnce => "sendfile",
            Self::Copy => "sendfile off",
            Self::Threads => "sendfile, aio threads",
            Self::Direct => "directio 1m, aio threads",
        }
    }

    /// As part of the name of a ratio.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Haul => "haul",
            Self::HaulSplice => "haul_splice",
            Self::Sendfile => "nginx_sendfile",
            Self::SendfileAtOnce => "nginx_sendfile_at_once",
            Self::Copy => "nginx_copy",
            Self::Threads => "nginx_aio_threads",
            Self::Direct => "nginx_directio",
        }
    }

    /// Whether it is measured for a claim: not where its setting is about something else.
    pub(super) fn takes_part(self, claim: Claim) -> bool {
        match (self, claim) {
            (Self::Haul | Self::Sendfile, _) => true,
            (Self::SendfileAtOnce | Self::Copy, claim) => matches!(claim, Claim::Hot(_)),
            (Self::Threads, claim) => !matches!(claim, Claim::Hot(_)),
            (Self::Direct | Self::HaulSplice, claim) => {
                matches!(claim, Claim::Cold | Claim::Rest | Claim::Beside)
            }
        }
    }

    fn directives(self) -> &'static str {
        match self {
            Self::Haul | Self::HaulSplice => "",
            Self::Sendfile => "sendfile on;\ntcp_nopush on;\n",
            Self::SendfileAtOnce => "sendfile on;\ntcp_nopush off;\n",
            Self::Copy => "sendfile off;\n",
            Self::Threads => "sendfile on;\ntcp_nopush on;\naio threads;\n",
            Self::Direct => {
                "sendfile on;\ntcp_nopush on;\naio threads;\ndirectio 1m;\noutput_buffers 4 1m;\n"
            }
        }
    }
}

/// The inside of nginx's `http`: what its documentation advises for many files, and a connection
/// that is kept as long as the load wants it.
fn site(way: Way, address: SocketAddr, root: &Path) -> String {
    format!(
        "{}tcp_nodelay on;\nkeepalive_timeout 3600s;\nkeepalive_requests 1000000000;\n\
         open_file_cache max=50000 inactive=600s;\nopen_file_cache_valid 600s;\n\
         server {{\nlisten {address} backlog=4096;\nroot \"{}\";\n}}\n",
        way.directives(),
        root.display(),
    )
}

/// What servers are started from.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    pub(super) haul: Option<PathBuf>,
    pub(super) nginx: Option<Nginx>,
    pub(super) cores: Cores,
    pub(super) root: PathBuf,
}

impl Servers {
    /// Everybody who is there.
    pub(super) fn ways(&self) -> Vec<Way> {
        let ours = Way::OURS.into_iter().filter(|_| self.haul.is_some());
        let rivals = Way::RIVALS.into_iter().filter(|_| self.nginx.is_some());
        ours.chain(rivals).collect()
    }

    /// Starts one of them. `dir` is its own, and empty.
    pub(super) fn start(&self, way: Way, dir: &Path) -> Result<Option<Server>> {
        let address = free_address()?;
        match (way, &self.haul, &self.nginx) {
            (Way::Haul | Way::HaulSplice, Some(program), _) => {
                let mut command = Command::new(program);
                command.arg("files").arg(&self.root).args(["--threads", "1"]);
                command.args(way.setting().split(' '));
                command.args(["--requests", "1000000000", "--listen"]);
                command.arg(address.to_string());
                let (name, cores) = (way.server(), self.cores);
                let start = Start { name, command, address, cores, dir, forks: false };
                Server::start(start).map(Some)
            }
            (Way::Haul | Way::HaulSplice, None, _) | (_, _, None) => Ok(None),
            (way, _, Some(nginx)) => {
                let body = site(way, address, &self.root);
                nginx.start("nginx", Part::Http, &body, (address, self.cores), dir).map(Some)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_says_what_it_is_called_after() {
        let address = "127.0.0.1:8080".parse().unwrap();
        for way in Way::RIVALS {
            let text = site(way, address, Path::new("/a b"));
            assert!(text.contains("listen 127.0.0.1:8080 backlog=4096;\nroot \"/a b\";\n"));
            assert_eq!(text.contains("sendfile on;"), way != Way::Copy, "{way:?}");
            let nopush = matches!(way, Way::Sendfile | Way::Threads | Way::Direct);
            assert_eq!(text.contains("tcp_nopush on;"), nopush, "{way:?}");
            let threads = matches!(way, Way::Threads | Way::Direct);
            assert_eq!(text.contains("aio threads;"), threads, "{way:?}");
            assert_eq!(text.contains("directio 1m;"), way == Way::Direct, "{way:?}");
        }
    }

    #[test]
    fn every_claim_has_ours_and_sendfile_and_only_cold_ones_directio_and_splice() {
        let claims = [Claim::Hot(1024), Claim::Warm, Claim::Cold, Claim::Rest, Claim::Beside];
        let of = |way: Way| claims.map(|claim| way.takes_part(claim));
        assert_eq!(of(Way::Haul), [true; 5]);
        assert_eq!(of(Way::Sendfile), [true; 5]);
        assert_eq!(of(Way::Copy), [true, false, false, false, false]);
        assert_eq!(of(Way::Threads), [false, true, true, true, true]);
        assert_eq!(of(Way::Direct), [false, false, true, true, true]);
        assert_eq!(of(Way::HaulSplice), of(Way::Direct));
    }
}
