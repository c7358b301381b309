//! Tests for the table of quotas.

use super::*;

impl Totals for BTreeMap<String, Usage> {
    fn usage(&self, bucket: &str) -> Usage {
        self.get(bucket).copied().unwrap_or_default()
    }
}

fn usage(bytes: u64, objects: u64) -> Usage {
    Usage { bytes, objects }
}

fn quota(bytes: u64, objects: u64) -> Quota {
    Quota { bytes: Some(bytes), objects: Some(objects) }
}

/// Returns the index totals of buckets with this usage.
fn totals(buckets: &[(&str, Usage)]) -> BTreeMap<String, Usage> {
    buckets.iter().map(|(name, usage)| ((*name).to_owned(), *usage)).collect()
}

fn limited(buckets: &[(&str, Quota)]) -> Arc<Quotas> {
    let quotas = Arc::new(Quotas::new(true));
    for (bucket, quota) in buckets {
        quotas.set_bucket(bucket, Limit::Known(*quota));
    }
    quotas
}

/// Returns the unit and the usage of the limit that rejects a write.
fn exceeded(outcome: Result<Reserved>) -> (&'static str, u64) {
    match outcome {
        Err(Error::QuotaExceeded(QuotaExceeded::Bucket { unit, used, .. })) => (unit, used),
        other => panic!("{other:?}"),
    }
}

#[test]
fn stored_and_reserved_together_stay_within_the_limits() {
    let (totals, quotas) = (totals(&[("b", usage(70, 1))]), limited(&[("b", quota(100, 4))]));
    let reserve = |bytes| quotas.reserve(&totals, "b", usage(bytes, 1));
    assert_eq!(exceeded(reserve(31)), (BYTES, 70));
    let first = reserve(20).unwrap();
    assert_eq!(exceeded(reserve(11)), (BYTES, 90));
    let second = reserve(10).unwrap();
    let third = reserve(0).unwrap();
    assert_eq!(exceeded(reserve(0)), (OBJECTS, 4));
    drop(third);
    drop(first);
    let again = reserve(20).unwrap();
    assert_eq!(exceeded(reserve(1)), (BYTES, 100));
    drop((second, again));
    assert!(reserve(30).is_ok());
    assert_eq!(quotas.refusals(), 4);
}

#[test]
fn reservation_counts_for_a_quota_that_the_bucket_gets_meanwhile() {
    let (totals, quotas) = (totals(&[]), limited(&[]));
    quotas.set_owners(&BTreeMap::from([("alice".to_owned(), quota(1000, 10))]));
    quotas.set_owner("b", Some("alice"));
    let first = quotas.reserve(&totals, "b", usage(70, 1)).unwrap();
    quotas.set_bucket("b", Limit::Known(quota(100, 4)));
    assert_eq!(exceeded(quotas.reserve(&totals, "b", usage(31, 1))), (BYTES, 70));
    let second = quotas.reserve(&totals, "b", usage(30, 1)).unwrap();
    drop(first);
    assert_eq!(exceeded(quotas.reserve(&totals, "b", usage(71, 1))), (BYTES, 30));
    drop(second);
    assert!(quotas.reserve(&totals, "b", usage(100, 1)).is_ok());
}

#[test]
fn bucket_above_its_quota_takes_only_what_adds_nothing() {
    let (totals, quotas) = (totals(&[("b", usage(200, 9))]), limited(&[("b", quota(100, 9))]));
    assert!(quotas.check(&totals, "b", usage(0, 0)).is_ok());
    assert!(quotas.check(&totals, "b", usage(1, 0)).is_err());
    assert!(quotas.check(&totals, "b", usage(0, 1)).is_err());
    quotas.set_bucket("b", Limit::Known(Quota { bytes: Some(100), objects: None }));
    assert!(quotas.check(&totals, "b", usage(0, 1)).is_ok());
    assert!(quotas.is_any());
    quotas.set_bucket("b", Limit::Known(Quota::default()));
    assert!(!quotas.is_any() && quotas.check(&totals, "b", usage(u64::MAX, 1)).is_ok());
}

#[test]
fn copy_of_a_replaced_object_counts_once_until_the_write_is_applied() {
    let quotas = limited(&[("b", quota(100, 9))]);
    let before = totals(&[("b", usage(60, 1))]);
    let main = quotas.reserve(&before, "b", usage(30, 1)).unwrap();
    let copied = totals(&[("b", usage(120, 2))]);
    main.copy(60).applied();
    assert_eq!(quotas.bucket(&copied, "b").unwrap().usage, usage(60, 1));
    assert_eq!(exceeded(quotas.reserve(&copied, "b", usage(11, 1))), (BYTES, 90));
    assert!(quotas.reserve(&copied, "b", usage(10, 1)).is_ok());
    main.applied();
    let after = totals(&[("b", usage(90, 2))]);
    assert_eq!(quotas.bucket(&after, "b").unwrap().usage, usage(90, 2));
    assert!(quotas.reserve(&after, "b", usage(10, 1)).is_ok());
    // A copy whose write fails is stored, and one that is not stored does not count.
    for is_stored in [true, false] {
        let main = quotas.reserve(&before, "b", usage(30, 1)).unwrap();
        let copy = main.copy(60);
        drop(main);
        if is_stored {
            copy.applied();
            assert_eq!(quotas.bucket(&copied, "b").unwrap().usage, usage(120, 2));
        } else {
            drop(copy);
        }
        assert_eq!(quotas.bucket(&before, "b").unwrap().usage, usage(60, 1));
        assert!(quotas.reserve(&before, "b", usage(40, 1)).is_ok());
    }
}

#[test]
fn owner_is_limited_in_all_buckets_together() {
    let totals = totals(&[("a", usage(40, 1)), ("b", usage(50, 1)), ("c", usage(900, 9))]);
    let quotas = limited(&[]);
    let owners = BTreeMap::from([("ann".to_owned(), quota(100, 9))]);
    assert_eq!(quotas.set_owners(&owners), ["ann"]);
    for (bucket, owner) in [("a", Some("ann")), ("b", Some("ann")), ("c", Some("ben"))] {
        quotas.set_owner(bucket, owner);
    }
    let error = quotas.reserve(&totals, "a", usage(11, 1)).unwrap_err().to_string();
    assert!(error.contains("\"ann\"") && !error.contains("90"), "{error}");
    let held = quotas.reserve(&totals, "a", usage(10, 1)).unwrap();
    assert!(quotas.reserve(&totals, "b", usage(1, 1)).is_err());
    assert!(quotas.reserve(&totals, "c", usage(1000, 1)).is_ok());
    drop(held);
    quotas.forget("a");
    assert!(quotas.reserve(&totals, "b", usage(50, 1)).is_ok());
    assert!(quotas.reserve(&totals, "a", usage(500, 1)).is_ok(), "it is another bucket");
    assert!(quotas.set_owners(&BTreeMap::new()).is_empty());
    assert!(!quotas.is_any() && quotas.owners(&totals).is_empty());
}

#[test]
fn reservation_covers_its_bucket_until_quotas_change() {
    let (totals, quotas) = (totals(&[]), limited(&[("b", quota(100, 9))]));
    let held = quotas.reserve(&totals, "b", usage(10, 1)).unwrap();
    assert!(held.covers("b", usage(10, 1)) && held.covers("b", usage(9, 0)));
    assert!(!held.covers("b", usage(11, 1)) && !held.covers("c", usage(10, 1)));
    assert!(!Reserved::nothing().covers("b", usage(0, 0)));
    quotas.set_bucket("c", Limit::Known(quota(1, 1)));
    assert!(!held.covers("b", usage(10, 1)));
    // What was reserved stays reserved when the quota is removed and set again.
    quotas.forget("b");
    quotas.set_bucket("b", Limit::Known(quota(10, 9)));
    assert!(quotas.reserve(&totals, "b", usage(1, 1)).is_err());
    drop(held);
    assert!(quotas.reserve(&totals, "b", usage(10, 1)).is_ok());
}

#[test]
fn unreadable_quota_rejects_all_writes() {
    let (totals, quotas) = (totals(&[]), limited(&[]));
    let (file, what) = (PathBuf::from("v1"), "checksum".to_owned());
    quotas.set_bucket("b", Limit::Damaged { file, offset: 7, what });
    let refused = quotas.reserve(&totals, "b", usage(0, 0));
    assert!(matches!(refused, Err(Error::Damaged { offset: 7, .. })), "{refused:?}");
    assert!(quotas.reserve(&totals, "c", usage(1, 1)).is_ok());
    quotas.set_bucket("b", Limit::Known(Quota::default()));
    assert!(quotas.reserve(&totals, "b", usage(1, 1)).is_ok() && !quotas.is_any());
}

#[test]
fn quotas_that_are_not_enforced_are_known() {
    let quotas = Arc::new(Quotas::new(false));
    quotas.set_bucket("b", Limit::Known(quota(1, 1)));
    assert!(!quotas.is_any());
    assert_eq!(quotas.bucket(&totals(&[]), "b").unwrap().quota, quota(1, 1));
}
