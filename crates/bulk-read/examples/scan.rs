//! Walks some paths, or reads all below them too, and tells what it took: for counting system
//! calls and memory. `cargo run --release -p haul-bulk-read --example scan -- read PATH...`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use haul_bulk_read::{
    Cache, Consumer, Error, Finished, Kind, Opened, ReadOptions, WalkEvents, WalkOptions, Want,
    read, walk,
};

/// Takes everything and does nothing with it.
struct Nothing;

impl WalkEvents for Nothing {
    fn failed(&self, error: Error) {
        eprintln!("{error}");
    }
}

impl Consumer for Nothing {
    type State = ();
    fn begin(&self, _want: usize, _opened: &Opened) {}
    fn piece(&self, (): &mut (), _want: usize, _bytes: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn end(&self, _state: Option<()>, _want: usize, outcome: Result<Finished, Error>) {
        if let Err(error) = outcome {
            eprintln!("{error}");
        }
    }
}

/// The most memory the process has had, as the kernel tells it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.unwrap_or("unknown").split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let (flags, paths): (Vec<_>, Vec<_>) = arguments.partition(|word| word.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let paths: Vec<_> = paths.into_iter().map(PathBuf::from).collect();
    let begun = Instant::now();
    let walked = WalkOptions { hidden: true, sort: has("--sort"), ..WalkOptions::default() };
    let tree = walk(&paths, &walked, &Nothing);
    println!("{} files in {:?}, peak {}", tree.len(), begun.elapsed(), peak());
    println!("the tree takes {} bytes", tree.memory_bytes());
    if what != "read" {
        return;
    }
    let options = ReadOptions {
        ring: !has("--no-ring"),
        cache: if has("--spare") { Cache::Spare } else { Cache::Keep },
        kind: match (has("--solid"), has("--rotating")) {
            (true, _) => Some(Kind::Solid),
            (_, true) => Some(Kind::Rotating),
            _ => None,
        },
        ..ReadOptions::default()
    };
    let begun = Instant::now();
    let wants: Vec<_> = tree.ids().map(Want::whole).collect();
    let stats = read(&tree, &wants, &options, &Nothing);
    println!("{} bytes in {:?}, peak {}", stats.bytes, begun.elapsed(), peak());
    for device in stats.devices {
        println!("{device:?}");
    }
}
