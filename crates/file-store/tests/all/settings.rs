//! The settings of buckets.

use std::sync::Arc;

use haul_file_store::{Attributes, Error, Expiry, Lifecycle, LifecycleRule};

use crate::*;

fn settings(store: &Store, bucket: &str) -> Vec<(String, String)> {
    let settings = store.bucket_settings(bucket).unwrap();
    settings.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn settings_and_rules_of_a_bucket_do_not_affect_each_other() {
    let (dir, mut store) = new_store();
    let rule = LifecycleRule {
        id: "id".to_owned(),
        enabled: true,
        expire: Some(Expiry::After(Duration::from_hours(24))),
        ..LifecycleRule::default()
    };
    let rules = Lifecycle { rules: vec![rule] };
    store.create_bucket_with("other", &Attributes::from_iter([("owner", "ann")]).into()).unwrap();
    store.set_lifecycle("other", &rules).unwrap();
    store.set_bucket_setting("other", "policy", Some("{}")).unwrap();
    let both = [("owner", "ann"), ("policy", "{}")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    for _ in 0..2 {
        assert_eq!(settings(&store, "other"), both);
        assert_eq!(store.lifecycle("other").unwrap(), rules);
        store.close().unwrap();
        store = reopen(dir.path()).0;
    }
    store.set_lifecycle("other", &Lifecycle::default()).unwrap();
    assert_eq!(settings(&store, "other"), both);
    store.set_bucket_setting("other", "policy", None).unwrap();
    assert_eq!(settings(&store, "other"), both[..1]);
    assert_eq!(settings(&store, BUCKET), []);
    store.delete_bucket("other").unwrap();
    assert!(matches!(store.bucket_settings("other"), Err(Error::NoSuchBucket { .. })));
    store.create_bucket("other").unwrap();
    assert_eq!(settings(&store, "other"), [], "a new bucket of the same name");
}

#[test]
fn creation_time_of_a_bucket_stays() {
    let (_dir, store) = new_store();
    let created = store.bucket(BUCKET).unwrap().created;
    store.set_bucket_setting(BUCKET, "name", Some("value")).unwrap();
    assert_eq!(store.bucket(BUCKET).unwrap().created, created);
}

#[test]
fn repeated_reads_return_the_same_settings() {
    let (_dir, store) = new_store();
    store.set_bucket_setting(BUCKET, "name", Some("value")).unwrap();
    let first = store.bucket_settings(BUCKET).unwrap();
    assert!(Arc::ptr_eq(&first, &store.bucket_settings(BUCKET).unwrap()));
    store.set_bucket_setting(BUCKET, "name", Some("value")).unwrap();
    assert!(!Arc::ptr_eq(&first, &store.bucket_settings(BUCKET).unwrap()));
}

#[test]
fn invalid_settings_are_refused() {
    let (_dir, store) = new_store();
    for (name, value) in [("name", "x".repeat(64 << 10)), ("lifecycle.0000.id", "x".to_owned())] {
        let set = store.set_bucket_setting(BUCKET, name, Some(&value));
        assert!(matches!(set, Err(Error::Invalid { .. })), "{name}");
        let given = Attributes::from_iter([(name, value)]);
        let created = store.create_bucket_with("other", &given.into());
        assert!(matches!(created, Err(Error::Invalid { .. })), "{name}");
    }
    assert!(matches!(store.bucket("other"), Err(Error::NoSuchBucket { .. })));
    let missing = store.set_bucket_setting("missing", "name", Some("x"));
    assert!(matches!(missing, Err(Error::NoSuchBucket { .. })));
}
