//! The program `spinning-disk`: runs a simulated spinning disk as a block device until a signal.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use clap::Parser;
use haul_disk_sim::{Backing, MountedFs, Options, Parameters, SpinningDisk};
use haul_testing::run;
use tokio::signal::unix::{SignalKind, signal};

/// A simulated spinning disk as a block device, until Ctrl-C or SIGTERM. Needs root and /dev/fuse.
#[derive(Debug, Parser)]
#[command(name = "spinning-disk", version)]
struct Args {
    /// Drive model: travelstar-7k320 (2.5", 12 ms) or deskstar-7k1000.c (3.5", 8.5 ms)
    ///
    /// The times are the published average seek times of reads.
    #[arg(long, default_value = "travelstar-7k320", value_parser = drive)]
    drive: Parameters,
    /// Size of the disk, such as 500M or 16G [default: that of the drive model]
    ///
    /// A smaller disk has fewer tracks, but the same full-stroke seek time.
    #[arg(long, value_parser = bytes)]
    size: Option<u64>,
    /// Directory of the sparse file that stores the content of the disk
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    backing: PathBuf,
    /// Store the content of the disk in memory instead of a file
    #[arg(long, conflicts_with = "backing")]
    memory: bool,
    /// Real seconds per simulated second: 0.1 is ten times faster, 0 does not wait
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    /// Add the overhead of FUSE and the loop device to the latency of requests
    ///
    /// By default this overhead is measured at start, and replies are sent earlier by it.
    #[arg(long)]
    with_transport: bool,
    /// Disable the volatile write cache of the drive
    #[arg(long)]
    no_write_cache: bool,
    /// Kernel I/O scheduler; with "none", only the drive reorders requests
    #[arg(long, default_value = "none")]
    scheduler: String,
    /// Create a file system on the disk: ext4, xfs, btrfs
    #[arg(long)]
    fs: Option<String>,
    /// Mount the file system on this directory
    #[arg(long, value_name = "DIR", requires = "fs")]
    mount: Option<PathBuf>,
    /// Mount options of the file system
    #[arg(long, value_name = "OPTIONS", default_value = "", requires = "mount")]
    mount_options: String,
}

fn drive(name: &str) -> Result<Parameters, String> {
    let names = || Parameters::all().map(|parameters| parameters.name).join(", ");
    let found = Parameters::all().into_iter().find(|parameters| parameters.name == name);
    found.ok_or_else(|| format!("unknown drive {name:?}; known drives: {}", names()))
}

fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 =
        digits.parse().map_err(|error| format!("{text:?} is not a size such as 500M: {error}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} exceeds 2^64 bytes"))
}

fn main() -> ExitCode {
    let args = Args::parse();
    serve(&args).map_or_else(report, |()| ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "errors of the program go to stderr")]
fn report(why: String) -> ExitCode {
    eprintln!("spinning-disk: {why}");
    ExitCode::FAILURE
}

fn serve(args: &Args) -> Result<(), String> {
    // Signals are queued from this point on, so that a signal during the start is not lost.
    let (runtime, mut interrupt, mut terminate) = install_signal_handlers()?;
    let mut drive = args.drive.clone();
    if args.no_write_cache {
        drive.write_cache_bytes = 0;
    }
    let size = args.size.unwrap_or(drive.capacity_bytes);
    let disk = SpinningDisk::start(&Options {
        parameters: drive,
        bytes: size,
        backing: if args.memory { Backing::Memory } else { Backing::Dir(args.backing.clone()) },
        time_scale: args.time_scale,
        hides_transport: !args.with_transport,
        // The users of the disk are other processes.
        holds_clock: false,
        scheduler: args.scheduler.clone(),
    })?;
    let mounted = mount(&disk, args)?;
    print_summary(&disk, args).map_err(|error| format!("cannot write to stdout: {error}"))?;
    runtime.block_on(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    if let Some((unmounter, mounted)) = mounted {
        // The child process also unmounts the directory if this process is killed.
        unmounter.finish()?;
        drop(mounted);
    }
    Ok(())
}

type Signals = (tokio::runtime::Runtime, tokio::signal::unix::Signal, tokio::signal::unix::Signal);

fn install_signal_handlers() -> Result<Signals, String> {
    let install = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (interrupt, terminate) = {
            let _within = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        Ok((runtime, interrupt, terminate))
    };
    install().map_err(|error: std::io::Error| format!("cannot install signal handlers: {error}"))
}

/// Creates the file system given by `--fs`, and mounts it if `--mount` is given.
fn mount<'a>(
    disk: &'a SpinningDisk,
    args: &Args,
) -> Result<Option<(Unmounter, MountedFs<'a>)>, String> {
    let Some(fs) = &args.fs else { return Ok(None) };
    disk.mkfs(fs, if fs == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] })?;
    let Some(dir) = &args.mount else { return Ok(None) };
    let mounted = disk.mount(fs, &args.mount_options)?;
    mounted.attach(dir)?;
    let unmounter = Unmounter::start(dir)?;
    Ok(Some((unmounter, mounted)))
}

fn print_summary(disk: &SpinningDisk, args: &Args) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "device {}", disk.device())?;
    writeln!(out, "control {}", disk.control().display())?;
    writeln!(out, "transport {} us", disk.transport().as_micros())?;
    if let Some(dir) = &args.mount {
        writeln!(out, "mount {}", dir.display())?;
    }
    out.flush()
}

/// A child process that unmounts a directory when this process ends, even if it is killed: the
/// child waits for the end of a pipe whose only writer is this process.
struct Unmounter(Child);

impl Unmounter {
    fn start(dir: &Path) -> Result<Self, String> {
        let script = r#"read -r _; exec umount --lazy "$1""#;
        let child = Command::new("sh")
            .args(["-c", script, "spinning-disk-watch"])
            .arg(dir)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        child.map(Self).map_err(|error| match run(Command::new("umount").arg(dir)) {
            Ok(_) => format!("cannot start sh: {error}"),
            Err(why) => format!("cannot start sh: {error}; still mounted: {why}"),
        })
    }

    fn finish(mut self) -> Result<(), String> {
        drop(self.0.stdin.take());
        self.0.wait().map(drop).map_err(|error| format!("cannot wait for umount: {error}"))
    }
}
