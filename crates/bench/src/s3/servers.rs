//! Starts the compared S3 servers, all with the same key pair.

use std::process::Command;

use crate::net::bench::Rival;
use crate::net::presigned::{ACCESS_KEY, REGION, SECRET_KEY};
use crate::net::programs::{HAUL, Program};
use crate::net::server::{Start, free_address};
use crate::net::signed_serve;
use haul_measure::Result;

static MINIO: Program = Program::new("minio", "minio", "--version");
static SEAWEEDFS: Program = Program::new("seaweedfs", "weed", "version");
static VERSITYGW: Program = Program::new("versitygw", "versitygw", "--version");
static GARAGE: Program = Program::new("garage", "garage", "--version");

pub(super) static RIVALS: [&Rival; 5] = [
    &Rival::new(&HAUL, "haul", "serve, synced", signed_serve),
    &Rival::new(&MINIO, "minio", "one drive, not synced", minio),
    &Rival::new(&SEAWEEDFS, "seaweedfs", "default, not synced", seaweedfs),
    &Rival::new(&VERSITYGW, "versitygw", "posix, keep-alive, not synced", versitygw),
    &Rival::new(&GARAGE, "garage", "one node, default, not synced", garage),
];

/// Returns the command of a SeaweedFS with one volume server, whose ports are all free.
fn seaweedfs(at: &Start<'_>) -> Result<Command> {
    let data = at.dir.join("data");
    let credentials = format!(r#"[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}]"#);
    let actions = r#"["Admin","Read","Write","List"]"#;
    let identity = format!(r#"{{"name":"bench","credentials":{credentials},"actions":{actions}}}"#);
    let config = at.write("s3.json", &format!(r#"{{"identities":[{identity}]}}"#))?;
    let mut command = Command::new(at.program);
    command.arg("server").arg(format!("-dir={}", data.display())).current_dir(&data);
    command.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", "-volume.max=100"]);
    command.arg("-master.volumeSizeLimitMB=1024").arg(format!("-s3.port={}", at.address.port()));
    command.arg(format!("-s3.config={}", config.display()));
    for server in ["master.port", "volume.port", "filer.port", "s3.port.grpc"] {
        command.arg(format!("-{server}={}", free_address()?.port()));
    }
    for server in ["master", "volume", "filer"] {
        command.arg(format!("-{server}.port.grpc={}", free_address()?.port()));
    }
    Ok(command)
}

fn versitygw(at: &Start<'_>) -> Result<Command> {
    let mut command = Command::new(at.program);
    command.args(["--access", ACCESS_KEY, "--secret", SECRET_KEY]);
    command.args(["--quiet", "--keep-alive", "--port"]).arg(at.address.to_string());
    command.arg("posix").arg(at.dir.join("data"));
    Ok(command)
}

fn minio(at: &Start<'_>) -> Result<Command> {
    let mut command = Command::new(at.program);
    command.args(["server", "--quiet", "--address"]).arg(at.address.to_string());
    command.arg(at.dir.join("data")).env("HOME", at.dir);
    command.env("MINIO_ROOT_USER", ACCESS_KEY).env("MINIO_ROOT_PASSWORD", SECRET_KEY);
    Ok(command)
}

/// Returns the command of a Garage without replicas, with its default database of metadata.
fn garage(at: &Start<'_>) -> Result<Command> {
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
        data = at.dir.join("data").display(),
        secret = "00".repeat(32),
        rpc = free_address()?,
        address = at.address,
    );
    let config = at.write("garage.toml", &text)?;
    let mut command = Command::new(at.program);
    command.arg("--config").arg(config);
    command.args(["server", "--single-node", "--default-access-key"]);
    command.env("GARAGE_DEFAULT_ACCESS_KEY", ACCESS_KEY);
    command.env("GARAGE_DEFAULT_SECRET_KEY", SECRET_KEY);
    Ok(command)
}
