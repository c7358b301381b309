//! Tests how a process handles signals.

use std::io::{BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use haul_cli_common::console::Console;
use haul_cli_common::report::Exit;
use haul_cli_common::signals::{Signal, Stop, handle_signals};
use haul_measure::Watcher;
use haul_testing::{child_test, eventually, line_with};
use rustix::process::{Pid, Signal as Sent, kill_process};

const ROLE: &str = "HAUL_TEST_SIGNALS";

/// Runs in the other process. Returns at once if the test runner calls it as a test.
#[test]
fn child_with_handlers() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.as_str() {
        "stop" => {
            let stop = Stop::on_signals("the test").unwrap();
            println!("ready: {:?}", stop.requested());
            eventually("the signal arrives", || stop.requested().is_some());
            println!("stopped: {:?}", stop.requested());
        }
        "console" => {
            let console = Console::new("the benchmark").unwrap();
            console.step(1, 4, "reads");
            println!("ready: {}", console.is_cancelled());
            eventually("the signal arrives", || console.is_cancelled());
            println!("stopped: {:?}", console.finish());
        }
        _ => {
            let signals = [Signal::Hangup, Signal::Alarm, Signal::User];
            handle_signals(&signals, |signal| println!("received {signal:?}")).unwrap();
            println!("ready: {role}");
        }
    }
    // Blocks until the parent closes the pipe, or a signal ends the process.
    drop(std::io::stdin().read(&mut [0]));
}

/// Starts the other process, and waits until it has installed its handlers.
fn child(role: &str, ready: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = child_test("signals::child_with_handlers");
    command.env(ROLE, role).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    assert!(line_with("ready: ", &mut lines).ends_with(ready));
    (child, lines)
}

fn send(child: &Child, signal: Sent) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn first_signal_requests_a_stop_and_the_second_ends_the_process() {
    for (first, number, second, code) in
        [(Sent::TERM, 15, Sent::INT, 130), (Sent::INT, 2, Sent::TERM, 143)]
    {
        let (mut child, mut lines) = child("stop", "None");
        send(&child, first);
        let stopped = line_with("stopped: ", &mut lines);
        assert_eq!(stopped, format!("stopped: {:?}", Some(Exit::Signal(number))));
        // `wait` would close the pipe, after which the process ends without the second signal.
        let open = child.stdin.take();
        send(&child, second);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        drop(open);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let message = "haul: finishing the test; signal again to exit immediately\n";
        assert!(stderr.contains(message), "{stderr}");
    }
}

#[test]
fn signal_cancels_a_measurement() {
    let (mut child, mut lines) = child("console", "false");
    send(&child, Sent::TERM);
    let stopped = line_with("stopped: ", &mut lines);
    assert_eq!(stopped, format!("stopped: {:?}", Some(Exit::Signal(15))));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn each_signal_is_passed_to_the_handler() {
    let (mut child, mut lines) = child("handle", "handle");
    for (sent, received) in [
        (Sent::HUP, Signal::Hangup),
        (Sent::ALARM, Signal::Alarm),
        (Sent::USR1, Signal::User),
        (Sent::HUP, Signal::Hangup),
    ] {
        send(&child, sent);
        assert_eq!(line_with("received", &mut lines), format!("received {received:?}"));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
