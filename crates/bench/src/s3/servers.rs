//! Starts the compared S3 servers, all with the same key pair.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::options::{Options, Rival};
use crate::net::comparison::Variant;
use crate::net::cores::Cores;
use crate::net::haul;
use crate::net::http::s3::{ACCESS_KEY, REGION, SECRET_KEY};
use crate::net::programs::{find, output, version};
use crate::net::server::{Placement, Server, free_address};
use crate::report::Report;
use haul_measure::{Error, Result};

pub(super) static HAUL: Variant = Variant::new("haul", "haul", "serve, synced", "");
pub(super) static SEAWEEDFS: Variant =
    Variant::new("SeaweedFS", "seaweedfs", "default, not synced", "");
pub(super) static VERSITYGW: Variant =
    Variant::new("versitygw", "versitygw", "posix, keep-alive, not synced", "");
pub(super) static GARAGE: Variant =
    Variant::new("Garage", "garage", "one node, default, not synced", "");

pub(super) static RIVALS: [&Variant; 3] = [&SEAWEEDFS, &VERSITYGW, &GARAGE];

/// The installed programs, and the directory of their files.
#[derive(Debug)]
pub(super) struct Servers {
    haul: Option<PathBuf>,
    rivals: Vec<Installed>,
    pub(super) cores: Cores,
    dir: PathBuf,
}

/// The program of a rival.
#[derive(Debug)]
struct Installed {
    variant: &'static Variant,
    program: PathBuf,
}

impl Servers {
    /// Finds the installed servers. All files of the benchmark are below `dir`.
    pub(super) fn find(options: &Options, cores: Cores, dir: &Path) -> Self {
        let rivals = [
            (Rival::SeaweedFs, &SEAWEEDFS, "weed"),
            (Rival::VersityGw, &VERSITYGW, "versitygw"),
            (Rival::Garage, &GARAGE, "garage"),
        ];
        let rivals = rivals.into_iter().filter(|(rival, ..)| options.selects(*rival));
        let installed =
            |(_, variant, name)| Some(Installed { variant, program: find(&options.path, name)? });
        let rivals = rivals.filter_map(installed).collect();
        Self { haul: options.program.clone(), rivals, cores, dir: dir.to_path_buf() }
    }

    /// Adds the versions of the rivals to a report, or a note that they are not installed.
    pub(super) fn describe(&self, report: &mut Report) {
        for rival in RIVALS {
            let found = self.rivals.iter().find(|one| one.variant == rival);
            let text = found.map(|one| output(&one.program, version_command(rival)));
            match text.map(|text| version(&text)) {
                Some(version) => report
                    .host
                    .versions
                    .extend(version.map(|version| (rival.program.to_owned(), version))),
                None => report.notes.push(format!("{} was not measured.", rival.program)),
            }
        }
    }

    /// Returns the variants that can be measured.
    pub(super) fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        let haul = self.haul.as_ref().map(|_| &HAUL);
        haul.into_iter().chain(self.rivals.iter().map(|one| one.variant))
    }

    /// Starts a server without objects.
    pub(super) fn start(&self, variant: &'static Variant) -> Result<Server> {
        let dir = self.dir.join(variant.key);
        let data = dir.join("data");
        fs::create_dir_all(&data).map_err(Error::other(format!("create {}", data.display())))?;
        let at = Placement { address: free_address()?, cores: self.cores, dir: &dir };
        let missing = || Error::Missing(format!("{} is not installed", variant.program));
        let command = if variant.is_haul() {
            let program = self.haul.as_ref().ok_or_else(missing)?;
            let credentials = haul::credentials(&dir)?;
            haul::serve(program, &data, at.address, Some(&credentials))
        } else {
            let rival = self.rivals.iter().find(|one| one.variant == variant);
            let program = &rival.ok_or_else(missing)?.program;
            if *variant == SEAWEEDFS {
                seaweedfs(program, &data, at)?
            } else if *variant == GARAGE {
                garage(program, &data, at)?
            } else {
                versitygw(program, &data, at)
            }
        };
        Server::start(variant.program, command, false, at)
    }
}

fn version_command(rival: &Variant) -> &'static [&'static str] {
    if *rival == SEAWEEDFS { &["version"] } else { &["--version"] }
}

/// Returns the command of a SeaweedFS with one volume server, whose ports are all free.
fn seaweedfs(program: &Path, data: &Path, at: Placement<'_>) -> Result<Command> {
    let config = at.dir.join("s3.json");
    let credentials = format!(r#"[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}]"#);
    let actions = r#"["Admin","Read","Write","List"]"#;
    let identity = format!(r#"{{"name":"bench","credentials":{credentials},"actions":{actions}}}"#);
    fs::write(&config, format!(r#"{{"identities":[{identity}]}}"#))
        .map_err(Error::other(format!("write {}", config.display())))?;
    let mut command = Command::new(program);
    command.arg("server").arg(format!("-dir={}", data.display())).current_dir(data);
    command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", "-volume.max=100"]);
    command.arg("-master.volumeSizeLimitMB=1024").arg(format!("-s3.port={}", at.address.port()));
    command.arg(format!("-s3.config={}", config.display()));
    for port in [
        "master.port",
        "master.port.grpc",
        "volume.port",
        "volume.port.grpc",
        "filer.port",
        "filer.port.grpc",
        "s3.port.grpc",
    ] {
        command.arg(format!("-{port}={}", free_address()?.port()));
    }
    Ok(command)
}

fn versitygw(program: &Path, data: &Path, at: Placement<'_>) -> Command {
    let mut command = Command::new(program);
    command.args([
        "--access",
        ACCESS_KEY,
        "--secret",
        SECRET_KEY,
        "--quiet",
        "--keep-alive",
        "--port",
    ]);
    command.arg(at.address.to_string()).arg("posix").arg(data);
    command
}

/// Returns the command of a Garage without replicas, with its default database of metadata.
fn garage(program: &Path, data: &Path, at: Placement<'_>) -> Result<Command> {
    let config = at.dir.join("garage.toml");
    let text = format!(
        r#"metadata_dir = "{data}/metadata"
data_dir = "{data}/data"
replication_factor = 1
rpc_secret = "{secret}"
rpc_bind_addr = "{rpc}"

[s3_api]
api_bind_addr = "{address}"
s3_region = "{REGION}"
"#,
        data = data.display(),
        secret = "00".repeat(32),
        rpc = free_address()?,
        address = at.address,
    );
    fs::write(&config, text).map_err(Error::other(format!("write {}", config.display())))?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&config);
    command.args(["server", "--single-node", "--default-access-key"]);
    command.env("GARAGE_DEFAULT_ACCESS_KEY", ACCESS_KEY);
    command.env("GARAGE_DEFAULT_SECRET_KEY", SECRET_KEY);
    Ok(command)
}
