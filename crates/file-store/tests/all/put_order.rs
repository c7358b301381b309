//! Puts that block and puts that do not, of the same keys: the last one wins.

use std::thread;

use haul_file_store::Store;
use haul_testing::{PrintOnPanic, Random, replay_command, seed};

use crate::start_put::{put_either, try_start};
use crate::{BUCKET, new_store, put, reopen, try_get};

/// Puts, overwrites and deletes keys of this thread with both kinds of put, without waiting for
/// some of them. Also overwrites a key that all threads share.
fn overwrite(store: &Store, thread: u64, seed: u64) -> Vec<Option<Vec<u8>>> {
    let mut random = Random(seed ^ thread << 32);
    let mut mine = vec![None; 6];
    for _ in 0..400 {
        let n = usize::try_from(random.below(6)).unwrap();
        let key = format!("{thread}/{n}");
        let length = usize::try_from(random.below(6000)).unwrap();
        let bytes = random.bytes(length);
        match random.below(8) {
            0 => {
                // The key is locked until an earlier, dropped put is completed.
                store.delete(BUCKET, &key).unwrap();
                mine[n] = None;
                continue;
            }
            1..=2 => drop(put(store, &key, &bytes)),
            3 => {
                put_either(store, "shared", &[b'a' + u8::try_from(thread).unwrap(); 100]);
                assert!(matches!(get_shared(store), Some(b'a'..=b'd')), "bytes of two objects");
                continue;
            }
            4..=5 => match try_start(store, &key, &bytes).unwrap() {
                Some(pending) => drop(pending),
                None => drop(put(store, &key, &bytes)),
            },
            _ => drop(put_either(store, &key, &bytes)),
        }
        mine[n] = Some(bytes);
    }
    mine
}

fn get_shared(store: &Store) -> Option<u8> {
    let bytes = try_get(store, "shared").ok()?;
    assert!(bytes.len() == 100 && bytes.iter().all(|byte| *byte == bytes[0]));
    Some(bytes[0])
}

#[test]
fn puts_of_both_kinds_keep_the_order_of_each_key() {
    let seed = seed();
    let _context = PrintOnPanic(format!("puts of both kinds\n{}", replay_command(seed)));
    let (dir, store) = new_store();
    let written: Vec<Vec<Option<Vec<u8>>>> = thread::scope(|scope| {
        let store = &store;
        let threads: Vec<_> =
            (0..4).map(|thread| scope.spawn(move || overwrite(store, thread, seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let shared = get_shared(&store);
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(get_shared(&store), shared);
    for (thread, keys) in written.iter().enumerate() {
        for (n, expected) in keys.iter().enumerate() {
            let found = try_get(&store, &format!("{thread}/{n}")).ok();
            assert!(found == *expected, "{thread}/{n}");
        }
    }
}
