//! `haul relay` between ssh and sshd: somebody types while others move files.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use haul_test_image::skip;

use crate::program;
use crate::random::Random;
use crate::running::Running;
use crate::sshd::{self, Keys};

/// Of what goes each way by ssh, and each way without.
const BYTES: usize = 30_000_000;
/// Between keys, so that typing does not keep the cores from everything else.
const PAUSE: Duration = Duration::from_millis(3);
/// So many keys are typed, or more: until all is over.
const KEYS: usize = 400;
/// So many must be echoed before the transfers are over; if keys came after bulk it would be one or
/// two.
const KEYS_BESIDE: usize = 10;

/// Transfers that are not over.
struct UnderWay {
    by_ssh: AtomicUsize,
    plain: AtomicUsize,
}

/// One of them, which is over when this is dropped, whatever came of it.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Somebody at a terminal, whose keys a remote `cat` echoes.
struct Typist {
    ssh: Child,
    keys: ChildStdin,
    echo: ChildStdout,
    random: Random,
}

impl Typist {
    /// Logs in; the first key was echoed.
    fn log_in(mut ssh: Command, random: Random) -> Self {
        let mut ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, echo) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
        let mut typist = Self { ssh, keys, echo, random };
        typist.key();
        typist
    }

    /// One key, and its echo.
    fn key(&mut self) {
        let (key, mut echoed) = (self.random.bytes(1), [0]);
        self.keys.write_all(&key).unwrap();
        self.echo.read_exact(&mut echoed).expect("an echo");
        assert_eq!(echoed[..], key[..]);
    }

    /// Types until all is over. How many keys were echoed, and how many of them beside plain bulk
    /// and beside copies by ssh.
    fn type_beside(mut self, under_way: &UnderWay) -> [usize; 3] {
        let mut typed = [0; 3];
        loop {
            thread::sleep(PAUSE);
            self.key();
            let (plain, by_ssh) = (under_way.plain.load(Relaxed), under_way.by_ssh.load(Relaxed));
            let [all, beside_plain, beside_ssh] = &mut typed;
            *all += 1;
            *beside_plain += usize::from(plain > 0);
            *beside_ssh += usize::from(by_ssh > 0);
            if *all >= KEYS && plain + by_ssh == 0 {
                break;
            }
        }
        drop(self.keys);
        assert_eq!(self.echo.read(&mut [0]).unwrap(), 0, "more was echoed than was typed");
        assert!(self.ssh.wait().unwrap().success());
        typed
    }
}

/// Runs `ssh` or `scp`.
fn copy(mut command: Command, _under_way: Counted<'_>) {
    program::assert_success(&command.output().unwrap());
}

/// Sends a file without ssh, and says its end.
fn send(mut file: File, mut to: TcpStream) {
    std::io::copy(&mut file, &mut to).unwrap();
    to.shutdown(Shutdown::Write).unwrap();
}

/// The SHA-256 of all there is to read.
fn sum(of: impl Into<OwnedFd>) -> String {
    let output = Command::new("sha256sum").stdin(of.into()).output().unwrap();
    program::assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().expect("a sum").to_owned()
}

#[test]
fn keys_are_echoed_while_files_go_through_the_same_thread() {
    if let Some(program) = sshd::missing() {
        return skip(&format!("there is no {program}"));
    }
    let mut random = Random::from_environment();
    let keys = Keys::make();
    let mut bytes = random.bytes(BYTES);
    std::fs::write(keys.path("up"), &bytes).unwrap();
    bytes.reverse();
    std::fs::write(keys.path("down"), &bytes).unwrap();
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().to_string();
    let relay = Running::relay("127.0.0.1:0", &to, &["--threads", "1"]);
    // The first connection is for bulk without ssh; those that follow find sshd.
    let near = TcpStream::connect(relay.address()).unwrap();
    let far = target.accept().unwrap().0;
    keys.serve(target);
    let (typed, came) = all_at_once(&keys, relay.address(), [&near, &far], random);
    let open = |name: &str| File::open(keys.path(name)).unwrap();
    let [up, down] = ["up", "down"].map(|name| sum(open(name)));
    assert_eq!(came, [up.clone(), down.clone()], "plain");
    assert_eq!(["up.copy", "down.copy"].map(|name| sum(open(name))), [up, down], "by ssh");
    println!("{typed:?} keys");
    assert!(typed[0] >= KEYS && typed[1] >= KEYS_BESIDE && typed[2] >= KEYS_BESIDE, "{typed:?}");
    drop((near, far));
    relay.stop();
}

/// Types, copies a file each way by ssh, and sends one each way without. How many keys were echoed,
/// and the sums of what came without ssh.
fn all_at_once(
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
    let (host, path) = (keys.host(), |name: &str| keys.path(name).display().to_string());
    let up = client("scp", &[&path("up"), &format!("{host}:{}", path("up.copy"))]);
    let mut down = client("ssh", &[&host, "cat", &path("down")]);
    down.stdout(File::create(keys.path("down.copy")).unwrap());
    let typist = Typist::log_in(client("ssh", &[&host, "cat"]), random);
    let under_way = UnderWay { by_ssh: AtomicUsize::new(2), plain: AtomicUsize::new(2) };
    thread::scope(|scope| {
        let typing = scope.spawn(|| typist.type_beside(&under_way));
        let sums = [("up", near, far), ("down", far, near)].map(|(name, from, to)| {
            let file = File::open(keys.path(name)).unwrap();
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            scope.spawn(move || send(file, from));
            let counted = Counted(&under_way.plain);
            scope.spawn(move || {
                let sum = sum(to);
                drop(counted);
                sum
            })
        });
        for command in [up, down] {
            let counted = Counted(&under_way.by_ssh);
            scope.spawn(move || copy(command, counted));
        }
        let sums = sums.map(|sum| sum.join().unwrap());
        (typing.join().unwrap(), sums)
    })
}
