//! `haul dups` without a subcommand: searches for duplicates and writes the report.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{CacheMode, ReadOptions, WalkOptions};
use haul_cli_common::svg;
use haul_duplicates::report::{Format, Group, Header, Stats, Timestamp, Writer, absolute_path};
use haul_duplicates::{
    DirGroup, Filter, Options, Replication, Syntax, Transform, TransformOptions, dir_stats,
    duplicate_dirs, find,
};

use super::place::{base, names, paths};
use super::progress::Watch;
use super::treemap::treemap;
use crate::args::{ReportFormat, SearchArgs};
use crate::digest_cache::cache_path;
use crate::output::{Output, unwritten};
use crate::report::{Exit, Failure, OrFail, Result};
use crate::units::Bytes;

pub(super) fn run(args: &SearchArgs) -> Result {
    if let Some(max) = args.max.filter(|max| *max < args.min) {
        let message = format!("--min ({}) is greater than --max ({})", Bytes(args.min), Bytes(max));
        return Err(Failure::new(message).exit(Exit::Usage));
    }
    let base = base(args.base_dir.as_deref())?;
    let roots = roots(args, &base)?;
    let filter = filter(args, &base)?;
    let accept = |path: &Path| filter.includes_file(path);
    let accept_dir = |path: &Path| filter.includes_dir(path);
    let threads = args.threads.map(usize::from);
    let walk = WalkOptions {
        // The depth of fclones counts the directories between a root and a file, except for 0, which
        // selects only roots that are files.
        depth_max: args.depth.map(|depth| if depth == 0 { 0 } else { depth.saturating_add(1) }),
        hidden: args.hidden || args.dirs,
        follow_links: args.follow_links,
        report_links: args.symbolic_links,
        one_file_system: args.one_fs,
        ignore_files: !args.no_ignore && !args.dirs,
        bytes_min: if args.dirs { 0 } else { args.min },
        bytes_max: args.max.unwrap_or(u64::MAX),
        accept: (!filter.is_empty()).then_some(&accept),
        accept_dir: (!filter.excluded.is_empty()).then_some(&accept_dir),
        threads,
        ..WalkOptions::default()
    };
    let how = TransformOptions { in_place: args.in_place, no_copy: args.no_copy };
    let command = args.transform.as_deref();
    let (transform, _transform_dir) = transform(command, how, args.hash_fn.into())?.unzip();
    let cache = if args.spare_cache { CacheMode::Preserve } else { CacheMode::Normal };
    let plain = ReadOptions::default();
    let options = Options {
        replication: replication(args),
        isolate: args.isolate,
        match_links: args.match_links,
        hash: args.hash_fn.into(),
        head_bytes: args.max_prefix_size,
        tail_bytes: args.max_suffix_size,
        skip_content: args.skip_content_hash,
        transform: transform.as_ref(),
        cache: cache_path(args.cache.as_ref(), args.hash_fn.into())?,
        read: ReadOptions { kind: args.disk_kind.map(Into::into), threads, cache, ..plain },
        preserve_cache_for_large: !args.fill_cache,
    };
    // The file is opened before the search, so that a mistyped path does not lose a long search.
    let output = args.output.as_deref().map(open_report).transpose()?;
    let begun = now();
    // A path of a list may have been removed since; a path of the command line must exist.
    let watch = Watch::new(args.progress, if args.stdin { &[] } else { &roots[..] });
    let found = find(&roots, &walk, &options, &watch);
    let watched = watch.finish();
    if args.dirs {
        let groups = duplicate_dirs(&found);
        draw(args, groups.iter().map(DirGroup::group))?;
        let all = groups.iter().map(DirGroup::group);
        report(args, output, &header(&base, begun, dir_stats(&groups, &found)), all)?;
    } else {
        draw(args, found.groups())?;
        report(args, output, &header(&base, begun, found.stats()), found.groups())?;
    }
    watched
}

/// Draws the groups, if requested.
fn draw(args: &SearchArgs, groups: impl Iterator<Item = Group>) -> Result {
    args.svg.as_deref().map_or(Ok(()), |file| svg::write(file, &treemap(groups)))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn replication(args: &SearchArgs) -> Replication {
    match (args.rf_over, args.rf_under, args.unique) {
        (_, Some(under), _) => Replication::Under(under),
        (_, _, true) => Replication::Under(2),
        (over, _, _) => Replication::Over(over.unwrap_or(1)),
    }
}

/// Returns the absolute paths to search.
fn roots(args: &SearchArgs, base: &Path) -> Result<Vec<PathBuf>> {
    if args.stdin {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text).or_fail(|| "cannot read stdin".to_owned())?;
        let end = if args.null { b'\0' } else { b'\n' };
        let path =
            |bytes: &[u8]| absolute_path(base, Path::new(std::ffi::OsStr::from_bytes(bytes)));
        return Ok(text
            .split(|byte| *byte == end)
            .filter(|path| !path.is_empty())
            .map(path)
            .collect());
    }
    let here = [PathBuf::from(".")];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths };
    Ok(paths.iter().map(|path| absolute_path(base, path)).collect())
}

/// Parses the patterns that include or exclude files.
fn filter(args: &SearchArgs, base: &Path) -> Result<Filter> {
    let syntax = Syntax { regex: args.regex, ignore_case: args.ignore_case };
    Ok(Filter {
        names: names(&args.name, syntax)?,
        paths: paths(&args.path, base, syntax)?,
        excluded: paths(&args.exclude, base, syntax)?,
    })
}

/// A private temporary directory, removed on drop.
pub(super) struct TransformDir(PathBuf);

impl TransformDir {
    fn create() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        // The time makes the name unique: an earlier, killed process with the same ID may have left
        // its directory.
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let name = format!("haul-dups-{}-{time}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // The directory must be new and private: otherwise another user could own it or read the
        // copies in it.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TransformDir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Returns the transform of `command`, and the directory for its temporary files.
pub(super) fn transform(
    command: Option<&str>,
    options: TransformOptions,
    hash: HashKind,
) -> Result<Option<(Transform, TransformDir)>> {
    let Some(command) = command else { return Ok(None) };
    let dir = TransformDir::create();
    let dir = dir.or_fail(|| "cannot create a directory for --transform".to_owned())?;
    let transform = Transform::new(command, options, hash, &dir.0);
    let transform = transform.or_fail(|| "cannot use --transform".to_owned());
    transform.map(|it| Some((it, dir))).map_err(|failure| failure.exit(Exit::Usage))
}

fn header(base: &Path, begun: Timestamp, stats: Stats) -> Header {
    Header {
        program: concat!("haul ", env!("CARGO_PKG_VERSION")).to_owned(),
        timestamp: begun,
        command: std::iter::once("haul".into()).chain(std::env::args_os().skip(1)).collect(),
        base: base.to_owned(),
        stats,
    }
}

/// A file for the report, and its path.
struct ReportFile<'a> {
    file: File,
    path: &'a Path,
}

/// Opens the file for the report. Its content remains until the report is written.
fn open_report(path: &Path) -> Result<ReportFile<'_>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let file = file.or_not_start(|| format!("cannot write the report to {}", path.display()))?;
    Ok(ReportFile { file, path })
}

fn report(
    args: &SearchArgs,
    output: Option<ReportFile<'_>>,
    header: &Header,
    groups: impl Iterator<Item = Group>,
) -> Result {
    let format = match (args.format, args.null) {
        (ReportFormat::Json, _) => Format::Json,
        _ if args.json => Format::Json,
        (ReportFormat::Default, _) => Format::Default,
        (ReportFormat::Fdupes, false) => Format::Fdupes,
        (ReportFormat::Fdupes, true) => Format::Fdupes0,
        (ReportFormat::Csv, _) => Format::Csv,
    };
    match output {
        None => write(Output::new(), format, header, groups).map_err(unwritten)?.finish(),
        Some(ReportFile { file, path }) => {
            // Devices and FIFOs cannot be truncated.
            let is_file = file.metadata().is_ok_and(|status| status.is_file());
            let emptied = if is_file { file.set_len(0) } else { Ok(()) };
            let out = emptied.and_then(|()| write(BufWriter::new(file), format, header, groups));
            let saved =
                out.and_then(|out| out.into_inner().map_err(io::IntoInnerError::into_error));
            saved.map(drop).or_fail(|| format!("cannot write the report to {}", path.display()))
        }
    }
}

fn write<W: Write>(
    out: W,
    format: Format,
    header: &Header,
    mut groups: impl Iterator<Item = Group>,
) -> io::Result<W> {
    let mut writer = Writer::begin(out, format, header)?;
    groups.try_for_each(|group| writer.group(&group))?;
    writer.end()
}
