//! Tests that bulk transfers through `haul relay` do not delay the keystrokes of an ssh session.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use haul_testing::{Random, skip};

use crate::program;
use crate::running::Running;
use crate::sshd::{self, Keys};

/// The size of each of the four transfers, in bytes: one in each direction over ssh, and one in
/// each direction over plain TCP.
const BYTES: usize = 30_000_000;
/// The pause between keystrokes, so that they do not occupy the CPU.
const PAUSE: Duration = Duration::from_millis(3);
/// The minimum number of keystrokes; typing continues until all transfers end.
const KEYS_MIN: usize = 400;
/// The minimum number of keystrokes echoed during each kind of transfer. If bulk data delayed the
/// keystrokes, there would be only one or two.
const KEYS_DURING_BULK_MIN: usize = 10;

/// The numbers of running transfers.
struct Transfers {
    ssh: AtomicUsize,
    plain: AtomicUsize,
}

/// A guard that counts a transfer as running until it is dropped.
struct TransferGuard<'a>(&'a AtomicUsize);

impl Drop for TransferGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// An interactive ssh session whose keystrokes a remote `cat` echoes.
struct Session {
    ssh: Child,
    keys: ChildStdin,
    echo: ChildStdout,
    random: Random,
}

impl Session {
    /// Logs in and waits until the first keystroke is echoed.
    fn log_in(mut ssh: Command, random: Random) -> Self {
        let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, echo) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
        let mut session = Self { ssh, keys, echo, random };
        session.send_key();
        session
    }

    /// Sends a keystroke and waits for its echo.
    fn send_key(&mut self) {
        let (key, mut echoed) = (self.random.bytes(1), [0]);
        self.keys.write_all(&key).unwrap();
        self.echo.read_exact(&mut echoed).expect("the keystroke is echoed");
        assert_eq!(echoed[..], key[..]);
    }

    /// Types until all transfers end. Returns the number of keystrokes echoed: in total, during plain
    /// transfers, and during transfers over ssh.
    fn type_during(mut self, transfers: &Transfers) -> [usize; 3] {
        let mut typed = [0; 3];
        loop {
            thread::sleep(PAUSE);
            self.send_key();
            let (plain, ssh) = (transfers.plain.load(Relaxed), transfers.ssh.load(Relaxed));
            let [all, during_plain, during_ssh] = &mut typed;
            *all += 1;
            *during_plain += usize::from(plain > 0);
            *during_ssh += usize::from(ssh > 0);
            if *all >= KEYS_MIN && plain + ssh == 0 {
                break;
            }
        }
        drop(self.keys);
        assert_eq!(self.echo.read(&mut [0]).unwrap(), 0, "more bytes were echoed than sent");
        assert!(self.ssh.wait().unwrap().success());
        typed
    }
}

/// Runs `ssh` or `scp` until it exits.
fn copy(mut command: Command, _transfers: TransferGuard<'_>) {
    program::assert_success(&command.output().unwrap());
}

/// Sends a file over plain TCP and shuts down the write side.
fn send(mut file: File, mut to: TcpStream) {
    std::io::copy(&mut file, &mut to).unwrap();
    to.shutdown(Shutdown::Write).unwrap();
}

/// Returns the SHA-256 of a stream.
fn checksum(stream: impl Into<OwnedFd>) -> String {
    let output = Command::new("sha256sum").stdin(stream.into()).output().unwrap();
    program::assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().expect("sha256sum prints a checksum").to_owned()
}

#[test]
fn keystrokes_are_echoed_during_bulk_transfers() {
    if let Some(program) = sshd::missing_program() {
        return skip(&format!("{program} is not installed"));
    }
    let mut random = Random::from_environment();
    let keys = Keys::generate();
    let mut bytes = random.bytes(BYTES);
    std::fs::write(keys.path("up"), &bytes).unwrap();
    bytes.reverse();
    std::fs::write(keys.path("down"), &bytes).unwrap();
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().to_string();
    let relay = Running::relay("127.0.0.1:0", &to, &["--threads", "1"]);
    // The first connection is for plain bulk transfers; later connections go to sshd.
    let near = TcpStream::connect(relay.address()).unwrap();
    let far = target.accept().unwrap().0;
    keys.serve(target);
    let (typed, received) = run_all(&keys, relay.address(), [&near, &far], random);
    let open = |name: &str| File::open(keys.path(name)).unwrap();
    let [up, down] = ["up", "down"].map(|name| checksum(open(name)));
    assert_eq!(received, [up.clone(), down.clone()], "plain");
    assert_eq!(["up.copy", "down.copy"].map(|name| checksum(open(name))), [up, down], "over ssh");
    println!("{typed:?} keystrokes");
    assert!(
        typed[0] >= KEYS_MIN
            && typed[1] >= KEYS_DURING_BULK_MIN
            && typed[2] >= KEYS_DURING_BULK_MIN,
        "{typed:?}"
    );
    drop((near, far));
    relay.stop();
}

/// Types, and transfers a file in each direction over ssh and over plain TCP. Returns the numbers of
/// keystrokes and the checksums of the plain transfers.
fn run_all(
    keys: &Keys,
    relay: &str,
    [near, far]: [&TcpStream; 2],
    random: Random,
) -> ([usize; 3], [String; 2]) {
    let port = relay.rsplit(':').next().unwrap();
    let client = |name: &str, words: &[&str]| {
        let mut command = keys.client(name, port);
        command.args(words);
        command
    };
    let (host, path) = (keys.destination(), |name: &str| keys.path(name).display().to_string());
    let up = client("scp", &[&path("up"), &format!("{host}:{}", path("up.copy"))]);
    let mut down = client("ssh", &[&host, "cat", &path("down")]);
    down.stdout(File::create(keys.path("down.copy")).unwrap());
    let session = Session::log_in(client("ssh", &[&host, "cat"]), random);
    let transfers = Transfers { ssh: AtomicUsize::new(2), plain: AtomicUsize::new(2) };
    thread::scope(|scope| {
        let typing = scope.spawn(|| session.type_during(&transfers));
        let checksums = [("up", near, far), ("down", far, near)].map(|(name, from, to)| {
            let file = File::open(keys.path(name)).unwrap();
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            scope.spawn(move || send(file, from));
            let guard = TransferGuard(&transfers.plain);
            scope.spawn(move || {
                let checksum = checksum(to);
                drop(guard);
                checksum
            })
        });
        for command in [up, down] {
            let guard = TransferGuard(&transfers.ssh);
            scope.spawn(move || copy(command, guard));
        }
        let checksums = checksums.map(|thread| thread.join().unwrap());
        (typing.join().unwrap(), checksums)
    })
}
