//! The keys of a running server, which are read again when their file changes.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_s3_server::{KeyFile, KeyList, KeyRing, SealingKey};
use parking_lot::Mutex;

use crate::report::{Failure, OrFail, Result, try_print_message};
use crate::secrets::key_file;

/// The time between two checks of the file: a change takes effect within a second.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The variable with the directory in which systemd passes credentials.
const CREDENTIALS_DIRECTORY: &str = "CREDENTIALS_DIRECTORY";

/// The keys of a running server, and their file.
#[derive(Clone)]
pub(crate) struct LiveKeys(Arc<Inner>);

struct Inner {
    path: PathBuf,
    seal: SealingKey,
    ring: Arc<KeyRing>,
    /// The state of the file when it was last read.
    seen: Mutex<Option<Stamp>>,
}

/// The values by which a change of a file is detected.
#[derive(PartialEq, Eq)]
struct Stamp([i64; 5], [u64; 3]);

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let (mtime, ctime) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
        let times = [mtime.0, mtime.1, ctime.0, ctime.1, i64::from(file.mode())];
        Some(Self(times, [file.dev(), file.ino(), file.size()]))
    }
}

impl LiveKeys {
    /// Reads the key file and its sealing key.
    pub(crate) fn load(path: &Path, sealing_key: &Path) -> Result<Self> {
        let seal = key_file::read_sealing_key(sealing_key)?;
        // Taken first: if the file changes meanwhile, it is read again.
        let seen = Mutex::new(Stamp::of(path));
        let ring = KeyRing::new(key_file::read(path, &seal)?).with_sealing_key(&seal);
        let ring = Arc::new(ring);
        Ok(Self(Arc::new(Inner { path: path.to_owned(), seal, ring, seen })))
    }

    /// Returns the keys for the server.
    pub(crate) fn ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.0.ring)
    }

    /// Returns the file for changes by the server.
    pub(crate) fn file(&self) -> Arc<dyn KeyFile> {
        Arc::new(self.clone())
    }

    /// Reads the file again, and prints the result; never blocks on stderr. If the file cannot be
    /// used, the present keys remain in force.
    pub(crate) fn reload(&self) {
        let Inner { path, seal, ring, seen } = &*self.0;
        let mut seen = seen.lock();
        *seen = Stamp::of(path);
        match key_file::read(path, seal) {
            Ok(list) => {
                let number = list.keys().len();
                ring.replace(list);
                try_print_message(&format!("key file reloaded: {number} keys"));
            }
            Err(failure) => {
                let text = failure.text().unwrap_or_default();
                try_print_message(&format!("{text}\n  the keys of before remain in force"));
                ring.report_failure(text.lines().next().unwrap_or_default().to_owned());
            }
        }
    }

    /// Starts a thread that reloads the file when it changes.
    pub(crate) fn watch(&self) -> Result {
        let keys = self.clone();
        let watch = move || {
            loop {
                thread::sleep(CHECK_INTERVAL);
                let is_changed = *keys.0.seen.lock() != Stamp::of(&keys.0.path);
                if is_changed {
                    keys.reload();
                }
            }
        };
        let started = thread::Builder::new().name("keys".to_owned()).spawn(watch);
        started.map(drop).or_fail(|| "cannot start a thread for the key file".to_owned())
    }
}

impl KeyFile for LiveKeys {
    fn read_only_reason(&self) -> Option<String> {
        let credentials = std::env::var_os(CREDENTIALS_DIRECTORY).map(PathBuf::from);
        key_file::read_only_reason(&self.0.path, credentials.as_deref())
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut KeyList) -> bool,
    ) -> std::result::Result<(), String> {
        let Inner { path, seal, ring, seen } = &*self.0;
        // A reload waits, so that it cannot replace the new keys by earlier ones. `seen` remains:
        // if another process changes the file at the same time, the next check reads it again.
        let _no_reload = seen.lock();
        let mut is_refused = false;
        let updated = key_file::update_sealed(path, seal, |list| {
            is_refused = !change(list);
            if is_refused { Err(Failure::reported()) } else { Ok(list.clone()) }
        });
        match updated {
            Ok(list) => ring.replace(list),
            Err(_) if is_refused => {}
            Err(failure) => return Err(failure.text().unwrap_or_default()),
        }
        Ok(())
    }
}

impl fmt::Debug for LiveKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveKeys").field("path", &self.0.path).finish_non_exhaustive()
    }
}
