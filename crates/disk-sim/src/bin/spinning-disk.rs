//! `spinning-disk`: a simulated spinning disk as a block device, until it is told to end.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use clap::Parser;
use haul_disk_sim::{Backing, Mounted, Options, Parameters, SpinningDisk, plot};
use haul_test_image::run;
use tokio::signal::unix::{SignalKind, signal};

/// A simulated spinning disk as a block device, until Ctrl-C or SIGTERM. Needs root and /dev/fuse.
#[derive(Debug, Parser)]
#[command(name = "spinning-disk", version)]
struct Args {
    /// The drive: travelstar-7k320 (2.5", 12 ms) or deskstar-7k1000.c (3.5", 8.5 ms)
    #[arg(long, default_value = "travelstar-7k320", value_parser = drive)]
    drive: Parameters,
    /// Bytes, as 500M or 16G; less than the drive has means fewer tracks under the same arm
    /// [default: the drive's]
    #[arg(long, value_parser = bytes)]
    size: Option<u64>,
    /// A directory for the sparse file behind the disk
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    backing: PathBuf,
    /// Keep the bytes in memory instead
    #[arg(long, conflicts_with = "backing")]
    memory: bool,
    /// Seconds by the clock for each second of the drive: 0.1 is ten times faster, 0 does not wait
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    /// Let the way through the kernel be added to the drive's times, as it is: else it is measured
    /// at the start, and answers leave as much earlier
    #[arg(long)]
    with_transport: bool,
    /// Writes go straight to the medium
    #[arg(long)]
    no_write_cache: bool,
    /// The kernel's scheduler for the device; with none, the drive alone orders its requests
    #[arg(long, default_value = "none")]
    scheduler: String,
    /// Make a file system on it: ext4, xfs, btrfs
    #[arg(long)]
    fs: Option<String>,
    /// Mount that file system on this directory
    #[arg(long, value_name = "DIR", requires = "fs")]
    mount: Option<PathBuf>,
    /// Options of the file system to mount with
    #[arg(long, value_name = "OPTIONS", default_value = "", requires = "mount")]
    mount_options: String,
    /// Draw service time against distance as SVG instead, and end
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn drive(name: &str) -> Result<Parameters, String> {
    let names = || Parameters::all().map(|parameters| parameters.name).join(", ");
    let found = Parameters::all().into_iter().find(|parameters| parameters.name == name);
    found.ok_or_else(|| format!("there are {}", names()))
}

fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|error| format!("{error}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| "too many bytes".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match &args.plot {
        Some(file) => draw(&args.drive, file),
        None => serve(&args),
    }
    .map_or_else(complain, |()| ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "it speaks to whoever runs it")]
fn complain(why: String) -> ExitCode {
    eprintln!("spinning-disk: {why}");
    ExitCode::FAILURE
}

fn draw(drive: &Parameters, file: &Path) -> Result<(), String> {
    std::fs::write(file, plot(drive))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn serve(args: &Args) -> Result<(), String> {
    // From here on the signals are kept until somebody asks for them.
    let (runtime, mut interrupt, mut terminate) = signals()?;
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
        scheduler: args.scheduler.clone(),
    })?;
    let mounted = mount(&disk, args)?;
    tell(&disk, args).map_err(|error| format!("cannot write to the terminal: {error}"))?;
    runtime.block_on(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });
    if let Some((watch, mounted)) = mounted {
        // The watch unmounts the directory; it does so too if this process is killed.
        watch.end()?;
        drop(mounted);
    }
    Ok(())
}

type Signals = (tokio::runtime::Runtime, tokio::signal::unix::Signal, tokio::signal::unix::Signal);

fn signals() -> Result<Signals, String> {
    let make = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (interrupt, terminate) = {
            let _within = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        Ok((runtime, interrupt, terminate))
    };
    make().map_err(|error: std::io::Error| format!("cannot wait for signals: {error}"))
}

/// Makes and mounts what the arguments say.
fn mount<'a>(disk: &'a SpinningDisk, args: &Args) -> Result<Option<(Watch, Mounted<'a>)>, String> {
    let Some(fs) = &args.fs else { return Ok(None) };
    disk.make(fs, if fs == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] })?;
    let Some(dir) = &args.mount else { return Ok(None) };
    let mounted = disk.mount(fs, &args.mount_options)?;
    mounted.attach(dir)?;
    let watch = Watch::over(dir)?;
    Ok(Some((watch, mounted)))
}

fn tell(disk: &SpinningDisk, args: &Args) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "device {}", disk.device())?;
    writeln!(out, "control {}", disk.control().display())?;
    writeln!(out, "transport {} us", disk.transport().as_micros())?;
    if let Some(dir) = &args.mount {
        writeln!(out, "mount {}", dir.display())?;
    }
    out.flush()
}

/// A small process that unmounts a directory when this one ends, in whatever way: it reads from a
/// pipe that nobody writes to.
struct Watch(Child);

impl Watch {
    fn over(dir: &Path) -> Result<Self, String> {
        let script = r#"read -r _; exec umount --lazy "$1""#;
        let watch = Command::new("sh")
            .args(["-c", script, "spinning-disk-watch"])
            .arg(dir)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn();
        watch.map(Self).map_err(|error| match run(Command::new("umount").arg(dir)) {
            Ok(_) => format!("cannot start sh: {error}"),
            Err(why) => format!("cannot start sh: {error}; left behind: {why}"),
        })
    }

    fn end(mut self) -> Result<(), String> {
        drop(self.0.stdin.take());
        self.0.wait().map(drop).map_err(|error| format!("the watch does not end: {error}"))
    }
}
