//! Compares servers in interleaved rounds, case by case. A rival, a server other than `haul`, that
//! fails once is not measured again.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use haul_disk::{error_chain, probe};

use super::congestion;
use super::cores::{Cores, Pinned};
use super::programs::{Program, find, output, version};
use super::sample::{Figure, Sample};
use super::server::{Server, Start, free_address};
use crate::contest::{Contest, Field, Outcome, Stage, new_report, number};
use crate::log::Scratch;
use crate::options::NetOptions;
use crate::report::{Report, Value};
use crate::setting::Setting;
use haul_measure::{Error, Result, Watcher, load};

/// A program in one of its settings.
#[derive(Debug)]
pub(crate) struct Rival {
    pub(crate) program: &'static Program,
    /// The name in ratios.
    pub(crate) key: &'static str,
    /// The setting, as shown in rows.
    pub(crate) setting: &'static str,
    /// Returns the command that starts the server.
    pub(crate) command: fn(&Start<'_>) -> Result<Command>,
}

impl Rival {
    pub(crate) const fn new(
        program: &'static Program,
        key: &'static str,
        setting: &'static str,
        command: fn(&Start<'_>) -> Result<Command>,
    ) -> Self {
        Self { program, key, setting, command }
    }
}

/// An installed rival, and its server.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) rival: &'static Rival,
    program: PathBuf,
    server: Option<Server>,
    /// The reason why the rival is no longer measured.
    failure: Option<String>,
}

impl Contender {
    /// Returns the server, which is started by the first call.
    pub(crate) fn server(&mut self, tools: &Tools<'_>) -> Result<&Server> {
        match &mut self.server {
            Some(server) => Ok(server),
            none => Ok(none.insert(tools.start(self.rival, &self.program)?)),
        }
    }

    /// Starts a new server, without the state of the one before.
    pub(crate) fn restart(&mut self, tools: &Tools<'_>) -> Result<&Server> {
        self.stop();
        self.server(tools)
    }

    /// Kills the server.
    pub(crate) fn stop(&mut self) {
        self.server = None;
    }

    /// Calls `action` unless the rival has failed before. A failure of `haul` and a cancellation
    /// are returned as errors; the failure of another program is stored.
    fn attempt<T>(&mut self, action: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.failure.is_some() {
            return Ok(None);
        }
        match action(self) {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.rival.program.is_haul() || matches!(error, Error::Cancelled) => {
                Err(error)
            }
            Err(error) => {
                self.failure = Some(error_chain(&error));
                self.stop();
                Ok(None)
            }
        }
    }
}

/// The inputs of every measurement. While this exists, the thread that created it runs on the core of
/// the load, and so do the load generators that it starts.
pub(crate) struct Tools<'a> {
    pub(crate) options: &'a NetOptions,
    pub(crate) watcher: &'a dyn Watcher,
    pub(crate) cores: Cores,
    pub(crate) wrk: PathBuf,
    pub(crate) scratch: Scratch,
    /// The directory of the files that file servers serve.
    pub(crate) site: PathBuf,
    /// The address to which relays connect.
    pub(crate) target: SocketAddr,
    /// The files of the certificate and its key, for servers with TLS.
    pub(crate) tls: Option<[PathBuf; 2]>,
    started: Cell<usize>,
    _congestion: Option<Setting>,
    _pinned: Pinned,
}

impl Tools<'_> {
    /// Returns a number that no earlier call returned.
    pub(crate) fn next_number(&self) -> usize {
        self.started.replace(self.started.get() + 1)
    }

    fn start(&self, rival: &Rival, program: &Path) -> Result<Server> {
        self.start_on(self.cores.server, rival, program)
    }

    /// Starts a server on a core.
    pub(crate) fn start_on(&self, core: usize, rival: &Rival, program: &Path) -> Result<Server> {
        let dir = self.scratch.path().join(format!("server-{}", self.next_number()));
        let data = dir.join("data");
        fs::create_dir_all(&data).map_err(Error::other(format!("create {}", data.display())))?;
        let (address, target, tls) = (free_address()?, self.target, self.tls.as_ref());
        let at = Start { program, address, dir: &dir, site: &self.site, target, tls };
        Server::start(rival.program.name, (rival.command)(&at)?, &at, core, self.cores)
    }
}

/// One load on several rivals. The first rival is measured twice in each round: the difference is
/// noise. Its figures are divided by those of each other rival.
pub(crate) struct Case<'c> {
    /// The heading of the table.
    pub(crate) table: &'static str,
    /// The name of the load in rows.
    pub(crate) load: String,
    /// The name of the load in ratios.
    pub(crate) key: String,
    pub(crate) figures: &'static [Figure],
    pub(crate) rivals: &'c [&'static Rival],
}

/// A load and a rival, whose measurements form one row.
#[derive(Debug, Clone)]
struct Series {
    load: String,
    rival: &'static Rival,
    /// `true` for the second series of the first rival.
    again: bool,
}

impl Series {
    fn setting(&self) -> String {
        format!("{}{}", self.rival.setting, if self.again { ", again" } else { "" })
    }
}

/// The columns of the table.
const FIELDS: &[Field<Series, Sample>] = &[
    Field::label("load", "load", |series| Value::from(&*series.load)),
    Field::label("server", "server", |series| series.rival.program.name.into()),
    Field::label("setting", "setting", |series| series.setting().into()),
    number("cpu_us", "CPU µs", 2).spread(4, Sample::cpu_us),
    number("cpu_s_per_gb", "CPU s/GB", 3).spread(4, Sample::cpu_s_per_gb),
    number("core_us", "core µs", 2).rank(3).median(Sample::core_us),
    number("requests_per_s", "requests/s", 0).rank(1).spread(4, Sample::per_second),
    number("mib_per_s", "MiB/s", 0).rank(2).median(Sample::mib_per_second),
    number("p50_us", "p50 µs", 0).rank(3).median(|sample| sample.p50_us),
    number("p99_us", "p99 µs", 0).rank(1).spread(4, |sample| sample.p99_us),
    number("cached_percent", "cached %", 2).median(|sample| sample.cached_percent),
    number("descriptors", "descriptors", 1).median(|sample| sample.descriptors),
    number("load_busy_percent", "load %", 0).rank(3).median(Sample::load_busy_percent),
];

/// A comparison of servers, and its report so far.
pub(crate) struct Bench<'a> {
    // Dropped in this order: servers are killed before their directory is removed.
    contenders: Vec<Contender>,
    pub(crate) tools: Tools<'a>,
    pub(crate) report: Report,
}

impl<'a> Bench<'a> {
    /// Creates a directory, sets TCP congestion control, and finds the installed rivals.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is only one core, wrk is not installed, a named rival is unknown,
    /// or the congestion control is not available.
    pub(crate) fn new(
        name: &str,
        options: &'a NetOptions,
        rivals: &[&'static Rival],
        watcher: &'a dyn Watcher,
    ) -> Result<Self> {
        let cores = Cores::available()?;
        let missing = || "wrk is not installed (Debian: apt-get install wrk)".to_owned();
        let wrk = find(&options.path, "wrk").ok_or_else(|| Error::Missing(missing()))?;
        // The path must be absolute, because servers resolve relative paths against their own
        // directory.
        let dir = &options.dir;
        let dir = dir.canonicalize().map_err(Error::other(format!("find {}", dir.display())))?;
        let scratch = Scratch::new(&dir, &format!("haul-bench-{name}.{}", std::process::id()))?;
        let site = scratch.path().join("site");
        fs::create_dir(&site).map_err(Error::other(format!("create {}", site.display())))?;
        let (_congestion, congestion) = congestion::set(options.congestion.as_deref())?;
        let note = format!(
            "{} interleaved rounds of {} s; numbers are medians, ratios are medians of the ratios \
             of pairs of one round. One core for the server, one for wrk, on loopback. CPU is the \
             time for which the server's threads ran, per request and per 10^9 bytes; core is the \
             busy time of the server's core. Before the first round, all bodies are compared. \
             \"again\" is the first server once more.",
            options.rounds,
            options.time.as_secs(),
        );
        let mut report = new_report(name, FIELDS, note);
        report.host = report.host.with_storage("", &probe(scratch.path())?);
        report.notes.extend(load());
        report.notes.push(congestion);
        let contenders = contenders(options, rivals, &scratch, &mut report)?;
        let wrk_version = version(&output(&wrk, &["-v"]));
        report.host.versions.insert("wrk".to_owned(), wrk_version);
        let (started, target) = (Cell::new(0), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let _pinned = Pinned::to(cores.load)?;
        let tools = Tools {
            options,
            watcher,
            cores,
            wrk,
            scratch,
            site,
            target,
            tls: None,
            started,
            _congestion,
            _pinned,
        };
        Ok(Self { contenders, tools, report })
    }

    /// Measures a case with those of its rivals that are installed. `prepare` compares results, and
    /// fills caches, before the first round.
    pub(crate) fn run(
        &mut self,
        case: &Case<'_>,
        prepare: impl Fn(&Tools<'_>, &mut Contender) -> Result<()>,
        measure: impl Fn(&Tools<'_>, &mut Contender) -> Result<Sample>,
    ) -> Result<()> {
        let Self { contenders, tools, report } = self;
        let mut all = Vec::new();
        for rival in case.rivals {
            let found = contenders.iter_mut().find(|one| one.rival.key == rival.key);
            let Some(contender) = found else { continue };
            tools.watcher.check()?;
            contender.attempt(|one| prepare(tools, one))?;
            all.push(Series { load: case.load.clone(), rival: contender.rival, again: false });
        }
        if let Some(first) = all.first().cloned() {
            all.insert(1, Series { again: true, ..first });
        }
        let mut contest = Contest::new(FIELDS, all);
        contest.run(&Stage::only(tools.options.rounds, tools.watcher), |series| {
            let found = contenders.iter_mut().find(|one| one.rival.key == series.rival.key);
            let Some(contender) = found else { return Outcome::skipped("") };
            match contender.attempt(|one| measure(tools, one))? {
                Some(sample) => Ok(Outcome::Measured(sample)),
                None => Outcome::skipped(contender.failure.as_deref().unwrap_or_default()),
            }
        })?;
        // If a rival failed in any round, its earlier rounds are discarded.
        for entry in &mut contest.entries {
            let key = entry.strategy.rival.key;
            let failed = contenders.iter().find(|one| one.rival.key == key);
            if let Some(reason) = failed.and_then(|one| one.failure.as_deref()) {
                entry.drop_all(reason);
            }
        }
        contest.report(report, case.table, |series| series.load.clone());
        let Some((first, others)) = contest.entries.split_first() else { return Ok(()) };
        for (figure, other) in
            case.figures.iter().flat_map(|it| others.iter().map(move |o| (it, o)))
        {
            let Series { rival, again, .. } = &other.strategy;
            let name = format!("{}_{}", case.key, figure.key);
            if *again {
                report.ratio(format!("{name}_noise"), other.ratio(first, figure.value));
            } else {
                let name = format!("{name}_vs_{}", rival.key);
                report.ratio(name, first.ratio(other, figure.value));
            }
        }
        Ok(())
    }

    /// Kills all servers.
    pub(crate) fn stop_servers(&mut self) {
        self.contenders.iter_mut().for_each(Contender::stop);
    }
}

/// Returns the rivals that are installed and selected, and adds their versions, and the names of
/// the others, to the report.
fn contenders(
    options: &NetOptions,
    rivals: &[&'static Rival],
    scratch: &Scratch,
    report: &mut Report,
) -> Result<Vec<Contender>> {
    let mut names: Vec<_> = rivals.iter().map(|rival| rival.program.name).collect();
    names.dedup();
    let mut selected = options.rivals.iter().flatten();
    if let Some(name) = selected.find(|name| !names.contains(&name.as_str())) {
        let names = names.join(", ");
        return Err(Error::Missing(format!("there is no rival {name:?}, only {names}")));
    }
    let is_selected = |program: &Program| {
        let selected = |all: &Vec<String>| all.iter().any(|name| name == program.name);
        program.is_haul() || options.rivals.as_ref().is_none_or(selected)
    };
    let mut contenders: Vec<Contender> = Vec::new();
    for rival in rivals.iter().copied().filter(|rival| is_selected(rival.program)) {
        let program = rival.program;
        let known = contenders.iter().find(|one| one.rival.program == program);
        let found = match (known, options.programs.get(program.name)) {
            (Some(known), _) => Some((known.program.clone(), String::new())),
            (None, Some(path)) => {
                let version = version(&output(path, &[program.version]));
                if program.is_haul() {
                    report.notes.push(format!("haul is {}.", path.display()));
                }
                Some((path.clone(), version))
            }
            (None, None) => program.find(&options.path, scratch.path())?,
        };
        let name = program.name.to_owned();
        let Some((program, version)) = found else {
            let note = format!("{name} is not installed, so it was not measured.");
            if !report.notes.contains(&note) {
                report.notes.push(note);
            }
            continue;
        };
        if !version.is_empty() {
            report.host.versions.insert(name, version);
        }
        contenders.push(Contender { rival, program, server: None, failure: None });
    }
    Ok(contenders)
}
