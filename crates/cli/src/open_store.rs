//! Opens a store, and prints the results of its recovery to stderr.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haul_disk::DeviceKind;
use haul_file_store::{
    Damage, Error, EventQueues, LifecycleEvents, LifecycleObserver, Options, REMOTE_MARKER,
    RecoveryReport,
};
use haul_store_pool::{Copies, OpenWith, Pool};

use crate::args::OpenArgs;
use crate::handover::Predecessor;
use crate::output::Name;
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::units::{Bytes, Count};

/// The maximum number of damaged regions to print. The number is limited, because a single missing
/// volume affects many objects.
const DAMAGE_LINES_MAX: usize = 20;

/// The action of a command if no store exists in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// Create a store.
    Create,
    /// Fail, because an empty store is of no use to the command and would hide a mistyped path.
    Fail,
}

/// Opens the store of `args` and prints the results of recovery to stderr. `holder` describes this
/// process: the error message of another process that tries to open the store contains it.
fn open(args: &OpenArgs, holder: &str, if_missing: IfMissing) -> Result<(Pool, Vec<Damage>)> {
    open_for(args, holder, if_missing, ServerOptions::default(), &Predecessor::default())
}

/// Opens the store for `haul store NAME`, runs `work` with the damage found by recovery, and closes
/// the store even if `work` failed.
pub(crate) fn with_store(
    args: &OpenArgs,
    name: &str,
    if_missing: IfMissing,
    work: impl FnOnce(&Pool, &[Damage]) -> Result,
) -> Result {
    let (store, damage) = open(args, &format!("haul store {name}"), if_missing)?;
    let worked = work(&store, &damage);
    let closed = store.close().or_fail(|| format!("cannot close the store in {}", args.dirs()));
    worked.and(closed)
}

/// The work of a store for a server. A command that opens the store for itself has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerOptions {
    /// The bytes per second whose checksums are verified; 0 for none.
    pub(crate) scrub_rate: u64,
    /// The kind of the disks; `None` if the drives report it.
    pub(crate) disk_kind: Option<DeviceKind>,
    /// The interval of checks for expired objects and stale uploads; zero for none.
    pub(crate) lifecycle_check: Duration,
    /// The length of a day of lifecycle rules, if it is not 24 hours.
    pub(crate) lifecycle_day: Option<Duration>,
    /// The memory for big objects that are requested often.
    pub(crate) pinned_memory: u64,
    pub(crate) locked_memory: u64,
    /// Receives the changes by lifecycle rules.
    pub(crate) lifecycle_observer: LifecycleObserver,
    /// Makes the events of these changes.
    pub(crate) lifecycle_events: LifecycleEvents,
    /// Receives the events of changes.
    pub(crate) event_queues: Option<Arc<EventQueues>>,
    /// `true` if writes are rejected that exceed a quota. Commands store what their user asks for.
    pub(crate) enforces_quotas: bool,
    /// The limit on the bytes per second that move between directories; 0 for none.
    pub(crate) move_rate: u64,
    /// `true` if new directories are added to the store.
    pub(crate) adds_directories: bool,
    /// The directories whose loss is accepted.
    pub(crate) accepted_losses: Vec<PathBuf>,
    /// The directory into which the copy of a lost one is restored.
    pub(crate) refill: Option<PathBuf>,
    /// The copies of the store.
    pub(crate) copies: Option<Arc<dyn Copies>>,
}

/// The smallest quotient of `--volume` and `--big-object`.
const VOLUME_OBJECTS_MIN: u64 = 4;

/// Checks the options of a store that limit each other, before a server opens its logs, and that
/// each directory is named once.
pub(crate) fn check(args: &OpenArgs) -> Result {
    for (index, dir) in args.data.iter().enumerate() {
        let Some(first) = args.data[..index].iter().find(|first| is_same(first, dir)) else {
            continue;
        };
        let (first, again) = (first.display().to_string(), dir.display().to_string());
        let message = format!("--data names {first} twice");
        let failure = match first == again {
            true => Failure::new(message),
            false => Failure::new(message).advise(format!("{again} is the same directory")),
        };
        return Err(failure.exit(Exit::Usage));
    }
    if args.volume < args.big_object.saturating_mul(VOLUME_OBJECTS_MIN) {
        let message = format!("--volume must be at least {VOLUME_OBJECTS_MIN} times --big-object");
        let sizes = format!("they are {} and {}", Bytes(args.volume), Bytes(args.big_object));
        return Err(Failure::new(message).advise(sizes).exit(Exit::Usage));
    }
    Ok(())
}

/// Returns `true` if both paths name the same directory, which may not exist.
fn is_same(first: &Path, second: &Path) -> bool {
    let real = |dir: &Path| {
        fs::canonicalize(dir).or_else(|missing| {
            let dir = std::path::absolute(dir)?;
            let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
                return Err(missing);
            };
            Ok(fs::canonicalize(parent).map_or_else(|_| dir.clone(), |it| it.join(name)))
        })
    };
    first == second
        || matches!([real(first), real(second)], [Ok(first), Ok(second)] if first == second)
}

fn options(args: &OpenArgs, holder: &str, server: ServerOptions) -> Options {
    Options {
        big_object_bytes: args.big_object,
        volume_bytes: args.volume,
        scrub_bytes_per_second: server.scrub_rate,
        disk_kind: server.disk_kind,
        lifecycle_check_every: server.lifecycle_check,
        lifecycle_day: server.lifecycle_day.unwrap_or(Options::default().lifecycle_day),
        pinned_bytes_max: server.pinned_memory,
        locked_bytes_max: server.locked_memory,
        lifecycle_observer: server.lifecycle_observer,
        lifecycle_events: server.lifecycle_events,
        event_queues: server.event_queues,
        enforces_quotas: server.enforces_quotas,
        wake_all: haul_s3_server::wake_once,
        holder: format!("{holder}, process {}", std::process::id()),
        ..Options::default()
    }
}

/// Returns the options of a store that is served for reading only.
pub(crate) fn read_only_options(args: &OpenArgs, holder: &str) -> Options {
    Options {
        is_read_only: true,
        // Opening a log prepares its next segment, which is never written.
        volume_bytes: args.big_object.saturating_mul(4).max(4 << 20),
        idle_watermark_ms: 0,
        ..options(args, holder, ServerOptions::default())
    }
}

fn not_opened(args: &OpenArgs, error: Error) -> Failure {
    let failure = Failure::new(format!("cannot open the store in {}", args.dirs()));
    let failure = match error {
        Error::NotAStore { .. } if args.data.iter().any(|dir| dir.join(REMOTE_MARKER).exists()) => {
            failure.advise("serve it with \"haul serve --remote\", which has the copy")
        }
        Error::Full { .. } => failure.advise("free disk space, or set a smaller --volume"),
        _ => failure,
    };
    failure.because(error).exit(Exit::NotStarted)
}

/// Opens a store like [`open`], with the options of a server, once `predecessor` has closed it.
pub(crate) fn open_for(
    args: &OpenArgs,
    holder: &str,
    if_missing: IfMissing,
    server: ServerOptions,
    predecessor: &Predecessor,
) -> Result<(Pool, Vec<Damage>)> {
    check(args)?;
    if if_missing == IfMissing::Fail && args.data.iter().all(|dir| is_empty(dir)) {
        return Err(Failure::new(format!("no store in {}", args.dirs()))
            .advise("set --data; \"haul serve\", \"store import\" and \"store mb\" create a store")
            .exit(Exit::NotStarted));
    }
    let (copies, refill) = (server.copies.clone(), server.refill.clone());
    let lost = server.accepted_losses.clone();
    let with = OpenWith {
        lost: &lost,
        refill: refill.as_deref(),
        copies: copies.as_deref(),
        move_rate: server.move_rate,
        keeps_members: !server.adds_directories,
    };
    let options = options(args, holder, server);
    let is_in_use = |error: &Error| matches!(error, Error::InUse { .. });
    let opened = predecessor.retry(is_in_use, || Pool::open_with(&args.data, &with, &options));
    let (pool, report) = opened.map_err(|error| not_opened(args, error))?;
    let mut damage = Vec::new();
    for member in report.members {
        let dir = member.dir.display();
        if member.has_joined && pool.members().len() > 1 {
            print_message(&format!("{dir} joined the store"));
        }
        for line in recovery_lines(&member.recovery) {
            match pool.own_store() {
                Some(_) => print_message(&line),
                None => print_message(&format!("{dir}: {line}")),
            }
        }
        damage.extend(member.recovery.damage);
    }
    for dir in report.left {
        let dir = dir.display();
        print_message(&format!("{dir} has left the store: remove it from the options --data"));
    }
    for dir in &lost {
        let name = dir.display();
        let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        match report.given_up.contains(&absolute) {
            true => print_message(&format!("accepted the loss of {name}, and of all keys in it")),
            // A server is started again with the same options.
            false => {
                print_message(&format!("{name} is not in the store: remove its --accept-loss"));
            }
        }
    }
    for dir in report.not_added {
        let dir = dir.display();
        print_message(&format!("{dir} is not added to the store while another disk is missing"));
    }
    for member in pool.members() {
        if let Some(why) = member.why_missing() {
            let dir = member.dir().display();
            print_message(&format!("{dir} is missing, and its keys are not available: {why}"));
        }
    }
    Ok((pool, damage))
}

fn is_empty(dir: &Path) -> bool {
    match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Describes the results of recovery, one per line. Returns no line if the store was closed cleanly
/// and is undamaged.
pub(crate) fn recovery_lines(recovered: &RecoveryReport) -> Vec<String> {
    let mut lines = Vec::new();
    if recovered.after_crash {
        lines.push(format!(
            "recovered after an unclean shutdown: {} ({}) in {:.1} s",
            Count(recovered.objects, "object"),
            Bytes(recovered.object_bytes),
            recovered.seconds,
        ));
    }
    if recovered.torn_bytes > 0 {
        lines.push(format!(
            "truncated {} at the end of the log: torn writes, never acknowledged",
            Bytes(recovered.torn_bytes),
        ));
    }
    if let Some(why) = &recovered.index_rebuilt {
        lines.push(format!("rebuilt the index from the volumes: {why}"));
    }
    if recovered.orphans_removed > 0 {
        lines.push(format!(
            "removed {} of incomplete uploads",
            Count(recovered.orphans_removed, "file"),
        ));
    }
    lines.extend(recovered.damage.iter().take(DAMAGE_LINES_MAX).map(damage_line));
    let more = recovered.damage.len().saturating_sub(DAMAGE_LINES_MAX) as u64;
    if more > 0 {
        let regions = Count(more, "more damaged region");
        lines.push(format!("and {regions}; \"haul store verify\" lists all"));
    }
    lines
}

/// Describes a damaged region in one line.
pub(crate) fn damage_line(damage: &Damage) -> String {
    let object = match (&damage.bucket, &damage.key) {
        (Some(bucket), Some(key)) => format!("{bucket}/{}: ", Name(key)),
        (Some(bucket), None) => format!("an object of {bucket}: "),
        _ => String::new(),
    };
    let (file, offset) = (damage.file.display(), damage.offset);
    format!("damaged: {object}{file} at offset {offset}: {}", damage.what)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn sizes_have_the_limits_of_the_library() {
        for (arguments, is_valid) in [
            (&[][..], true),
            (&["--big-object=64KiB", "--volume=4MiB"], true),
            (&["--big-object=16MiB", "--volume=2GiB"], true),
            (&["--big-object=1MiB", "--volume=4MiB"], true),
            (&["--big-object=1025KiB", "--volume=4MiB"], false),
        ] {
            let cli = Cli::try_parse_from(["haul", "serve"].iter().chain(arguments)).unwrap();
            let Command::Serve(args) = cli.command else { panic!("not serve") };
            let library = options(&args.open, "", ServerOptions::default()).check();
            let ours = check(&args.open);
            assert_eq!([ours.is_ok(), library.is_ok()], [is_valid; 2], "{arguments:?}");
            let text = ours.err().and_then(|failure| failure.text()).unwrap_or_default();
            assert_eq!(text.contains("--volume must be"), !is_valid, "{text}");
        }
        for argument in ["--big-object=65535", "--volume=4095KiB", "--big-object=17MiB"] {
            let error = Cli::try_parse_from(["haul", "serve", argument]).unwrap_err().to_string();
            assert!(error.contains("must be between"), "{error}");
        }
    }

    #[test]
    fn disk_kind_reaches_the_store_and_is_unknown_by_default() {
        for (arguments, expected) in [
            (&["haul", "serve"][..], None),
            (&["haul", "serve", "--disk-kind=rotating"], Some(DeviceKind::Rotational)),
            (&["haul", "serve", "--disk-kind=solid"], Some(DeviceKind::SolidState)),
        ] {
            let Command::Serve(args) = Cli::try_parse_from(arguments).unwrap().command else {
                panic!("not serve")
            };
            let disk_kind = args.disk_kind.map(Into::into);
            let server = ServerOptions { disk_kind, ..ServerOptions::default() };
            assert_eq!(options(&args.open, "", server).disk_kind, expected);
        }
    }

    #[test]
    fn clean_start_prints_nothing() {
        assert!(
            recovery_lines(&RecoveryReport { objects: 7, ..RecoveryReport::default() }).is_empty()
        );
    }

    #[test]
    fn recovery_after_crash_is_reported() {
        let damage = Damage {
            bucket: Some("b".into()),
            key: Some("a\nb".into()),
            file: "/d/volumes/1.vol".into(),
            offset: 4096,
            what: "the checksum differs".into(),
        };
        let lines = recovery_lines(&RecoveryReport {
            after_crash: true,
            objects: 1200,
            object_bytes: 1 << 20,
            torn_bytes: 10,
            orphans_removed: 1,
            damage: vec![damage],
            index_rebuilt: Some("the catalog is malformed".into()),
            seconds: 0.25,
            ..RecoveryReport::default()
        });
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[2], "rebuilt the index from the volumes: the catalog is malformed");
        assert!(lines[0].contains("1,200 objects (1 MiB)"), "{}", lines[0]);
        let expected = "damaged: b/a\\nb: /d/volumes/1.vol at offset 4096: the checksum differs";
        assert_eq!(lines[4], expected);
    }
}
