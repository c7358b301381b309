//! A member whose disk was lost, and whose copy is restored into an empty directory.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Disk, Durability, Open, Subdir, read_full, write_full};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    Attributes, Error, Expiry, Lifecycle, LifecycleRule, ListRequest, Options, Precondition,
    Replication, Result, Store, Versioning,
};
use haul_store_pool::{CopiedBy, Copies, MembershipFile, OpenWith, Pool};

use crate::{
    BUCKET, check, content, dirs, fill, get, key, listed, open, refusal, small, wait_for_moves,
};

/// The directory that is refilled.
pub(crate) const NEW: usize = 9;

/// The copies of members, each in a directory beside those of the pool.
#[derive(Debug)]
pub(crate) struct DirCopies<'a>(&'a MemoryDisk);

/// The file with the time of a copy.
const TIME: &str = "TIME";

/// A copy that has everything.
#[derive(Debug)]
struct Complete;

impl Replication for Complete {
    fn wait(&self, _end: haul_append_log::Lsn) -> std::result::Result<(), String> {
        Ok(())
    }
}

impl<'a> DirCopies<'a> {
    pub(crate) fn new(disk: &'a MemoryDisk) -> Self {
        Self(disk)
    }

    fn copy(&self, member: u16) -> Subdir {
        Subdir::new(Arc::new(self.0.clone()), &format!("copy{member}"))
    }

    /// Makes the copy of a member that is not open.
    pub(crate) fn save(&self, member: u16) {
        self.save_from(member, usize::from(member));
    }

    /// Makes the copy of a member that is not open, and has this directory.
    pub(crate) fn save_from(&self, member: u16, dir: usize) {
        let dir = dirs(self.0, [dir]).remove(0);
        let copy = self.create(member);
        clear(&copy);
        copy_files(&*dir, &copy).unwrap();
        self.set_time(member, member.into());
    }

    fn create(&self, member: u16) -> Subdir {
        drop(self.0.create_dir(&format!("copy{member}")));
        self.0.sync_dir("").unwrap();
        self.copy(member)
    }

    pub(crate) fn set_time(&self, member: u16, written_ms: u64) {
        let copy = self.copy(member);
        write_file(&copy, TIME, &written_ms.to_le_bytes()).unwrap();
    }

    pub(crate) fn written_ms(&self, member: u16) -> u64 {
        let bytes = read_file(&self.copy(member), TIME).unwrap();
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    pub(crate) fn membership(&self, member: u16) -> Option<Vec<u8>> {
        read_file(&self.copy(member), MembershipFile::NAME).ok()
    }
}

/// Removes the files of an earlier copy, but not the membership: the pool has written it.
fn clear(copy: &Subdir) {
    for name in copy.list("").unwrap().iter().filter(|name| *name != MembershipFile::NAME) {
        match copy.list(name) {
            Ok(files) => files.iter().for_each(|it| copy.remove(&format!("{name}/{it}")).unwrap()),
            Err(_) => copy.remove(name).unwrap(),
        }
    }
}

fn read_file(disk: &dyn Disk, name: &str) -> Result<Vec<u8>> {
    let source = disk.open(name, Open { read_only: true, ..Open::default() })?;
    let mut bytes = vec![0; usize::try_from(source.bytes()?).unwrap()];
    read_full(&*source, &mut bytes, 0)?;
    Ok(bytes)
}

fn write_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<()> {
    drop(disk.remove(name));
    let file = disk.create(name, Open::default())?;
    write_full(&*file, bytes, 0)?;
    file.sync(Durability::Everything)?;
    Ok(disk.sync_dir("")?)
}

impl Copies for DirCopies<'_> {
    fn prepare(&self, _: Option<u16>, _: &Arc<dyn Disk>, _: bool) -> Result<CopiedBy> {
        Ok(CopiedBy { disk: None, replication: Arc::new(Complete) })
    }

    fn start(
        &self,
        member: Option<u16>,
        _: &Arc<Store>,
        file: Option<MembershipFile>,
    ) -> Result<()> {
        let (Some(member), Some(file)) = (member, file) else { return Ok(()) };
        write_file(&self.create(member), MembershipFile::NAME, &file.content)
    }

    fn check(&self, member: u16) -> Result<()> {
        self.copy(member).list("").map(drop).map_err(Error::from)
    }

    fn restore(&self, member: u16, disk: &Arc<dyn Disk>) -> Result<u64> {
        copy_files(&self.copy(member), &**disk).map(|()| self.written_ms(member))
    }
}

/// Copies the files of a store, but not those of the pool.
fn copy_files(from: &dyn Disk, to: &dyn Disk) -> Result<()> {
    let copy = |name: &str| -> Result<()> {
        let bytes = read_file(from, name)?;
        let copied = to.create(name, Open::default())?;
        write_full(&*copied, &bytes, 0)?;
        Ok(copied.sync(Durability::Everything)?)
    };
    // The file that makes the directory a store is last.
    let (last, names): (Vec<_>, Vec<_>) =
        from.list("")?.into_iter().partition(|name| name == "STORE");
    let is_copied = |name: &&String| !name.starts_with("POOL") && *name != TIME;
    for name in names.iter().chain(&last).filter(is_copied) {
        match from.list(name) {
            Ok(files) => {
                drop(to.create_dir(name));
                files.iter().try_for_each(|file| copy(&format!("{name}/{file}")))?;
                to.sync_dir(name)?;
            }
            Err(_) => copy(name)?,
        }
        to.sync_dir("")?;
    }
    Ok(())
}

/// Opens the pool in these directories and in the new one, which is refilled.
pub(crate) fn refill(disk: &MemoryDisk, others: impl IntoIterator<Item = usize>) -> Result<Pool> {
    refill_with(disk, others, &small())
}

fn refill_with(
    disk: &MemoryDisk,
    others: impl IntoIterator<Item = usize>,
    options: &Options,
) -> Result<Pool> {
    let mut dirs = dirs(disk, others);
    dirs.insert(1, crate::dirs(disk, [NEW]).remove(0));
    let (new, copies) = (dirs[1].root().to_path_buf(), DirCopies::new(disk));
    let with = OpenWith { refill: Some(&new), copies: Some(&copies), ..OpenWith::default() };
    Pool::open_on(&dirs, &with, options).map(|(pool, _)| pool)
}

fn put_in(pool: &Pool, bucket: &str, number: u64) {
    let (bytes, none) = (content(number), Attributes::new());
    pool.put(bucket, &key(number), &bytes, &none, &Precondition::None).unwrap();
}

fn empty_and_delete(pool: &Pool, bucket: &str) {
    for store in pool.stores() {
        for key in store.stored_keys(bucket, None, 1000).unwrap() {
            store.discard_key(bucket, &key).unwrap();
        }
    }
    pool.delete_bucket(bucket).unwrap();
}

/// Returns the names of a bucket's objects.
fn names(pool: &Pool, bucket: &str) -> BTreeSet<String> {
    let page = pool.list(bucket, &ListRequest { limit: 1000, ..ListRequest::default() }).unwrap();
    page.entries.iter().map(|entry| entry.name().to_owned()).collect()
}

fn keys(numbers: Range<u64>) -> BTreeSet<String> {
    numbers.map(key).collect()
}

/// Returns rules by which all objects have expired.
fn expire_all() -> Lifecycle {
    let expire = Some(Expiry::At(std::time::UNIX_EPOCH));
    Lifecycle { rules: vec![LifecycleRule { enabled: true, expire, ..LifecycleRule::default() }] }
}

#[test]
fn lifecycle_rules_of_the_copy_are_not_applied() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    pool.set_lifecycle(BUCKET, &expire_all()).unwrap();
    fill(&pool, 0..90);
    pool.close().unwrap();
    DirCopies::new(&disk).save(1);
    let pool = open(&disk, 0..3);
    pool.set_lifecycle(BUCKET, &Lifecycle::default()).unwrap();
    pool.close().unwrap();
    let options = Options { lifecycle_check_every: Duration::from_millis(1), ..small() };
    let pool = refill_with(&disk, [0, 2], &options).unwrap();
    check(&pool, 0..90);
    // From here on, rules are applied.
    pool.set_lifecycle(BUCKET, &expire_all()).unwrap();
    haul_testing::eventually("all objects expire", || names(&pool, BUCKET).is_empty());
}

#[test]
fn keys_of_the_copy_are_back_and_buckets_are_those_of_the_others() {
    for lost in 0..3 {
        let disk = MemoryDisk::default();
        let pool = open(&disk, 0..3);
        for bucket in [BUCKET, "gone", "again"] {
            pool.create_bucket(bucket).unwrap();
        }
        pool.set_bucket_setting(BUCKET, "owner", Some("ann")).unwrap();
        pool.set_versioning("gone", Versioning::Enabled).unwrap();
        fill(&pool, 0..60);
        for number in 0..30 {
            put_in(&pool, "gone", number);
            put_in(&pool, "gone", number);
            put_in(&pool, "again", number);
            pool.start_upload("again", &key(number), &Attributes::new()).unwrap();
        }
        pool.close().unwrap();
        DirCopies::new(&disk).save(u16::try_from(lost).unwrap());

        // Buckets and keys change after the copy.
        let pool = open(&disk, 0..3);
        for bucket in ["gone", "again"] {
            empty_and_delete(&pool, bucket);
        }
        pool.create_bucket("again").unwrap();
        pool.create_bucket("later").unwrap();
        pool.set_bucket_setting(BUCKET, "owner", Some("bob")).unwrap();
        fill(&pool, 60..90);
        put_in(&pool, "again", 100);
        let store = pool.members()[lost].store().unwrap();
        let is_lost: Vec<bool> =
            (0..101).map(|number| store.stat(BUCKET, &key(number)).is_ok()).collect();
        let again_is_lost = store.stat("again", &key(100)).is_ok();
        pool.close().unwrap();

        let others = (0..3).filter(|member| *member != lost);
        for _ in 0..2 {
            // A server is started again with the same options.
            let pool = refill(&disk, others.clone()).unwrap();
            assert_eq!(pool.members()[lost].dir().file_name().unwrap(), "d9");
            let buckets: Vec<_> = pool.buckets().unwrap().into_iter().map(|it| it.name).collect();
            assert_eq!(buckets, ["again", BUCKET, "later"]);
            for number in 0..90 {
                match get(&pool, &key(number)) {
                    Ok(bytes) => assert_eq!(bytes, content(number)),
                    Err(error) => {
                        assert!(matches!(error, Error::NoSuchKey { .. }), "{error}");
                        assert!(number >= 60 && is_lost[usize::try_from(number).unwrap()]);
                    }
                }
            }
            assert!(is_lost[60..90].contains(&true), "nothing was lost");
            let again = if again_is_lost { BTreeSet::new() } else { keys(100..101) };
            assert_eq!(names(&pool, "again"), again);
            let first = pool.members()[0].store().unwrap().bucket_id("again").unwrap();
            for store in pool.stores() {
                assert_eq!(store.bucket_id("again").unwrap(), first);
                assert_eq!(store.bucket_settings(BUCKET).unwrap().get("owner"), Some("bob"));
            }
            assert_eq!(pool.stats().uploads, 0);
            fill(&pool, 60..90);
            check(&pool, 0..90);
            pool.close().unwrap();
        }
        let pool = open(&disk, others.clone().chain([NEW]));
        check(&pool, 0..90);
        pool.create_bucket("new").unwrap();
        pool.close().unwrap();
        let back = refusal(&disk, 0..3);
        assert!(back.contains(&format!("d{lost} is no longer a member of the pool")), "{back}");
    }
}

#[test]
fn keys_that_moved_since_the_copy_are_not_doubled() {
    for waits in [false, true] {
        let disk = MemoryDisk::default();
        let pool = open(&disk, 0..2);
        pool.create_bucket(BUCKET).unwrap();
        fill(&pool, 0..120);
        pool.close().unwrap();
        DirCopies::new(&disk).save(1);
        let pool = open(&disk, 0..3);
        if waits {
            wait_for_moves(&pool);
        }
        pool.close().unwrap();
        let pool = refill(&disk, [0, 2]).unwrap();
        assert_eq!(listed(&pool, 50).len(), 120);
        wait_for_moves(&pool);
        check(&pool, 0..120);
        for number in 0..120 {
            let has = pool.stores().filter(|store| store.stat(BUCKET, &key(number)).is_ok());
            assert_eq!(has.count(), 1, "{}", key(number));
        }
        pool.close().unwrap();
    }
}

#[test]
fn refill_that_does_not_fit_changes_nothing() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..30);
    pool.close().unwrap();
    let refused = |others: &[usize]| refill(&disk, others.to_vec()).unwrap_err().to_string();
    let whole = refused(&[0, 1, 2]);
    assert!(whole.contains("no directory is missing"), "{whole}");
    let two = refused(&[0]);
    assert!(two.contains("one is refilled when all others are there"), "{two}");
    let none = refused(&[0, 2]);
    assert!(none.contains("copy1"), "it has no copy: {none}");
    assert_eq!(disk.list("d9").unwrap(), Vec::<String>::new());

    // A store in the directory is not overwritten.
    open(&disk, [NEW]).close().unwrap();
    let used = refused(&[0, 2]);
    assert!(used.contains("d9 has a store that does not belong to the pool"), "{used}");
    check(&open(&disk, 0..3), 0..30);
}

#[test]
fn number_of_a_lost_member_is_not_given_to_another_one() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    let lost = [pool.members()[2].dir().to_owned()];
    pool.close().unwrap();
    let with = OpenWith { lost: &lost, ..OpenWith::default() };
    Pool::open_on(&dirs(&disk, 0..2), &with, &small()).unwrap().0.close().unwrap();
    let pool = open(&disk, [0, 1, NEW]);
    let numbers: Vec<u16> = pool.members().iter().map(haul_store_pool::Member::number).collect();
    assert_eq!(numbers, [0, 1, 3]);
}
