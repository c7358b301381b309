//! What is kept from one request to the next: small files whole, others open.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use crate::coding::Accepted;
use crate::config::Tiers;
use crate::find::Found;
use crate::meta::{Checked, HotFile, Meta, OpenFile};
use crate::sending::Source;
use crate::tier::Tier;

/// What an entry takes beside what can be counted: the maps of the cache, the allocator.
const OVERHEAD_BYTES: usize = 512;

/// How long a file that nobody asks for is kept open, beside the time it is believed to be right.
const IDLE_MS: u64 = 10_000;

/// A path as it was decoded, and the forms its asker takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    accepted: Accepted,
    path: Box<[u8]>,
}

/// A key that owns nothing, to look up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asked<'a> {
    pub(crate) accepted: Accepted,
    pub(crate) path: &'a [u8],
}

impl Key {
    pub(crate) fn of(asked: Asked<'_>) -> Self {
        Self { accepted: asked.accepted, path: asked.path.into() }
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        Asked { accepted: self.accepted, path: &self.path }
    }
}

impl Asked<'_> {
    /// Under which a file is kept that is the same for everybody.
    fn by_anybody(self) -> Self {
        Self { accepted: Accepted::default(), ..self }
    }

    /// Under which a file is kept that was found for this.
    pub(crate) fn key_for(self, meta: &Meta) -> Key {
        Key::of(if meta.varies { self } else { self.by_anybody() })
    }
}

impl Equivalent<Key> for Asked<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.accepted == key.accepted && self.path == &*key.path
    }
}

/// A file kept open.
#[derive(Debug)]
struct Kept {
    file: Arc<OpenFile>,
    checked: Checked,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Key, Arc<HotFile>> for ByBytes {
    fn weight(&self, key: &Key, file: &Arc<HotFile>) -> u64 {
        (file.body.len() + file.meta.whole.len() * 2 + key.path.len() + OVERHEAD_BYTES) as u64
    }
}

/// Both caches, for all threads.
#[derive(Debug)]
pub(crate) struct Caches {
    hot: Cache<Key, Arc<HotFile>, ByBytes>,
    open: Cache<Key, Arc<Kept>>,
    valid_ms: u64,
}

impl Caches {
    pub(crate) fn new(tiers: &Tiers, valid_ms: u64) -> Self {
        // How many entries there may be is only where the maps begin to grow from.
        let entries = tiers.cache_bytes / tiers.cache_object_bytes_max.max(1);
        let entries = usize::try_from(entries).unwrap_or(0).max(16);
        Self {
            hot: Cache::with_weighter(entries, tiers.cache_bytes, ByBytes),
            open: Cache::new(tiers.open_files),
            valid_ms,
        }
    }

    /// The file, if its bytes are here and were seen to be right lately.
    pub(crate) fn hot(&self, asked: Asked<'_>, now_ms: u64) -> Option<Arc<HotFile>> {
        let file = self.any_hot(asked)?;
        file.checked.is_fresh(now_ms, self.valid_ms).then_some(file)
    }

    /// The file, if its bytes are here and this is its state on the disk, as was just seen.
    pub(crate) fn hot_in_state(&self, asked: Asked<'_>, meta: &Meta) -> Option<Arc<HotFile>> {
        self.any_hot(asked).filter(|file| is_same(&file.meta, meta))
    }

    /// What is the same for everybody is kept once, whatever its askers take.
    fn any_hot(&self, asked: Asked<'_>) -> Option<Arc<HotFile>> {
        let is_right = |file: &Arc<HotFile>| !file.meta.varies || asked == asked.by_anybody();
        let file = self.hot.get(&asked.by_anybody()).filter(is_right);
        file.or_else(|| self.hot.get(&asked).filter(|file| file.meta.varies))
    }

    /// Keeps a file in memory, which was found in this state at `found_ms`.
    pub(crate) fn keep_hot(
        &self,
        asked: Asked<'_>,
        meta: Meta,
        body: Box<[u8]>,
        found_ms: u64,
    ) -> Arc<HotFile> {
        self.unless_it_varies(asked, &meta);
        let key = asked.key_for(&meta);
        let file = Arc::new(HotFile { meta, body, checked: Checked::at(found_ms) });
        self.hot.insert(key, Arc::clone(&file));
        file
    }

    /// The file, if it is open and was looked for lately.
    pub(crate) fn open(&self, asked: Asked<'_>, now_ms: u64) -> Option<Arc<OpenFile>> {
        let kept = self.any_open(asked)?;
        kept.checked.is_fresh(now_ms, self.valid_ms).then(|| Arc::clone(&kept.file))
    }

    fn any_open(&self, asked: Asked<'_>) -> Option<Arc<Kept>> {
        let is_right = |kept: &Arc<Kept>| !kept.file.meta.varies || asked == asked.by_anybody();
        let kept = self.open.get(&asked.by_anybody()).filter(is_right);
        kept.or_else(|| self.open.get(&asked).filter(|kept| kept.file.meta.varies))
    }

    /// Keeps a file open; one that is kept in this state already stays, with what it has beside.
    pub(crate) fn keep_open(
        &self,
        asked: Asked<'_>,
        file: Arc<OpenFile>,
        now_ms: u64,
    ) -> Arc<OpenFile> {
        self.unless_it_varies(asked, &file.meta);
        let file = match self.any_open(asked).filter(|kept| is_same(&kept.file.meta, &file.meta)) {
            Some(kept) => Arc::clone(&kept.file),
            None => file,
        };
        let kept = Kept { file: Arc::clone(&file), checked: Checked::at(now_ms) };
        self.open.insert(asked.key_for(&file.meta), Arc::new(kept));
        file
    }

    /// Encoded forms have come: what was kept for everybody is not for everybody any more.
    fn unless_it_varies(&self, asked: Asked<'_>, meta: &Meta) {
        if meta.varies && asked != asked.by_anybody() {
            let asked = asked.by_anybody();
            self.hot.remove_if(&asked, |file| !file.meta.varies);
            self.open.remove_if(&asked, |kept| !kept.file.meta.varies);
        }
    }

    /// What was just found on the disk: whatever is kept and is something else goes. A failure to
    /// look says nothing about what is there.
    pub(crate) fn learn(&self, asked: Asked<'_>, found: &Found) {
        let now = match found {
            Found::File(file) => Some(&file.meta),
            Found::Status(500 | 503) => return,
            Found::WithoutSlash | Found::Directory(_) | Found::Status(_) => None,
        };
        for key in [asked, asked.by_anybody()] {
            // What the file is for others, who take other forms, may still be right.
            let is_of_others =
                |kept: &Meta| key != asked && kept.varies && now.is_some_and(|now| now.varies);
            let is_stale =
                |kept: &Meta| !is_of_others(kept) && now.is_none_or(|now| !is_same(kept, now));
            self.hot.remove_if(&key, |file| is_stale(&file.meta));
            self.open.remove_if(&key, |kept| is_stale(&kept.file.meta));
        }
    }

    /// What was right when it was last looked at, for when nobody can look.
    pub(crate) fn any(&self, asked: Asked<'_>) -> Option<Source> {
        let hot = self.any_hot(asked).map(|file| Source::Hot(file, Tier::Memory));
        hot.or_else(|| self.any_open(asked).map(|kept| Source::File(Arc::clone(&kept.file))))
    }

    /// The same, for who was told to look and cannot at once, if it was fresh until lately.
    pub(crate) fn any_lately(&self, asked: Asked<'_>, now_ms: u64) -> Option<Source> {
        if let Some(file) = self.any_hot(asked) {
            let is_so = file.checked.was_fresh(now_ms, self.valid_ms);
            return is_so.then_some(Source::Hot(file, Tier::Memory));
        }
        let kept = self.any_open(asked)?;
        let is_so = kept.checked.was_fresh(now_ms, self.valid_ms);
        is_so.then(|| Source::File(Arc::clone(&kept.file)))
    }

    /// Whether anything is believed without being looked at.
    pub(crate) fn are_believed(&self) -> bool {
        self.valid_ms > 0
    }

    /// Closes files that nobody asked for lately, and those that have no name any more: their room
    /// on the disk is free only then.
    pub(crate) fn sweep(&self, now_ms: u64) {
        let idle_ms = self.valid_ms.saturating_add(IDLE_MS);
        for (key, kept) in self.open.iter() {
            // Whoever asks has it looked at again.
            let is_idle = now_ms >= kept.checked.at_ms().saturating_add(idle_ms);
            if is_idle || !has_name(&kept.file) {
                // Closed here, after the lock of the cache: that can take a while.
                self.open.remove_if(&key, |now| Arc::ptr_eq(now, &kept));
            }
        }
    }

    /// Files whose bytes are here, and what they take.
    pub(crate) fn hot_size(&self) -> (usize, u64) {
        (self.hot.len(), self.hot.weight())
    }

    pub(crate) fn open_size(&self) -> usize {
        self.open.len()
    }
}

fn has_name(file: &OpenFile) -> bool {
    rustix::fs::fstat(&file.fd).is_ok_and(|stat| stat.st_nlink > 0)
}

fn is_same(a: &Meta, b: &Meta) -> bool {
    a.version == b.version && a.whole == b.whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::accepted;
    use crate::meta::Chosen;

    fn meta(path: &std::path::Path, varies: bool) -> Meta {
        let stat = rustix::fs::stat(path).unwrap();
        Meta::new(b"a", &stat, Chosen { coding: None, varies }, None).unwrap()
    }

    fn found(path: &std::path::Path, varies: bool) -> Found {
        let fd = std::fs::File::open(path).unwrap().into();
        Found::File(Arc::new(OpenFile::new(fd, meta(path, varies))))
    }

    #[test]
    fn one_looks_when_the_time_is_over_and_everybody_when_there_is_none() {
        let checked = Checked::at(0);
        assert_eq!([9, 10, 10, 19].map(|now| checked.is_fresh(now, 10)), [true, false, true, true]);
        assert!(checked.was_fresh(19, 10) && !checked.was_fresh(20, 10));
        // Many at once: had one of them to look for the others, those would be told what was.
        let checked = Checked::at(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!((0..100_000).all(|now| !checked.is_fresh(now, 0))));
            }
        });
    }

    #[test]
    fn what_a_look_up_saw_is_learned_whoever_asked_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let anybody = Asked { accepted: Accepted::default(), path: b"/a" };
        let gzip = Asked { accepted: accepted([&b"gzip"[..]]), ..anybody };
        let kept = |varies| {
            let caches = Caches::new(&Tiers::default(), 1000);
            caches.keep_hot(anybody, meta(&path, varies), Box::new(*b"old"), 0);
            if varies {
                caches.keep_hot(gzip, meta(&path, varies), Box::new(*b"old"), 0);
            }
            caches
        };
        let left = |varies, asked, found: &Found| {
            let caches = kept(varies);
            caches.learn(asked, found);
            caches.hot_size().0
        };
        let same = [found(&path, false), found(&path, true)];
        assert_eq!((left(false, gzip, &same[0]), left(true, gzip, &same[1])), (1, 2));
        for status in [500, 503] {
            assert_eq!(left(false, gzip, &Found::Status(status)), 1, "it says nothing");
        }
        for found in [Found::Status(404), Found::WithoutSlash] {
            assert_eq!((left(false, gzip, &found), left(true, gzip, &found)), (0, 0));
        }
        let other = dir.path().join("b");
        std::fs::write(&other, "newer").unwrap();
        assert_eq!(left(false, gzip, &found(&other, false)), 0);
        assert_eq!(left(true, gzip, &found(&other, true)), 1, "others have another form");
        assert_eq!(left(true, gzip, &found(&other, false)), 0, "there are no forms any more");
    }

    #[test]
    fn files_without_a_name_or_without_askers_are_closed() {
        let dir = tempfile::tempdir().unwrap();
        let caches = Caches::new(&Tiers::default(), 1000);
        for (name, at) in [("deleted", 5000), ("idle", 0), ("asked", 5000)] {
            let path = dir.path().join(name);
            std::fs::write(&path, "a").unwrap();
            let Found::File(file) = found(&path, false) else { unreachable!() };
            let asked = Asked { accepted: Accepted::default(), path: name.as_bytes() };
            caches.keep_open(asked, file, at);
        }
        caches.sweep(10_999);
        assert_eq!(caches.open_size(), 3);
        std::fs::remove_file(dir.path().join("deleted")).unwrap();
        caches.sweep(11_000);
        let left = |name: &str| {
            let asked = Asked { accepted: Accepted::default(), path: name.as_bytes() };
            caches.any_open(asked).is_some()
        };
        assert_eq!(["deleted", "idle", "asked"].map(left), [false, false, true]);
    }
}
