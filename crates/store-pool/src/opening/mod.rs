//! Opens a pool.

mod former;
pub(crate) mod look;
pub(crate) mod plan;
mod refill;
pub(crate) mod stores;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use haul_disk::{Disk, error_chain};
use haul_file_store::{Error, Options, RecoveryReport, Result, Store};
use haul_sync::{Mutex, ShardedRwLock};

use crate::copies::{CopiedBy, OpenWith};
use crate::member::Member;
use crate::membership::Membership;
use crate::moves::plan::{must_spread, spread_slots};
use crate::opening::former::{give_up_lost, remove_gone};
use crate::opening::look::{Place, look};
use crate::opening::plan::{Found, OpenPlan, Plan, plan};
use crate::opening::refill::{refill, take_over_buckets};
use crate::opening::stores::{Chosen, MemberStore, OpenedStore, StoreOptions, open_or_create};
use crate::pace::Pace;
use crate::pool::Pool;
use crate::progress::MoveCounters;
use crate::routes::Routes;
use crate::settling::settle;
use crate::shared::{Shared, update_log_ends, write_table};
use crate::table::{MEMBER_MAX, Table};
use crate::upkeep::Upkeep;
use crate::weights::weights;

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
    /// The directories of members whose loss was accepted.
    pub given_up: Vec<PathBuf>,
    /// The directories that were given and not added, because a member is missing.
    pub not_added: Vec<PathBuf>,
}

impl Pool {
    /// Opens the pool in `dirs`, in any order. One directory alone is a store of its own, unless it
    /// is a member of a larger pool. Several directories without a pool become one: at most one of
    /// them has a store with buckets, whose keys are then spread over all of them in the
    /// background. An empty directory beside all members of a pool joins it in the same way. A
    /// directory that does not exist is created for a new store only.
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
    /// 5. Begins to move slots to them, and continues moves. While earlier moves go on, a new member
    ///    gets its slots later.
    ///
    /// # Errors
    /// Fails like [`Store::open`] for a store of its own, or if no member can be opened;
    /// [`Error::Invalid`] if the directories do not form a pool; [`Error::InUse`].
    ///
    /// # Durability
    /// All data that the pool returns is on stable storage.
    pub fn open(dirs: &[PathBuf], options: &Options) -> Result<(Self, OpenReport)> {
        Self::open_with(dirs, &OpenWith::default(), options)
    }

    /// Opens the pool in `dirs` like [`Pool::open`], with the copies and the changes in `with`.
    ///
    /// A refill happens between the steps 2 and 3 of [`Pool::open`]: when all other members are
    /// open, the copy of the missing one is restored, and a stop at any time leaves a state from
    /// which the same call goes on. The member then gets the buckets of the others, of which it may
    /// have an earlier state, and loses the keys that were moved to others since. What the copy
    /// lacked is lost. The lost disk is refused if it comes back.
    ///
    /// # Errors
    /// Fails like [`Pool::open`]; [`Error::Invalid`] if a directory whose loss is accepted has its
    /// member, whether it was given in `dirs` or not, or if yet another member is missing;
    /// [`Error::Invalid`] if a directory to refill is not in `dirs` or not empty, or if not exactly one member is
    /// missing; the errors of [`crate::Copies`].
    ///
    /// # Durability
    /// The changes are durable when this returns.
    pub fn open_with(
        dirs: &[PathBuf],
        with: &OpenWith<'_>,
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        options.check()?;
        // The directories of a pool are recorded, for messages to a process in another directory.
        let absolute = |dir: &Path| std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
        let lost = with.lost.iter().map(|dir| look(&absolute(dir))).collect::<Vec<_>>();
        let refill = with.refill.map(absolute);
        let with = &OpenWith { refill: refill.as_deref(), ..*with };
        if let [only] = dirs {
            let place = look(only);
            let has_pool_files = match place.found {
                Found::Member(_) | Found::Refilling => true,
                // The table of its pool may be damaged.
                Found::Unreadable(_) => place.disk.is_some(),
                _ => false,
            };
            // A store of its own refuses another program's directory before it is changed.
            if !has_pool_files && with.refill.is_none() {
                return Self::open_single(only, None, with, options);
            }
        }
        let places = dirs.iter().map(|dir| look(&absolute(dir))).collect();
        Self::open_places(places, &lost, with, options)
    }

    /// Opens the pool in the roots of any disks, such as simulated ones, like
    /// [`Pool::open_with`].
    ///
    /// # Errors
    /// Fails like [`Pool::open_with`].
    pub fn open_on(
        disks: &[Arc<dyn Disk>],
        with: &OpenWith<'_>,
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        options.check()?;
        let lost = with.lost.iter().map(|dir| Place::without_disk(dir.clone(), Found::Absent));
        let places = disks.iter().map(Place::on_disk).collect();
        Self::open_places(places, &lost.collect::<Vec<_>>(), with, options)
    }

    /// Opens the store in a directory, or in the root of a disk.
    fn open_single(
        dir: &Path,
        disk: Option<Arc<dyn Disk>>,
        with: &OpenWith<'_>,
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        let (mut opened_on, mut options) = (disk, options.clone());
        if let Some(copies) = with.copies {
            let local = opened_on.clone().map_or_else(|| open_or_create(dir), Ok)?;
            let CopiedBy { disk, replication } = copies.prepare(None, &local, false)?;
            opened_on = disk.or(opened_on);
            options.replication = Some(replication);
        }
        let (store, recovery) = match opened_on {
            Some(disk) => Store::open_on(disk, options)?,
            None => Store::open(dir, options)?,
        };
        let store = Arc::new(store);
        if let Some(copies) = with.copies {
            copies.start(None, &store, None)?;
        }
        let dir = store.dir().to_path_buf();
        let opened = OpenedMember { dir, recovery, has_joined: false };
        let report = OpenReport { members: vec![opened], ..OpenReport::default() };
        Ok((Self::from(store), report))
    }

    fn open_places(
        places: Vec<Place>,
        lost: &[Place],
        with: &OpenWith<'_>,
        options: &Options,
    ) -> Result<(Self, OpenReport)> {
        let names: Vec<String> =
            places.iter().map(|place| place.dir.display().to_string()).collect();
        let found = names.iter().map(String::as_str);
        let found: Vec<_> = found.zip(places.iter().map(|place| place.found.clone())).collect();
        let invalid = |what: &str| Err(Error::Invalid { what: what.to_owned() });
        match plan(&found, !with.keeps_members).map_err(|what| Error::Invalid { what })? {
            Plan::Single | Plan::Begin { .. } if with.refill.is_some() => {
                invalid("nothing can be refilled: no directory has a member of a pool")
            }
            Plan::Single => match &*places {
                [Place { dir, disk: Some(disk), .. }] => {
                    Self::open_single(dir, Some(Arc::clone(disk)), with, options)
                }
                _ => invalid("there is no directory"),
            },
            _ if options.replication.is_some() => {
                invalid("each member of a pool has a copy of its own")
            }
            Plan::Begin { first } => begin(places, first, with, options),
            Plan::Open(mut plan) => {
                let given_up = give_up_lost(&mut plan, lost)?;
                let (pool, report) = open(places, plan, with, options)?;
                Ok((pool, OpenReport { given_up, ..report }))
            }
        }
    }

    /// Lets a member leave the pool: its keys are moved to the others in the background, after those
    /// that are being moved already. It has left when it has no slots; the pool then opens without
    /// it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no member has this directory, or if it is the last one that stays;
    /// [`Error::MemberMissing`]; a failed write of a member.
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
        // Otherwise the thread that moves keys spreads the slots later.
        spread_slots(&mut leaving, |member| weights[member]);
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
pub(crate) fn random_id() -> Result<u128> {
    Ok(u128::from_le_bytes(haul_disk::random_bytes()?))
}

/// Makes directories without a pool a pool.
///
/// 1. The store at `first` becomes the first member, and has all slots. After a crash, it is a pool
///    of one.
/// 2. The others join it, as any directory joins a pool.
fn begin(
    mut places: Vec<Place>,
    first: usize,
    with: &OpenWith<'_>,
    options: &Options,
) -> Result<(Pool, OpenReport)> {
    places[..=first].rotate_right(1);
    let options = StoreOptions::new(options, places.len(), with.copies);
    let chosen = places.into_iter().zip(0..);
    let chosen = chosen.map(|(place, number)| Chosen { place, number, is_new: true }).collect();
    let opened = options.open_all(chosen);
    let mut opened = opened.into_iter().collect::<Result<Vec<OpenedStore>>>()?.into_iter();
    let Some(first) = opened.next() else {
        return Err(Error::Invalid { what: "a pool has at least one directory".to_owned() });
    };
    let joining: Vec<OpenedStore> = opened.collect();
    [&first].into_iter().chain(&joining).try_for_each(check_unchanged)?;
    joining.iter().try_for_each(check_joining)?;
    let name = first.dir.display().to_string();
    let table = Table::with_one_member(random_id()?, random_id()?, name);
    write_table(&table, &[Some(Arc::clone(&first.disk))])?;
    let stores = vec![MemberStore { dir: first.dir.clone(), opened: Ok(first) }];
    let (pool, members) = Opened { table, stores, joining, must_write: true }.finish(with)?;
    options.lifecycle_gate().open();
    Ok((pool, OpenReport { members, ..OpenReport::default() }))
}

/// Opens the members of a pool that exists.
fn open(
    places: Vec<Place>,
    mut plan: OpenPlan,
    with: &OpenWith<'_>,
    options: &Options,
) -> Result<(Pool, OpenReport)> {
    let mut places: Vec<Option<Place>> = places.into_iter().map(Some).collect();
    remove_gone(&mut plan);
    let target = with.refill.map(|dir| refill::target(&plan, &places, dir)).transpose()?.flatten();
    let OpenPlan { mut table, members, joining, left, mut waiting, mut must_write } = plan;
    waiting.retain(|index| target.as_ref().is_none_or(|target| target.place != *index));
    let [left, not_added] = [left, waiting].map(|indexes| {
        indexes.iter().filter_map(|index| Some(places[*index].take()?.dir)).collect()
    });
    let mut chosen = Vec::new();
    for (entry, member) in table.members.iter().zip(&members) {
        if let Ok(index) = member {
            let place = places[*index].take();
            let member = |place| Chosen { place, number: entry.number, is_new: false };
            chosen.extend(place.map(member));
        }
    }
    let new = joining.iter().filter_map(|index| places[*index].take()).zip(table.next..);
    chosen.extend(new.map(|(place, number)| Chosen { place, number, is_new: true }));
    if usize::from(table.next) + joining.len() > usize::from(MEMBER_MAX) + 1 {
        return Err(Error::Invalid { what: "too many directories have joined".to_owned() });
    }
    if !chosen.is_empty() && chosen.iter().all(|chosen| chosen.place.is_restored) {
        let dirs = chosen.iter().map(|chosen| chosen.place.dir.display().to_string());
        let dirs = dirs.collect::<Vec<_>>().join(", ");
        let what = format!(
            "{dirs}: the restore was interrupted, or other directories are missing; repeat the \
             restore, or give all directories"
        );
        return Err(Error::Invalid { what });
    }
    let options = StoreOptions::new(options, table.members.len() + joining.len(), with.copies);
    let mut opened = options.open_all(chosen).into_iter();
    let mut stores = member_stores(&mut table, members, &mut opened)?;
    let joining = opened.collect::<Result<Vec<OpenedStore>>>()?;
    let found = stores.iter().filter_map(|store| store.opened.as_ref().ok());
    found.chain(&joining).try_for_each(check_unchanged)?;
    joining.iter().try_for_each(check_joining)?;
    if let Some(target) = target
        && let Some(place) = places[target.place].take()
    {
        let dir = place.dir.clone();
        let refilled = refill(&mut table, &stores, target, place, &options)?;
        stores[target.position] = MemberStore { dir, opened: Ok(refilled) };
        must_write = true;
    }
    if stores.iter().all(|store| store.opened.is_err()) {
        let reasons = stores.iter().filter_map(|MemberStore { dir, opened }| {
            Some(format!("{}: {}", dir.display(), opened.as_ref().err()?))
        });
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        return Err(Error::Invalid {
            what: format!("no member of the pool can be opened: {reasons}"),
        });
    }
    let (pool, members) = Opened { table, stores, joining, must_write }.finish(with)?;
    options.lifecycle_gate().open();
    Ok((pool, OpenReport { members, left, not_added, given_up: Vec::new() }))
}

/// Takes the store of each member that has a directory from `opened`.
///
/// # Errors
/// [`Error::InUse`]: another process has the pool.
fn member_stores(
    table: &mut Table,
    members: Vec<std::result::Result<usize, String>>,
    opened: &mut impl Iterator<Item = Result<OpenedStore>>,
) -> Result<Vec<MemberStore>> {
    let mut stores = Vec::new();
    for (entry, member) in table.members.iter_mut().zip(members) {
        let store = match member.map(|_| opened.next()) {
            Ok(Some(Ok(opened))) => check_age(&opened, entry.log_end).map(|()| opened),
            Ok(Some(Err(error @ Error::InUse { .. }))) => return Err(error),
            Ok(Some(Err(error))) => Err(error_chain(&error)),
            Ok(None) => Err("it was not opened".to_owned()),
            Err(why) => Err(why),
        };
        if let Ok(opened) = &store {
            entry.dir = opened.dir.display().to_string();
        }
        stores.push(MemberStore { dir: PathBuf::from(&entry.dir), opened: store });
    }
    Ok(stores)
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

/// Checks that no other process changed the pool before its directories were locked.
fn check_unchanged(opened: &OpenedStore) -> Result<()> {
    let file = |found: &Found| match found {
        Found::Member(file) => Some(file.clone()),
        _ => None,
    };
    if file(&Place::on_disk(&opened.disk).found) == file(&opened.found) {
        return Ok(());
    }
    let dir = opened.dir.display();
    let what = format!("{dir}: another process changed the pool meanwhile; try again");
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

/// A pool whose stores are open.
struct Opened {
    table: Table,
    /// The members of the table.
    stores: Vec<MemberStore>,
    /// The stores that are to join.
    joining: Vec<OpenedStore>,
    must_write: bool,
}

impl Opened {
    /// Completes the opening of the pool: see [`Pool::open`], from step 3.
    fn finish(self, with: &OpenWith<'_>) -> Result<(Pool, Vec<OpenedMember>)> {
        let Self { mut table, stores, joining, must_write } = self;
        let mut parts = Parts::default();
        for (entry, MemberStore { dir, opened }) in table.members.iter().zip(stores) {
            parts.add(entry.number, dir, opened, false);
        }
        let has_joined = !joining.is_empty();
        for opened in joining {
            let (number, dir) = (opened.number, opened.dir.clone());
            table.add(number, random_id()?, dir.display().to_string());
            table.generation += 1;
            parts.add(number, dir, Ok(opened), true);
            write_table(&table, &parts.disks)?;
        }
        let Parts { members, disks, reports, restored } = parts;
        if let Some(copies) = with.copies {
            for member in &members {
                let Ok(store) = member.store() else { continue };
                let file = Membership::new(&table, member.number).to_file();
                copies.start(Some(member.number), store, Some(file))?;
            }
        }
        take_over_buckets(&table, &members, &restored, &disks)?;
        let must_write = must_write || has_joined;
        let changes = Changes { has_joined, must_write, move_rate: with.move_rate };
        let pool = settled(table, members, disks, changes)?;
        Ok((pool, reports))
    }
}

/// What the members of a pool become, in their order.
#[derive(Default)]
struct Parts {
    members: Vec<Member>,
    disks: Vec<Option<Arc<dyn Disk>>>,
    reports: Vec<OpenedMember>,
    /// The positions of the members that were restored from their copies.
    restored: Vec<usize>,
}

impl Parts {
    fn add(
        &mut self,
        number: u16,
        dir: PathBuf,
        opened: std::result::Result<OpenedStore, String>,
        has_joined: bool,
    ) {
        let (store, disk) = match opened {
            Ok(OpenedStore { disk, store, recovery, is_restored, .. }) => {
                self.reports.push(OpenedMember { dir: dir.clone(), recovery, has_joined });
                self.restored.extend(is_restored.then_some(self.members.len()));
                (Ok(store), Some(disk))
            }
            Err(why) => (Err(why), None),
        };
        self.members.push(Member::new(number, dir, store));
        self.disks.push(disk);
    }
}

/// What changed while a pool was opened, and the rate of its moves.
#[derive(Clone, Copy)]
struct Changes {
    has_joined: bool,
    must_write: bool,
    move_rate: u64,
}

/// Makes the buckets of all members equal, spreads slots to those that have joined, and starts the
/// pool.
fn settled(
    mut table: Table,
    members: Vec<Member>,
    disks: Vec<Option<Arc<dyn Disk>>>,
    Changes { has_joined, mut must_write, move_rate }: Changes,
) -> Result<Pool> {
    let open: Vec<&Store> =
        members.iter().filter_map(|member| member.store().ok().map(|store| &**store)).collect();
    let unsettled = settle(&open)
        .err()
        .map(|error| format!("the buckets of the members differ: {}", error_chain(&error)));
    let is_whole = open.len() == members.len();
    if is_whole && unsettled.is_none() && (has_joined || must_spread(&table)) {
        let weights = weights(&members);
        if spread_slots(&mut table, |position| weights[position]) {
            table.generation += 1;
            must_write = true;
        }
        if open.iter().all(|store| store.stats().buckets == 0) {
            // A new pool has no keys to move.
            table.end_moves();
        }
    }
    update_log_ends(&mut table, &members);
    match write_table(&table, &disks) {
        Err(error) if must_write => return Err(error),
        // Without the new positions of the logs, only an older copy of a member is noticed later.
        _ => {}
    }
    let moves = MoveCounters::default();
    moves.slots_left.store(table.slots_to_move(), Relaxed);
    let shared = Arc::new(Shared {
        routes: ShardedRwLock::new(Routes::new(&table)),
        table: Mutex::new(table),
        bucket_changes: Mutex::default(),
        unsettled,
        disks,
        moves,
        pace: Pace::new(move_rate),
    });
    let members = Arc::new(members);
    let upkeep = Some(Upkeep::start(&members, &shared)?);
    Ok(Pool { members, shared: Some(shared), upkeep })
}
