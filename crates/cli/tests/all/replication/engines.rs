//! Tests copies in other S3 servers than `haul serve`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use haul_testing::{Finished, noise, skip};
use rustix::process::Signal;

use super::{RemoteStore, get};
use crate::helper::{Serving, TestDir};

/// The credentials of all servers.
const KEYS: (&str, &str) = ("replication", "replication-secret");

/// Creates the bucket, once the server accepts connections.
const CREATE_BUCKET: &str = "
import sys, time, boto3
s3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1',
                  aws_access_key_id=sys.argv[2], aws_secret_access_key=sys.argv[3])
for attempt in range(300):
    try:
        s3.create_bucket(Bucket='backup')
        break
    except Exception as error:
        last = error
        time.sleep(0.1)
else:
    raise last
";

/// The process of another S3 server, killed on drop.
struct Engine(Child);

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Calls `test` with each of the S3 servers in `HAUL_S3_SERVERS`, the paths of programs, separated
/// by colons.
fn with_each(test: impl Fn(&TestDir, &RemoteStore<Engine>)) {
    let Some(programs) = std::env::var_os("HAUL_S3_SERVERS").filter(|list| !list.is_empty()) else {
        return skip("set HAUL_S3_SERVERS to paths of moto_server, versitygw or minio");
    };
    for program in std::env::split_paths(&programs) {
        println!("with {}", program.display());
        let place = TestDir::on_disk();
        test(&place, &start(&place, &program));
    }
}

/// Starts a server, and creates the bucket.
fn start(place: &TestDir, program: &Path) -> RemoteStore<Engine> {
    let name = program.file_name().unwrap().to_str().unwrap();
    // Another process could use the port before the server does, but none asks for a given one.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let port = address.port().to_string();
    let data: PathBuf = place.path("engine");
    std::fs::create_dir(&data).unwrap();
    let mut command = Command::new(program);
    match name {
        "moto_server" => command.args(["-H", "127.0.0.1", "-p", &port]),
        "versitygw" => {
            command.env("ROOT_ACCESS_KEY", KEYS.0).env("ROOT_SECRET_KEY", KEYS.1);
            command.args(["--port", &address.to_string(), "posix"]).arg(&data)
        }
        "minio" => {
            command.env("MINIO_ROOT_USER", KEYS.0).env("MINIO_ROOT_PASSWORD", KEYS.1);
            command.args(["server", "--address", &address.to_string()]).arg(&data)
        }
        other => panic!("{other} is not a server that this test can start"),
    };
    let null = || Stdio::null();
    let engine = Engine(command.stdin(null()).stdout(null()).stderr(null()).spawn().unwrap());
    let endpoint = format!("http://{address}");
    let python = std::env::var_os("HAUL_PYTHON").unwrap_or_else(|| "python3".into());
    let arguments = ["-c", CREATE_BUCKET, &endpoint, KEYS.0, KEYS.1];
    Finished(Command::new(python).args(arguments).output().unwrap()).code(0);
    let text = format!(
        "aws_endpoint = {endpoint}\naws_allow_http = true\naws_region = us-east-1\n\
         aws_access_key_id = {}\naws_secret_access_key = {}\n",
        KEYS.0, KEYS.1
    );
    RemoteStore::new(place, engine, text)
}

/// The lengths of the objects of a round: in the manifest, in chunks, and with files of their own,
/// which are sent in one request and in parts.
const LENGTHS: [usize; 4] = [3000, 300_000, 2 << 20, 9 << 20];

#[test]
fn copy_in_another_s3_server_survives_the_loss_of_machines() {
    with_each(|place, remote| {
        for round in 0..4_u64 {
            let data = format!("data-{round}");
            if round > 0 {
                remote.restore(place, &data);
            }
            let server = remote.serve(place, &data, &["--ack", "remote"]);
            if round == 0 {
                assert_eq!(server.request("PUT", "/bucket", b"").0, 200);
            }
            for number in 0..10 * round {
                let path = format!("/bucket/{number}");
                assert!(get(&server, &path) == content(number), "{path} in round {round}");
            }
            for number in 10 * round..10 * (round + 1) {
                let path = format!("/bucket/{number}");
                assert_eq!(server.request("PUT", &path, &content(number)).0, 200);
            }
            server.signal(Signal::KILL);
            server.wait();
            std::fs::remove_dir_all(place.path(&data)).unwrap();
        }
    });
}

fn content(number: u64) -> Vec<u8> {
    noise(number, LENGTHS[usize::try_from(number).unwrap() % LENGTHS.len()])
}

#[test]
fn one_of_two_servers_claims_a_copy_in_another_s3_server() {
    with_each(|place, remote| {
        let first = remote.serve(place, "start", &["--ack", "remote"]);
        assert_eq!(first.request("PUT", "/bucket", b"").0, 200);
        first.signal(Signal::TERM);
        first.wait();
        let mut last = "start".to_owned();
        for round in 0..5 {
            let names = ["a", "b"].map(|name| format!("{name}-{round}"));
            for name in &names {
                let mut copy = Command::new("cp");
                copy.arg("-a").arg(place.path(&last)).arg(place.path(name));
                assert!(copy.status().unwrap().success());
            }
            let serve = |name: &String| remote.serve(place, name, &["--ack", "remote"]);
            let servers: [Serving; 2] = thread::scope(|scope| {
                let other = scope.spawn(|| serve(&names[1]));
                [serve(&names[0]), other.join().unwrap()]
            });
            let mut winners = Vec::new();
            for (server, name) in servers.into_iter().zip(&names) {
                if server.line.is_empty() {
                    let (code, _, stderr) = server.wait();
                    assert_eq!(code, Some(3), "{stderr}");
                    assert!(stderr.contains("took over"), "{stderr}");
                } else {
                    winners.push((server, name.clone()));
                }
            }
            assert_eq!(winners.len(), 1, "round {round}");
            let (winner, name) = winners.pop().unwrap();
            let path = format!("/bucket/{round}");
            assert_eq!(winner.request("PUT", &path, name.as_bytes()).0, 200);
            winner.signal(Signal::TERM);
            winner.wait();
            last = name;
        }
        remote.restore(place, "restored");
        let restored = remote.serve(place, "restored", &[]);
        for round in 0..5 {
            let found = String::from_utf8(get(&restored, &format!("/bucket/{round}"))).unwrap();
            assert!(["a", "b"].iter().any(|name| found == format!("{name}-{round}")), "{found}");
        }
    });
}
