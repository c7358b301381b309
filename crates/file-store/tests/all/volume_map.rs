//! The live and dead parts of volumes are those that the statistics count.

use haul_file_store::{Store, VolumeMap};

use crate::{BUCKET, new_store, put, random_bytes, reopen};

/// Checks the maps of a store without tombstones against its statistics.
fn check(store: &Store) -> Vec<VolumeMap> {
    let (maps, stats) = (store.volume_maps().unwrap(), store.stats());
    let sum = |is_live| maps.iter().map(|map| map.needle_bytes(is_live)).sum::<u64>();
    assert_eq!((sum(true), sum(false)), (stats.live_volume_bytes, stats.dead_volume_bytes));
    assert_eq!(maps.len() as u64, stats.volumes);
    for map in &maps {
        let mut end = 0;
        for extent in &map.extents {
            assert!(extent.offset >= end, "{map:?}");
            end = extent.offset + extent.bytes;
        }
        assert!(end <= map.bytes, "{map:?}");
    }
    maps
}

#[test]
fn maps_have_the_live_and_dead_bytes_of_sealed_and_current_volumes() {
    let (dir, store) = new_store();
    assert_eq!(check(&store).len(), 1, "nothing but the needle of the bucket");
    // More than one volume.
    for n in 0..150 {
        put(&store, &format!("{n}"), &random_bytes(n, 60_000));
    }
    for n in (0..150).step_by(3) {
        put(&store, &format!("{n}"), &random_bytes(n, 30_000));
    }
    let maps = check(&store);
    assert!(maps.len() > 1, "{}", maps.len());
    let states = |map: &VolumeMap| map.extents.iter().map(|it| it.is_live).collect::<Vec<_>>();
    let first = states(&maps[0]);
    assert!(first.contains(&true) && first.contains(&false), "{first:?}");

    store.delete(BUCKET, "1").unwrap();
    let stats = store.stats();
    let dead = |store: &Store| {
        store.volume_maps().unwrap().iter().map(|map| map.needle_bytes(false)).sum::<u64>()
    };
    assert!(dead(&store) > stats.dead_volume_bytes, "the tombstone, too");
    let before = store.volume_maps().unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.volume_maps().unwrap()[0], before[0], "of a volume that was sealed");
}
