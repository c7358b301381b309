//! The operations of a store, over several members.

use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    Attributes, Deletion, Error, Etag, ListEntry, ListRequest, ListUploadsRequest,
    ListVersionsRequest, Precondition, UploadListEntry, VersionListEntry, Versioning,
};

use crate::{BIG, BUCKET, check, content, fill, get, key, open, put, spread};

#[test]
fn objects_are_spread_over_all_members_and_survive_reopening_in_any_order() {
    let disk = MemoryDisk::default();
    let pool = open(&disk, 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..300);
    check(&pool, 0..300);
    let before = spread(&pool);
    // 100 on average; more than six standard deviations.
    assert!(before.iter().all(|objects| (45..=155).contains(objects)), "{before:?}");
    pool.close().unwrap();
    let pool = open(&disk, [2, 0, 1]);
    check(&pool, 0..300);
    assert_eq!(spread(&pool), before);
    assert_eq!(pool.move_progress().unwrap().keys, 0);
}

#[test]
fn listing_with_a_delimiter_has_each_prefix_once() {
    let pool = open(&MemoryDisk::default(), 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..100);
    put(&pool, "a", b"");
    let mut names = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let request = ListRequest {
            delimiter: Some("/"),
            after: after.as_deref(),
            limit: 2,
            ..ListRequest::default()
        };
        let page = pool.list(BUCKET, &request).unwrap();
        assert!(page.entries.len() == 2 || !page.more);
        names.extend(page.entries.iter().map(|entry| match entry {
            ListEntry::Object(info) => info.key.clone(),
            ListEntry::Prefix(prefix) => prefix.clone(),
        }));
        after = names.last().cloned();
        if !page.more {
            break;
        }
    }
    let dirs = (0..7).map(|number| format!("dir{number}/"));
    assert_eq!(names, std::iter::once("a".to_owned()).chain(dirs).collect::<Vec<_>>());
}

#[test]
fn deletions_in_all_members_have_results_in_the_order_of_the_requests() {
    let pool = open(&MemoryDisk::default(), 0..4);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 0..60);
    let keys: Vec<String> = (30..90).map(key).collect();
    let deletions: Vec<Deletion<'_>> = keys.iter().map(|key| Deletion::of(key)).collect();
    let syncs = pool.stats().log_syncs;
    let deleted = pool.delete_objects(BUCKET, &deletions);
    let existed: Vec<bool> = deleted.into_iter().map(|result| result.unwrap().existed).collect();
    assert_eq!(existed, (30..90).map(|number| number < 60).collect::<Vec<_>>());
    assert_eq!(pool.stats().log_syncs - syncs, 4, "one for each member");
    check(&pool, 0..30);
}

#[test]
fn copies_between_members_have_content_attributes_and_parts() {
    let pool = open(&MemoryDisk::default(), 0..4);
    pool.create_bucket(BUCKET).unwrap();
    let attributes = Attributes::from_iter([("content-type", "text/plain")]);
    let none = Precondition::None;
    pool.put(BUCKET, "small", &content(1), &attributes, &none).unwrap();
    pool.put(BUCKET, "big", &content(8), &attributes, &none).unwrap();
    let upload = pool.start_upload(BUCKET, "parts", &attributes).unwrap();
    let mut parts: Vec<(u16, Etag)> = Vec::new();
    for number in [1, 2, 5] {
        let mut writer = pool.part_writer(BUCKET, "parts", None).unwrap();
        writer.write(&content(u64::from(number) * 8)).unwrap();
        let written = writer.finish().unwrap();
        let part = pool.put_part(BUCKET, "parts", &upload, number, written, &Attributes::new());
        parts.push((number, part.unwrap().etag));
    }
    let complete =
        pool.complete_upload(BUCKET, "parts", &upload, &parts, &Attributes::new(), &none);
    complete.unwrap();
    for from in ["small", "big", "parts"] {
        let source = pool.get(BUCKET, from).unwrap();
        // With ten copies, some are in another member.
        for number in 0..10 {
            let to = format!("{from}{number}");
            pool.copy_object(&source, BUCKET, &to, None, &none).unwrap();
            let copy = pool.get(BUCKET, &to).unwrap();
            assert_eq!(get(&pool, &to).unwrap(), get(&pool, from).unwrap());
            assert_eq!((copy.info.etag, &copy.attributes), (source.info.etag, &attributes));
            assert_eq!(copy.part_bytes(), source.part_bytes());
        }
    }
    assert_eq!(pool.get(BUCKET, "parts7").unwrap().part_bytes(), [BIG as u64; 3]);
    let files = pool.stats().big_files;
    drop(pool.delete(BUCKET, "parts7"));
    assert!(pool.stats().big_files <= files);
    assert_eq!(pool.verify(&mut |_, _| {}).unwrap().damage, []);
}

#[test]
fn versions_and_uploads_are_listed_in_order_across_members() {
    let pool = open(&MemoryDisk::default(), 0..3);
    pool.create_bucket(BUCKET).unwrap();
    pool.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let mut expected = Vec::new();
    for number in 0..20 {
        let name = format!("key{number:02}");
        let ids: Vec<_> = (0..3).map(|_| put(&pool, &name, b"x").version_id).collect();
        expected.extend(ids.into_iter().rev().map(|id| (name.clone(), id)));
    }
    for limit in [1, 4, 1000] {
        let mut versions: Vec<(String, haul_file_store::VersionId)> = Vec::new();
        loop {
            let last = versions.last().cloned();
            let request = ListVersionsRequest {
                after: last.as_ref().map(|(key, _)| &**key),
                after_version: last.as_ref().map(|(_, id)| *id),
                limit,
                ..ListVersionsRequest::default()
            };
            let page = pool.list_versions(BUCKET, &request).unwrap();
            for entry in page.entries {
                let VersionListEntry::Version(version) = entry else { panic!("no delimiter") };
                let is_first = versions.last().is_none_or(|(key, _)| *key != version.info.key);
                assert_eq!(version.is_latest, is_first);
                versions.push((version.info.key, version.info.version_id));
            }
            if !page.more {
                break;
            }
        }
        assert_eq!(versions, expected);
    }
    let uploads: Vec<(String, String)> = (0..12)
        .map(|number| {
            let name = format!("key{:02}", number / 2);
            let id = pool.start_upload(BUCKET, &name, &Attributes::new()).unwrap();
            (name, id)
        })
        .collect();
    for limit in [1, 5, 1000] {
        let mut listed: Vec<(String, String)> = Vec::new();
        loop {
            let last = listed.last().cloned();
            let request = ListUploadsRequest {
                after: last.as_ref().map(|(key, _)| &**key),
                after_upload: last.as_ref().map(|(_, id)| &**id),
                limit,
                ..ListUploadsRequest::default()
            };
            let page = pool.list_uploads(BUCKET, &request).unwrap();
            listed.extend(page.entries.into_iter().map(|entry| match entry {
                UploadListEntry::Upload { key, id } => (key, id),
                UploadListEntry::Prefix(prefix) => panic!("{prefix} without a delimiter"),
            }));
            if !page.more {
                break;
            }
        }
        assert_eq!(listed, uploads);
    }
}

#[test]
fn locations_differ_between_members() {
    let pool = open(&MemoryDisk::default(), 0..3);
    pool.create_bucket(BUCKET).unwrap();
    fill(&pool, 1..8);
    let locations: Vec<_> =
        (1..8).map(|number| pool.location(BUCKET, &key(number)).unwrap()).collect();
    for (number, location) in locations.iter().enumerate() {
        assert!(!locations[..number].contains(location));
        let key = key(number as u64 + 1);
        let put = pool.put_located(BUCKET, &key, b"new", &Attributes::new(), &Precondition::None);
        assert_eq!(Some(put.unwrap().location), pool.location(BUCKET, &key));
        assert_ne!(Some(*location), pool.location(BUCKET, &key));
    }
    let absent = pool.get(BUCKET, "absent").unwrap_err();
    assert!(matches!(absent, Error::NoSuchKey { .. }), "{absent}");
}
