//! Tests copies of versions, delete markers and locks.

use haul_s3_copy::Options;
use haul_testing::noise;

use crate::server::{Running, copy, copy_some, options};

const LOCK: &str = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>\
    <Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule>\
    </ObjectLockConfiguration>";

/// Fills a bucket with versions and one with locks.
fn fill(server: &Running) {
    let s3 = server.s3;
    s3.put("/versions", b"");
    s3.put("/versions/before", b"before versioning");
    s3.enable_versioning("versions");
    for round in 0..3_u64 {
        for number in 0..400 {
            s3.put(&format!("/versions/k{number:03}"), &noise(1000 * round + number, 20));
        }
    }
    for key in ["k001", "k002", "never-stored"] {
        s3.ok("DELETE", &format!("/versions/{key}"), &[], b"");
    }
    s3.put("/versions/k002", b"again");
    s3.put_parts("/versions/k003", &[("x-amz-tagging", "a=b")], &[noise(1, 5 << 20), noise(2, 9)]);
    s3.put("/versions/k003", b"small again");
    s3.ok("PUT", "/locked", &[("x-amz-bucket-object-lock-enabled", "true")], b"");
    let retained = [
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-object-lock-retain-until-date", "2037-01-01T00:00:00Z"),
        ("x-amz-object-lock-legal-hold", "ON"),
    ];
    s3.put("/locked/free", b"not locked");
    s3.ok("PUT", "/locked/retained", &retained, b"retained");
    s3.put_parts("/locked/parts", &retained[..2], &[noise(3, 5 << 20), noise(4, 5)]);
    s3.put("/locked?object-lock", LOCK.as_bytes());
}

fn assert_equal(from: &Running, to: &Running) {
    for bucket in ["versions", "locked"] {
        let (ours, theirs) = (from.s3.everything(bucket), to.s3.everything(bucket));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn versions_markers_and_locks_are_copied_in_order() {
    let (from, to) = (Running::new(), Running::new());
    fill(&from);
    let options = options(&from, &to);
    let first = copy(&options);
    assert_eq!((first.objects, first.versions), (405, 1210));
    assert_eq!((first.different, first.verified_by_length), (0, 0));
    assert_eq!(first.not_carried, []);
    assert_equal(&from, &to);
    let second = copy(&options);
    assert_eq!((second.objects, second.skipped, second.different), (0, 405, 0));

    from.s3.put("/versions/k100", b"new version");
    from.s3.ok("DELETE", "/versions/k101", &[], b"");
    from.s3.put("/versions/new", b"new key");
    let third = copy(&options);
    assert_eq!((third.objects, third.versions, third.skipped), (3, 3, 403));
    assert_equal(&from, &to);
}

#[test]
fn a_copy_that_was_cut_is_continued() {
    let (from, to) = (Running::new(), Running::new());
    fill(&from);
    let mut options = options(&from, &to);
    let mut versions = 0;
    for objects in [1, 50, 100] {
        let (summary, _) = copy_some(&options, objects);
        assert!(summary.is_stopped && summary.failed == 0, "{summary:?}");
        versions += summary.versions;
    }
    // A key of which only the first versions were copied, as by a process that was killed.
    let oldest = from.s3.ok("GET", "/versions?versions&prefix=k399", &[], b"");
    let id = crate::server::values(oldest.text(), "VersionId").pop().unwrap();
    let first = from.s3.ok("GET", &format!("/versions/k399?versionId={id}"), &[], b"");
    to.s3.put("/versions/k399", &first.body);
    options.jobs = 3;
    let rest = copy(&options);
    assert_eq!(versions + rest.versions + 1, 1210);
    assert_eq!(rest.different, 0);
    assert_equal(&from, &to);
}

#[test]
fn other_versions_are_reported_and_left_alone() {
    let (from, to) = (Running::new(), Running::new());
    from.s3.put("/b-1", b"");
    from.s3.enable_versioning("b-1");
    to.s3.put("/b-1", b"");
    to.s3.enable_versioning("b-1");
    for key in ["a", "b", "c"] {
        from.s3.put(&format!("/b-1/{key}"), b"1");
    }
    to.s3.put("/b-1/b", b"2");
    to.s3.put("/b-1/c", b"1");
    to.s3.put("/b-1/c", b"1");
    let before = to.s3.everything("b-1");
    let (summary, lines) = copy_some(&Options { delete: true, ..options(&from, &to) }, u64::MAX);
    assert_eq!((summary.objects, summary.different, summary.deleted), (1, 2, 0), "{lines:?}");
    let after = to.s3.everything("b-1");
    assert!(before.iter().all(|line| after.contains(line)) && after.len() == before.len() + 1);
}

#[test]
fn versioning_that_is_suspended_is_suspended_again() {
    let (from, to) = (Running::new(), Running::new());
    from.s3.put("/b-1", b"");
    from.s3.put("/b-1/k", b"1");
    from.s3.enable_versioning("b-1");
    from.s3.put("/b-1/k", b"2");
    let xml = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    from.s3.put("/b-1?versioning", xml.as_bytes());
    from.s3.put("/b-1/other", b"3");
    let options = options(&from, &to);
    assert_eq!(copy(&options).versions, 3);
    let found = to.s3.ok("GET", "/b-1?versioning", &[], b"");
    assert!(found.text().contains("Suspended"));
    let (second, events) = copy_some(&options, u64::MAX);
    assert_eq!((second.versions, events), (0, Vec::new()));
    assert_eq!(from.s3.everything("b-1").len(), to.s3.everything("b-1").len());
}
