//! What a message costs the relay, copied, spliced, and as it chooses itself: from 64 B to 1 MiB,
//! one message at a time to a target that sends it back. The relay has core 0 for itself, both ends
//! share core 1. Prints a table of microseconds of CPU a message, the medians of nine rounds in
//! turn; the ratio is the median of those of each round.
#![expect(clippy::print_stdout, reason = "an example that is run by hand")]

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use haul_tcp_relay::{Address, Config, Moving, Server};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};

const ROUNDS: usize = 9;
const WAYS: [Moving; 3] = [Moving::Copy, Moving::Splice, Moving::Auto];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    println!("| bytes | copy | splice | auto | auto against the better |");
    println!("|---|---|---|---|---|");
    for power in 6..=20 {
        let bytes = 1_usize << power;
        let mut seen = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for (seen, moving) in seen.iter_mut().zip(WAYS) {
                seen.push(measure(moving, bytes)?);
            }
        }
        let [copy, splice, auto] = seen.each_ref().map(|seen| median(seen.clone()));
        let better = if copy < splice { &seen[0] } else { &seen[1] };
        let ratios = seen[2].iter().zip(better).map(|(auto, better)| auto / better).collect();
        println!("| {bytes} | {copy:.1} | {splice:.1} | {auto:.1} | {:.2} |", median(ratios));
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Microseconds of CPU a message.
fn measure(moving: Moving, bytes: usize) -> Result<f64> {
    pin(None, 1)?;
    let target = TcpListener::bind("127.0.0.1:0")?;
    let to = Address::Tcp(target.local_addr()?);
    let config =
        Config { moving, threads: 1, ..Config::new(vec!["127.0.0.1:0".parse()?], vec![to]) };
    let relay = Server::bind(config)?;
    let Address::Tcp(address) = relay.addresses().listen[0] else { unreachable!() };
    let handle = relay.handle();
    let running = thread::spawn(|| relay.run());
    let mut client = TcpStream::connect(address)?;
    client.set_nodelay(true)?;
    let mut peer = target.accept()?.0;
    peer.set_nodelay(true)?;
    let echo = thread::spawn(move || -> std::io::Result<()> {
        let mut message = vec![0; bytes];
        while peer.read_exact(&mut message).is_ok() {
            peer.write_all(&message)?;
        }
        Ok(())
    });
    let relay_thread = thread_named("relay-0")?;
    pin(Some(relay_thread), 0)?;
    let mut message = vec![7; bytes];
    let mut exchange = |times: usize| -> Result<()> {
        for _ in 0..times {
            client.write_all(&message)?;
            client.read_exact(&mut message)?;
        }
        Ok(())
    };
    let times = (64 << 20) / (bytes + (16 << 10));
    exchange(times / 10 + 10)?;
    let before = cpu_ns(relay_thread)?;
    exchange(times)?;
    let taken = cpu_ns(relay_thread)? - before;
    drop(client);
    echo.join().expect("the echo does not panic")?;
    handle.drain();
    running.join().expect("the relay does not panic")?;
    Ok(taken / 1e3 / times as f64)
}

fn pin(thread: Option<i32>, core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(thread.and_then(Pid::from_raw), &set)?)
}

/// The thread of this process that has this name and still runs.
fn thread_named(name: &str) -> Result<i32> {
    loop {
        for task in fs::read_dir("/proc/self/task")? {
            let path = task?.path();
            if fs::read_to_string(path.join("comm")).is_ok_and(|found| found.trim() == name) {
                let number = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                return Ok(number.parse()?);
            }
        }
        thread::yield_now();
    }
}

fn cpu_ns(thread: i32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    Ok(stat.split(' ').next().unwrap_or_default().parse()?)
}
