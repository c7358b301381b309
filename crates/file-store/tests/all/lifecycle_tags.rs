//! Rules that are limited to objects with some tags.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{
    Error, ExpiredEntry, Expiry, Lifecycle, LifecycleRule, NoncurrentExpiry, SweepReport, Tags,
    TimeSource, VersionId, Versioning,
};

use crate::crash::open_on;
use crate::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn tagged(pairs: &[(&str, &str)]) -> Attributes {
    let mut attributes = Attributes::new();
    attributes.set_tags(&tags(pairs));
    attributes
}

/// Returns a rule that expires all objects with these tags.
fn rule(pairs: &[(&str, &str)]) -> LifecycleRule {
    let expire = Some(Expiry::At(UNIX_EPOCH));
    LifecycleRule { enabled: true, tags: tags(pairs), expire, ..LifecycleRule::default() }
}

fn set(store: &Store, rules: &[LifecycleRule]) {
    let numbered = rules.iter().enumerate();
    let rules =
        numbered.map(|(number, rule)| LifecycleRule { id: number.to_string(), ..rule.clone() });
    store.set_lifecycle(BUCKET, &Lifecycle { rules: rules.collect() }).unwrap();
}

fn put_tagged(store: &Store, key: &str, pairs: &[(&str, &str)]) -> VersionId {
    let attributes = tagged(pairs);
    store.put(BUCKET, key, key.as_bytes(), &attributes, &Precondition::None).unwrap().version_id
}

fn keys(store: &Store) -> Vec<String> {
    list(store, BUCKET).into_iter().map(|info| info.key).collect()
}

/// Sweeps after a search without changes, which must find the same objects. Returns the rule of
/// each, and the report.
fn sweep(store: &Store) -> (Vec<String>, SweepReport) {
    let mut rules = Vec::new();
    let planned = store.expirable(BUCKET, &mut |found| {
        rules.push(match found {
            ExpiredEntry::Object { info, rule } => format!("{} {rule}", info.key),
            ExpiredEntry::Version { info, rule, .. } => format!("{} {rule}", info.version_id),
            ExpiredEntry::Upload { key, rule, .. } => format!("{key} {rule}"),
        });
        true
    });
    let report = store.expire_now(BUCKET).unwrap();
    assert_eq!(planned.unwrap(), report);
    (rules, report)
}

/// Only objects that nothing but a rule with tags may expire are read, each once.
#[test]
fn only_objects_with_all_tags_of_a_rule_expire() {
    let (_dir, store) = new_store();
    for (key, pairs) in [
        ("logs/a", &[("class", "temp"), ("team", "x")][..]),
        ("logs/b", &[("class", "temp")]),
        ("logs/c", &[("class", "other"), ("team", "x")]),
        ("logs/d", &[]),
        ("logs/expired", &[("class", "temp"), ("team", "x")]),
        ("logs/too long", &[("class", "temp"), ("team", "x")]),
        ("other", &[("class", "temp"), ("team", "x")]),
    ] {
        put_tagged(&store, key, pairs);
    }
    let by_tags = LifecycleRule {
        prefix: "logs/".to_owned(),
        bytes_less_than: Some(13),
        ..rule(&[("class", "temp"), ("team", "x")])
    };
    let by_prefix = LifecycleRule { prefix: "logs/expired".to_owned(), ..rule(&[]) };
    let later = Expiry::After(Duration::from_secs(3600));
    let later =
        LifecycleRule { prefix: "other".to_owned(), expire: Some(later), ..by_tags.clone() };
    set(&store, &[by_tags, by_prefix, later]);
    let (found, report) = sweep(&store);
    assert_eq!(found, ["logs/a 0", "logs/expired 1"]);
    let expected = SweepReport {
        scanned_keys: 7,
        tag_reads: 4,
        expired_objects: 2,
        expired_bytes: 18,
        ..SweepReport::default()
    };
    assert_eq!(report, expected);
    assert_eq!(keys(&store), ["logs/b", "logs/c", "logs/d", "logs/too long", "other"]);
    assert_eq!(store.stats().lifecycle.tag_reads, 4);
}

#[test]
fn replaced_tags_decide_at_the_next_sweep_and_in_the_header() {
    let (_dir, store) = new_store();
    let later = Some(Expiry::After(Duration::from_secs(3600)));
    set(&store, &[LifecycleRule { expire: later, ..rule(&[("a", "1")]) }]);
    let info = put(&store, "key", b"bytes");
    assert_eq!(store.expiration(BUCKET, &info, &Attributes::new()).unwrap(), None);
    let found = store.expiration(BUCKET, &info, &tagged(&[("b", ""), ("a", "1")])).unwrap();
    assert_eq!(found.unwrap().1, "0");
    set(&store, &[rule(&[("a", "1")])]);
    let retag = |pairs: &[(&str, &str)]| {
        let change = |attributes: &mut Attributes| {
            attributes.set_tags(&tags(pairs));
            Ok(())
        };
        store.update_attributes(BUCKET, "key", None, &change).unwrap();
    };
    assert_eq!(sweep(&store).0, [""; 0]);
    retag(&[("a", "2")]);
    assert_eq!(sweep(&store).0, [""; 0]);
    retag(&[("a", "1")]);
    assert_eq!(sweep(&store).0, ["key 0"]);
}

/// Writers replace tags and objects during sweeps. An object whose tags a writer has replaced
/// before the sweep must stay, and so must each new object.
#[test]
fn tags_replaced_during_sweeps_are_respected() {
    let (_dir, store) = new_store();
    set(&store, &[rule(&[("class", "temp")])]);
    let key = |number: u64| format!("key {number:03}");
    for round in 0..10_u64 {
        for number in 0..60 {
            put_tagged(&store, &key(number), &[("class", "temp")]);
        }
        let kept = std::thread::scope(|scope| {
            scope.spawn(|| store.expire_now(BUCKET).unwrap());
            let retag = |number: &u64| {
                let change = |attributes: &mut Attributes| {
                    attributes.set_tags(&tags(&[("class", "kept")]));
                    Ok(())
                };
                store.update_attributes(BUCKET, &key(*number), None, &change).is_ok()
            };
            (round % 3..60).step_by(3).filter(retag).collect::<Vec<_>>()
        });
        store.compact().unwrap();
        store.expire_now(BUCKET).unwrap();
        let expected: Vec<String> = kept.into_iter().map(key).collect();
        assert_eq!(keys(&store), expected, "{round}");
        expected.iter().for_each(|key| store.delete(BUCKET, key).map(drop).unwrap());
    }
}

/// A version is expired by its own tags, and a delete marker has none.
#[test]
fn noncurrent_versions_expire_by_their_own_tags() {
    let time = Arc::new(AtomicU64::new(1_000_000));
    let dir = disk_dir();
    let options = Options { time: TimeSource::Manual(Arc::clone(&time)), ..small() };
    let (store, _) = Store::open(dir.path(), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let temporary = [("class", "temp")];
    let first = put_tagged(&store, "key", &temporary);
    put_tagged(&store, "key", &[("class", "other")]);
    let third = put_tagged(&store, "key", &temporary);
    store.delete(BUCKET, "key").unwrap();
    put_tagged(&store, "key", &temporary);
    let noncurrent = NoncurrentExpiry { after: Duration::from_millis(10), newer_versions: 0 };
    let expire_noncurrent = Some(noncurrent);
    set(&store, &[LifecycleRule { expire: None, expire_noncurrent, ..rule(&temporary) }]);
    assert_eq!(sweep(&store).1, SweepReport::default());
    time.fetch_add(10, Ordering::Relaxed);
    let (found, report) = sweep(&store);
    assert_eq!(found, [first, third].map(|id| format!("{id} 0")));
    assert_eq!((report.expired_versions, report.tag_reads), (2, 3));
    assert_eq!(sweep(&store).1.tag_reads, 1, "that of the version with other tags");
}

#[test]
fn object_whose_tags_are_damaged_is_skipped_and_counted() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    let temporary = [("class", "temp")];
    put_tagged(&store, "damaged", &temporary);
    put_tagged(&store, "whole", &temporary);
    set(&store, &[rule(&temporary)]);
    store.close().unwrap();
    let mut medium = disk.medium().cut(Survival::Everything);
    let mut volume = medium.file("volumes/0000000001.segment");
    let name = b"bucketdamaged";
    let at = volume.windows(name.len()).rposition(|window| window == name).unwrap();
    volume[at + name.len() + 6] ^= 1;
    drop(volume);
    let (store, _) = open_on(&MemoryDisk::on(&medium));
    let (found, report) = sweep(&store);
    assert_eq!(found, ["whole 0"]);
    assert_eq!((report.expired_objects, report.skipped), (1, 1));
    assert!(matches!(try_get(&store, "damaged"), Err(Error::Damaged { .. })));
    assert_eq!(store.stats().lifecycle.skipped, 1);
}

#[test]
fn day_of_another_length_applies_to_sweeps_and_leaves_the_stored_rules() {
    let time = Arc::new(AtomicU64::new(1_000_000));
    let dir = disk_dir();
    let lifecycle_day = Duration::from_secs(10);
    let options = Options { time: TimeSource::Manual(Arc::clone(&time)), lifecycle_day, ..small() };
    let (store, _) = Store::open(dir.path(), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let day = Duration::from_hours(24);
    let expire = Some(Expiry::After(day * 2));
    let aged = LifecycleRule { expire, round_up_to: day, ..rule(&[]) };
    set(&store, std::slice::from_ref(&aged));
    assert_eq!(store.lifecycle(BUCKET).unwrap().rules[0].expire, expire);
    let info = put(&store, "key", b"bytes");
    let (at, _) = store.expiration(BUCKET, &info, &Attributes::new()).unwrap().unwrap();
    assert_eq!(at, UNIX_EPOCH + day * 3, "in days of 24 hours, rounded up");
    time.fetch_add(19_999, Ordering::Relaxed);
    assert_eq!(sweep(&store).1.expired_objects, 0);
    time.fetch_add(1, Ordering::Relaxed);
    assert_eq!(sweep(&store).1.expired_objects, 1);
}

/// The tags of all objects by their keys. The content of an object is its key.
type Model = BTreeMap<String, Tags>;

/// Random objects, tags and rules: each sweep deletes exactly the objects that a rule selects by
/// key, size and tags, also after the store was compacted and reopened.
#[test]
fn random_rules_expire_what_a_model_expires() {
    let mut random = Random::from_environment();
    let (dir, mut store) = new_store();
    let mut model = Model::new();
    for round in 0..20 {
        for _ in 0..40 {
            let key = format!("{}{}", random.pick(&["a/", "b/", ""]), random.below(30));
            let key = format!("{key}{}", "x".repeat(random.index(4)));
            let tags = random_tags(&mut random);
            match model.get_mut(&key).filter(|_| random.below(2) == 0) {
                Some(present) => {
                    let change = |attributes: &mut Attributes| {
                        attributes.set_tags(&tags);
                        Ok(())
                    };
                    store.update_attributes(BUCKET, &key, None, &change).unwrap();
                    *present = tags;
                }
                None => {
                    let pairs: Vec<_> = tags.iter().map(|(k, v)| (&**k, &**v)).collect();
                    put_tagged(&store, &key, &pairs);
                    model.insert(key, tags);
                }
            }
        }
        let rules: Vec<LifecycleRule> =
            (0..random.below(4)).map(|_| random_rule(&mut random)).collect();
        set(&store, &rules);
        if random.below(3) == 0 {
            store.compact().unwrap();
        }
        if random.below(4) == 0 {
            store.close().unwrap();
            store = reopen(dir.path()).0;
        }
        let before = model.len();
        model.retain(|key, tags| !rules.iter().any(|rule| selects(rule, key, tags)));
        let (found, report) = sweep(&store);
        assert_eq!(found.len(), before - model.len(), "round {round}");
        assert!(report.tag_reads <= before as u64, "{report:?}");
        assert!(keys(&store).iter().eq(model.keys()), "round {round}: {rules:?}");
    }
}

fn random_tags(random: &mut Random) -> Tags {
    let count = random.below(3);
    let pair = |_| (random.pick(&["k", "l"]).to_string(), random.pick(&["1", "2"]).to_string());
    (0..count).map(pair).collect()
}

fn random_rule(random: &mut Random) -> LifecycleRule {
    let prefix = (*random.pick(&["", "a/", "b/", "a/1"])).to_owned();
    let expire = match random.below(4) {
        0 => Expiry::After(Duration::from_secs(3600)),
        _ => Expiry::At(UNIX_EPOCH),
    };
    LifecycleRule {
        enabled: random.below(5) > 0,
        prefix,
        bytes_greater_than: (random.below(3) == 0).then(|| random.below(8)),
        tags: random_tags(random),
        expire: Some(expire),
        ..LifecycleRule::default()
    }
}

fn selects(rule: &LifecycleRule, key: &str, tags: &Tags) -> bool {
    rule.enabled
        && matches!(rule.expire, Some(Expiry::At(_)))
        && key.starts_with(&rule.prefix)
        && rule.bytes_greater_than.is_none_or(|limit| key.len() as u64 > limit)
        && rule.tags.iter().all(|pair| tags.iter().any(|present| present == pair))
}
