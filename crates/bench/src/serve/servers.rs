//! Starts the compared servers: `haul serve` without and with signatures, `haul files`, and nginx.

use std::fs;
use std::path::{Path, PathBuf};

use super::options::Options;
use crate::net::comparison::Variant;
use crate::net::cores::Cores;
use crate::net::haul;
use crate::net::nginx::{self, Module, Nginx, file_site};
use crate::net::server::{Placement, Server, free_address};
use haul_measure::{Error, Result};

pub(super) static SERVE: Variant = Variant::new("haul", "serve", "serve, anonymous", "");
pub(super) static SIGNED: Variant = Variant::new("haul", "serve_signed", "serve, signed", "");
pub(super) static FILES: Variant = Variant::new("haul", "files", "files", "");
pub(super) static NGINX: Variant =
    Variant::new("nginx", "nginx", "sendfile, tcp_nopush", nginx::SENDFILE);
pub(super) static STORE: Variant = Variant::new("haul", "store", "Store::put", "");

pub(super) static VARIANTS: [&Variant; 5] = [&SERVE, &SIGNED, &FILES, &NGINX, &STORE];

/// The installed programs, and the directories that they serve.
#[derive(Debug)]
pub(super) struct Servers {
    haul: Option<PathBuf>,
    pub(super) nginx: Option<Nginx>,
    pub(super) cores: Cores,
    dir: PathBuf,
}

impl Servers {
    /// Finds the installed servers. All directories of the benchmark are below `dir`.
    pub(super) fn find(options: &Options, cores: Cores, dir: &Path) -> Self {
        let nginx = Nginx::find(&options.path);
        Self { haul: options.program.clone(), nginx, cores, dir: dir.to_path_buf() }
    }

    /// Returns the variants that can be measured.
    pub(super) fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        VARIANTS.into_iter().filter(|one| match one.is_haul() {
            true => self.haul.is_some(),
            false => self.nginx.is_some(),
        })
    }

    /// Returns the directory of the files.
    pub(super) fn site(&self) -> PathBuf {
        self.dir.join("site")
    }

    /// Returns the directory of the store of a variant.
    pub(super) fn store(&self, variant: &Variant) -> PathBuf {
        self.dir.join(format!("store-{}", variant.key))
    }

    /// Starts a server. Its store must exist.
    pub(super) fn start(&self, variant: &Variant) -> Result<Server> {
        let dir = self.dir.join(variant.key);
        fs::create_dir(&dir).map_err(Error::other(format!("create {}", dir.display())))?;
        let placement = Placement { address: free_address()?, cores: self.cores, dir: &dir };
        let missing = || Error::Missing(format!("{} is not installed", variant.program));
        if !variant.is_haul() {
            let body = file_site(variant.config, placement.address, &self.site(), None);
            let nginx = self.nginx.as_ref().ok_or_else(missing)?;
            return nginx.start(Module::Http, &body, placement);
        }
        let program = self.haul.as_ref().ok_or_else(missing)?;
        let command = if *variant == FILES {
            haul::files(program, &self.site(), placement.address)
        } else {
            let credentials = (*variant == SIGNED).then(|| haul::credentials(&dir)).transpose()?;
            let data = self.store(variant);
            haul::serve(program, &data, placement.address, credentials.as_deref())
        };
        Server::start(variant.setting, command, false, placement)
    }
}
