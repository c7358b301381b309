//! Opens a pool.

mod look;
mod plan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use haul_disk::{Disk, OsDisk, error_chain};
use haul_file_store::{Error, Options, RecoveryReport, Result, SharedQuotas, Store};
use haul_sync::{Mutex, ShardedRwLock};

use crate::member::Member;
use crate::moves::plan::{end_moves, give_up, spread_slots};
use crate::opening::look::{Place, look};
use crate::opening::plan::{Found, OpenPlan, Plan, plan};
use crate::pace::Pace;
use crate::pool::Pool;
use crate::progress::MoveCounters;
use crate::routes::Routes;
use crate::settling::settle;
use crate::shared::{Shared, update_log_ends, write_table};
use crate::table::{MemberEntry, Table};
use crate::upkeep::Upkeep;

/// What opening a pool found and did in one directory.
#[derive(Debug)]
pub struct OpenedMember {
    /// The directory.
    pub dir: PathBuf,
    /// The recovery of its store.
    pub recovery: RecoveryReport,
    /// `true` if the directory joined the pool.
    pub has_joined: bool,
}

/// What opening a pool found and did.
#[derive(Debug, Default)]
pub struct OpenReport {
    /// The members that are open.
    pub members: Vec<OpenedMember>,
    /// The directories that were given and have left the pool: all of their keys are in others.
    pub left: Vec<PathBuf>,
}

/// A store that was opened, and its directory.
struct OpenedStore {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    store: Store,
    recovery: RecoveryReport,
}

impl Pool {
    /// Opens the pool in `dirs`, in any order. One directory alone is a store of its own, unless it
    /// is a member of a larger pool. Several directories without a pool become one: at most one of
    /// them has a store with buckets, whose keys are then spread over all of them in the
    /// background. An empty directory beside all members of a pool joins it in the same way.
    ///
    /// A member that cannot be opened is missing: calls for its keys fail with
    /// [`Error::MemberMissing`], and all others are served. So is a member whose log ends before a
    /// position that it had reached: it is an older copy.
    ///
    /// Memory in `options` is divided between the members.
    ///
    /// 1. Reads the files of all directories, which decide who is a member.
    /// 2. Opens the stores, all at once, each as after its own crash.
    /// 3. Completes what a crash interrupted: the newest table is written to all members, and
    ///    changes of buckets are completed.
    /// 4. Lets new directories join, one after the other: a new one has its file before another
    ///    member lists it, so that a crash leaves a pool with or without it.
    /// 5. Begins to move slots to them, and continues moves.
    ///
    /// # Errors
    /// Fails like [`Store::open`] for a store of its own, or if no member can be opened;
    /// [`Error::Invalid`] if the directories do not form a pool; [`Error::InUse`].
    ///
    /// # Durability
    /// All data that the pool returns is on stable storage.
    pub fn open(dirs: &[PathBuf], options: &Options) -> Result<(Self, OpenReport)> {
        Self::open_without(dirs, &[], options)
    }

    /// Opens the pool in `dirs` like [`Pool::open`], and accepts that the members that were last
    /// open in the directories `lost` are lost, with all their keys: the other members get their
    /// slots, and the lost ones are refused if they come back.
    ///
    /// # Errors
    /// Fails like [`Pool::open`]; [`Error::Invalid`] if a directory in `lost` is the directory of a
    /// member that is there, or if yet another member is missing. A directory of no member is
    /// ignored: its loss may have been accepted earlier.
    ///
    /// # Durability
    /// The loss is accepted durably when this returns.
    pub fn open_without(
        dirs: &[PathBuf],
        lost: &[PathBuf],
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        options.check()?;
        // The directories of a pool are recorded, for messages to a process in another directory.
        let absolute = |dir: &PathBuf| std::path::absolute(dir).ok().unwrap_or_else(|| dir.clone());
        let all: Vec<PathBuf> = dirs.iter().map(absolute).collect();
        let lost: Vec<PathBuf> = lost.iter().map(absolute).collect();
        if let [only] = dirs {
            let place = look(only);
            // A store of its own refuses another program's directory before it is changed.
            if !matches!(place.found, Found::Member(_)) {
                let (store, recovery) = Store::open(only, options.clone())?;
                return Ok(Self::single(store, recovery));
            }
            return Self::open_places(vec![look(&all[0])], &lost, options);
        }
        Self::open_places(all.iter().map(|dir| look(dir)).collect(), &lost, options)
    }

    /// Opens the pool in the roots of any disks, such as simulated ones, like
    /// [`Pool::open_without`].
    ///
    /// # Errors
    /// Fails like [`Pool::open_without`].
    pub fn open_on(
        disks: &[Arc<dyn Disk>],
        lost: &[PathBuf],
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        options.check()?;
        Self::open_places(disks.iter().map(Place::on_disk).collect(), lost, options)
    }

    fn single(store: Store, recovery: RecoveryReport) -> (Self, OpenReport) {
        let dir = store.dir().to_path_buf();
        let opened = OpenedMember { dir, recovery, has_joined: false };
        let report = OpenReport { members: vec![opened], left: Vec::new() };
        (Self::from(Arc::new(store)), report)
    }

    fn open_places(
        places: Vec<Place>,
        lost: &[PathBuf],
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        let names: Vec<String> =
            places.iter().map(|place| place.dir.display().to_string()).collect();
        let found = names.iter().map(String::as_str);
        let found: Vec<_> = found.zip(places.iter().map(|place| place.found.clone())).collect();
        match plan(&found).map_err(|what| Error::Invalid { what })? {
            Plan::Single => {
                let [Place { disk: Some(disk), .. }] = &*places else {
                    let what = "there is no directory".to_owned();
                    return Err(Error::Invalid { what });
                };
                let (store, recovery) = Store::open_on(Arc::clone(disk), options.clone())?;
                Ok(Self::single(store, recovery))
            }
            _ if options.replication.is_some() => {
                let what = "a pool of several directories cannot have a copy".to_owned();
                Err(Error::Invalid { what })
            }
            Plan::Begin { first } => begin(places, first, options),
            Plan::Open(mut plan) => {
                give_up_lost(&mut plan, lost)?;
                open(places, plan, options)
            }
        }
    }

    /// Lets a member leave the pool: its keys are moved to the others in the background. It has left
    /// when it has no slots; the pool then opens without it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no member has this directory, if it is the last one that stays, or
    /// while other keys are being moved; [`Error::MemberMissing`]; a failed write of a member.
    ///
    /// # Durability
    /// The decision survives a power cut when this returns.
    pub fn remove_member(&mut self, dir: &Path) -> Result<()> {
        let invalid = |what: String| Err(Error::Invalid { what });
        let name = dir.display().to_string();
        let Some(shared) = &self.shared else {
            return invalid(format!("{name} is the only directory, and cannot leave"));
        };
        self.all_stores()?;
        let Some(position) = self.members.iter().position(|member| member.is_at(dir)) else {
            return invalid(format!("{name} is not a member of the pool"));
        };
        let table = shared.table.lock().clone();
        if table.members[position].is_leaving {
            return Ok(());
        }
        if table.members.iter().filter(|member| !member.is_leaving).count() < 2 {
            return invalid(format!("{name} is the last member that stays, and cannot leave"));
        }
        let weights = weights(&self.members);
        let mut leaving = table;
        leaving.members[position].is_leaving = true;
        if !spread_slots(&mut leaving, |member| weights[member]) && leaving.has_moves() {
            return invalid(format!("{name} cannot leave while keys are moved between members"));
        }
        if let Some(mut upkeep) = self.upkeep.take() {
            upkeep.stop();
        }
        shared.change_table(&self.members, |table| {
            (table.members, table.slots) = (leaving.members, leaving.slots);
        })?;
        self.upkeep = Some(Upkeep::start(&self.members, shared)?);
        Ok(())
    }
}

/// Returns a new random ID.
fn random_id() -> Result<u128> {
    Ok(u128::from_le_bytes(haul_disk::random_bytes()?))
}

/// Returns the options of each member's store.
fn member_options(options: &Options, quotas: &SharedQuotas, members: u64, number: u16) -> Options {
    Options {
        member: number,
        shared_quotas: Some(quotas.clone()),
        pinned_bytes_max: options.pinned_bytes_max / members,
        locked_bytes_max: options.locked_bytes_max / members,
        index_memory_bytes: (options.index_memory_bytes / members).max(INDEX_MEMORY_MIN),
        ..options.clone()
    }
}

/// The memory for recent changes that a member has at least.
const INDEX_MEMORY_MIN: u64 = 8 << 20;

/// Opens the stores of some places at once. The number of each is its number in the pool.
fn open_stores(
    places: Vec<(Place, u16)>,
    options: &Options,
    quotas: &SharedQuotas,
    members: usize,
) -> Vec<Result<OpenedStore>> {
    let open = |(place, number): (Place, u16)| {
        let options = member_options(options, quotas, members as u64, number);
        let disk = match place.disk {
            Some(disk) => disk,
            None => Arc::new(OsDisk::open_or_create(&place.dir)?),
        };
        let (store, recovery) = Store::open_on(Arc::clone(&disk), options)?;
        Ok(OpenedStore { dir: place.dir, disk, store, recovery })
    };
    thread::scope(|scope| {
        let open = &open;
        let opening: Vec<_> =
            places.into_iter().map(|place| scope.spawn(move || open(place))).collect();
        let panicked = || Err(Error::Stopped { what: "opening a member panicked" });
        opening.into_iter().map(|opened| opened.join().unwrap_or_else(|_| panicked())).collect()
    })
}

/// Makes directories without a pool a pool.
///
/// 1. The store at `first` becomes the first member, and has all slots. After a crash, it is a pool
///    of one.
/// 2. The others join it, as any directory joins a pool.
fn begin(mut places: Vec<Place>, first: usize, options: &Options) -> Result<(Pool, OpenReport)> {
    places[..=first].rotate_right(1);
    let quotas = SharedQuotas::new(options.enforces_quotas);
    let count = places.len();
    let opened = open_stores(places.into_iter().zip(0..).collect(), options, &quotas, count);
    let mut opened = opened.into_iter().collect::<Result<Vec<OpenedStore>>>()?.into_iter();
    let Some(first) = opened.next() else {
        return Err(Error::Invalid { what: "a pool has at least one directory".to_owned() });
    };
    let joining: Vec<OpenedStore> = opened.collect();
    joining.iter().try_for_each(check_joining)?;
    let name = first.dir.display().to_string();
    let table = Table::with_one_member(random_id()?, random_id()?, name);
    write_table(&table, &[Some(Arc::clone(&first.disk))])?;
    let (pool, members) = finish(table, vec![(first.dir.clone(), Ok(first))], joining, true)?;
    Ok((pool, OpenReport { members, left: Vec::new() }))
}

/// Opens the members of a pool that exists.
fn open(places: Vec<Place>, mut plan: OpenPlan, options: &Options) -> Result<(Pool, OpenReport)> {
    let quotas = SharedQuotas::new(options.enforces_quotas);
    let mut places: Vec<Option<Place>> = places.into_iter().map(Some).collect();
    remove_gone(&mut plan);
    let OpenPlan { mut table, members, joining, left, must_write } = plan;
    let left = left.iter().filter_map(|index| Some(places[*index].take()?.dir)).collect();
    let mut chosen = Vec::new();
    for (entry, member) in table.members.iter().zip(&members) {
        if let Ok(index) = member {
            chosen.extend(places[*index].take().map(|place| (place, entry.number)));
        }
    }
    let first_new = table.members.last().map_or(0, |last| last.number + 1);
    let new = joining.iter().filter_map(|index| places[*index].take());
    chosen.extend(new.zip(first_new..));
    let count = table.members.len() + joining.len();
    let mut opened = open_stores(chosen, options, &quotas, count).into_iter();
    let mut stores = Vec::new();
    for (entry, member) in table.members.iter_mut().zip(members) {
        let missing = |why| (PathBuf::from(&entry.dir), Err(why));
        stores.push(match member.map(|_| opened.next()) {
            Ok(Some(Ok(opened))) => match check_age(&opened, entry.log_end) {
                Ok(()) => {
                    entry.dir = opened.dir.display().to_string();
                    (opened.dir.clone(), Ok(opened))
                }
                Err(why) => missing(why),
            },
            // Another process has the pool.
            Ok(Some(Err(error @ Error::InUse { .. }))) => return Err(error),
            Ok(Some(Err(error))) => missing(error_chain(&error)),
            Ok(None) => missing("it was not opened".to_owned()),
            Err(why) => missing(why),
        });
    }
    let joining = opened.collect::<Result<Vec<OpenedStore>>>()?;
    joining.iter().try_for_each(check_joining)?;
    if stores.iter().all(|(_, store)| store.is_err()) {
        let reasons = stores.iter().filter_map(|(dir, store)| {
            Some(format!("{}: {}", dir.display(), store.as_ref().err()?))
        });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        return Err(Error::Invalid {
            what: format!("no member of the pool can be opened: {reasons}"),
        });
    }
    let (pool, members) = finish(table, stores, joining, must_write)?;
    Ok((pool, OpenReport { members, left }))
}

/// Gives the slots of the members in `lost` to the others.
fn give_up_lost(plan: &mut OpenPlan, lost: &[PathBuf]) -> Result<()> {
    let invalid = |what: String| Err(Error::Invalid { what });
    for dir in lost {
        let name = dir.display().to_string();
        let mut entries = plan.table.members.iter().zip(&plan.members);
        let is_lost = |(entry, found): (&MemberEntry, &std::result::Result<usize, String>)| {
            entry.dir == name && found.is_err()
        };
        let Some(position) = entries.position(is_lost) else {
            match plan.table.members.iter().any(|entry| entry.dir == name) {
                true => return invalid(format!("{name} is not missing, so that it is not lost")),
                false => continue,
            }
        };
        drop(plan.members.remove(position));
        let number = plan.table.members[position].number;
        let sizes = |number| {
            let entry = plan.table.member(number)?;
            size(Path::new(&entry.dir))
        };
        let sizes: BTreeMap<u16, u64> = (plan.table.members.iter())
            .filter_map(|entry| Some((entry.number, sizes(entry.number)?)))
            .collect();
        give_up(&mut plan.table, number, |number| sizes.get(&number).copied().unwrap_or(1));
        plan.table.generation += 1;
        plan.must_write = true;
    }
    if !lost.is_empty() && plan.members.iter().any(std::result::Result::is_err) {
        return invalid("another member is missing, too; nothing was accepted".to_owned());
    }
    Ok(())
}

/// Removes the members that have left from the table, which is written when the pool is opened.
fn remove_gone(plan: &mut OpenPlan) {
    let table = &mut plan.table;
    let mut members = std::mem::take(&mut plan.members).into_iter();
    for entry in table.members.clone() {
        let member = members.next();
        if entry.is_leaving && !table.has_slots(entry.number) {
            table.members.retain(|member| member.number != entry.number);
            table.generation += 1;
            plan.must_write = true;
            plan.left.extend(member.and_then(std::result::Result::ok));
        } else {
            plan.members.extend(member);
        }
    }
}

/// Checks that a directory can join: its keys would not be in their slots.
fn check_joining(opened: &OpenedStore) -> Result<()> {
    if opened.store.stats().buckets == 0 {
        return Ok(());
    }
    let dir = opened.dir.display();
    let what = format!(
        "{dir} has a store with buckets, which cannot join a pool: list it first to begin a pool \
         with it, or copy its objects"
    );
    Err(Error::Invalid { what })
}

/// Checks that a member's log has reached a known position.
fn check_age(opened: &OpenedStore, log_end: u64) -> std::result::Result<(), String> {
    let end = opened.store.log().synced().0;
    if end >= log_end {
        return Ok(());
    }
    Err(format!("it is an older copy: its log ends at {end:016x}, and had reached {log_end:016x}"))
}

/// Completes the opening of a pool with a table: see [`Pool::open`], from step 3.
fn finish(
    mut table: Table,
    stores: Vec<(PathBuf, std::result::Result<OpenedStore, String>)>,
    joining: Vec<OpenedStore>,
    mut must_write: bool,
) -> Result<(Pool, Vec<OpenedMember>)> {
    let (mut members, mut disks, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    let mut add =
        |number, dir: PathBuf, opened: std::result::Result<OpenedStore, String>, has_joined| {
            let (store, disk) = match opened {
                Ok(OpenedStore { disk, store, recovery, .. }) => {
                    reports.push(OpenedMember { dir: dir.clone(), recovery, has_joined });
                    (Ok(Arc::new(store)), Some(disk))
                }
                Err(why) => (Err(why), None),
            };
            members.push(Member::new(number, dir, store));
            disks.push(disk);
        };
    for (entry, (dir, opened)) in table.members.iter().zip(stores) {
        add(entry.number, dir, opened, false);
    }
    let mut new = Vec::new();
    for opened in joining {
        let number = table
            .next_number()
            .map_or(0, |next| next + u16::try_from(new.len()).unwrap_or(u16::MAX));
        new.push(MemberEntry {
            number,
            id: random_id()?,
            dir: opened.dir.display().to_string(),
            log_end: 0,
            is_leaving: false,
        });
        add(number, opened.dir.clone(), Ok(opened), true);
    }
    let has_joined = !new.is_empty();
    must_write |= has_joined;
    for entry in new {
        table.members.push(entry);
        table.generation += 1;
        write_table(&table, &disks)?;
    }
    let open: Vec<&Store> =
        members.iter().filter_map(|member| member.store().ok().map(|store| &**store)).collect();
    let unsettled = settle(&open)
        .err()
        .map(|error| format!("the buckets of the members differ: {}", error_chain(&error)));
    let is_whole = open.len() == members.len();
    if is_whole && unsettled.is_none() && has_joined {
        let weights = weights(&members);
        if spread_slots(&mut table, |position| weights[position]) {
            table.generation += 1;
            must_write = true;
        }
        if open.iter().all(|store| store.stats().buckets == 0) {
            // A new pool has no keys to move.
            end_moves(&mut table);
        }
    }
    update_log_ends(&mut table, &members);
    match write_table(&table, &disks) {
        Err(error) if must_write => return Err(error),
        // Without the new positions of the logs, only an older copy of a member is noticed later.
        _ => {}
    }
    let shared = Arc::new(Shared {
        routes: ShardedRwLock::new(Routes::new(&table)),
        table: Mutex::new(table),
        bucket_changes: Mutex::default(),
        unsettled,
        disks,
        moves: MoveCounters::default(),
        pace: Pace::default(),
    });
    let members = Arc::new(members);
    let upkeep = Some(Upkeep::start(&members, &shared)?);
    Ok((Pool { members, shared: Some(shared), upkeep }, reports))
}

/// Returns the size of each member's file system, by which slots are spread; 1 for each if a size
/// is unknown.
fn weights(members: &[Member]) -> Vec<u64> {
    let sizes: Option<Vec<u64>> = members.iter().map(|member| size(&member.dir)).collect();
    sizes.unwrap_or_else(|| vec![1; members.len()])
}

/// Returns the size of a directory's file system, in bytes.
fn size(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    stat.f_blocks.checked_mul(stat.f_frsize).filter(|bytes| *bytes > 0)
}
