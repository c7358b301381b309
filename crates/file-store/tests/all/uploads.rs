//! Multipart uploads.

use haul_file_store::{Attributes, Error, Etag, Precondition, Store};

use crate::{
    BUCKET, big_files, content, dump, new_store, put, put_part, random_bytes, reopen, uploads_of,
};

const KEY: &str = "a/key";

fn start(store: &Store) -> String {
    store.start_upload(BUCKET, KEY, &Attributes::from_iter([("a", "1"), ("b", "1")])).unwrap()
}

fn complete(
    store: &Store,
    upload: &str,
    parts: &[(u16, Etag)],
) -> haul_file_store::Result<haul_file_store::ObjectInfo> {
    let extra = Attributes::from_iter([("b", "2")]);
    store.complete_upload(BUCKET, KEY, upload, parts, &extra, &Precondition::None)
}

fn part(number: u16) -> Vec<u8> {
    random_bytes(number.into(), [0, 1, 5000, 131_072, 200_001][usize::from(number) % 5])
}

#[test]
fn parts_are_stored_in_any_order_and_assembled_by_number() {
    let (dir, store) = new_store();
    let upload = start(&store);
    let mut parts: Vec<(u16, Etag)> = [7, 3, 10_000, 1, 4, 2]
        .into_iter()
        .map(|number| put_part(&store, KEY, &upload, number, &part(number)))
        .collect();
    parts.sort_unstable_by_key(|(number, _)| *number);
    let known: Vec<u16> =
        store.parts(BUCKET, KEY, &upload).unwrap().iter().map(|part| part.number).collect();
    assert_eq!(known, [1, 2, 3, 4, 7, 10_000]);
    assert!(store.stat(BUCKET, KEY).is_err(), "the object is not visible before completion");

    let info = complete(&store, &upload, &parts).unwrap();
    let expected: Vec<u8> = parts.iter().flat_map(|(number, _)| part(*number)).collect();
    assert_eq!((info.bytes, info.etag.parts), (expected.len() as u64, 6));
    for reopened in [false, true] {
        let store = if reopened { &reopen_after(dir.path()) } else { &store };
        let object = store.get(BUCKET, KEY).unwrap();
        assert!(content(&object).unwrap() == expected);
        assert_eq!(
            object.part_bytes(),
            parts.iter().map(|p| part(p.0).len() as u64).collect::<Vec<_>>()
        );
        assert_eq!(object.attributes, Attributes::from_iter([("a", "1"), ("b", "2")]));
        assert_eq!(object.info.etag, info.etag);
        if !reopened {
            let again = complete(store, &upload, &parts);
            assert!(matches!(again, Err(Error::NoSuchUpload { .. })));
        }
    }
    assert_eq!(big_files(dir.path()).len(), 6);
}

/// Opens a copy, because the store itself is still open.
fn reopen_after(dir: &std::path::Path) -> Store {
    let copy = crate::sample::copy_of(dir);
    let store = reopen(copy.path()).0;
    // The directory must outlive the store; it is in cargo's directory for tests.
    std::mem::forget(copy);
    store
}

#[test]
fn etag_is_that_of_s3() {
    let (_dir, store) = new_store();
    let upload = start(&store);
    let parts =
        [put_part(&store, KEY, &upload, 1, b"hello "), put_part(&store, KEY, &upload, 2, b"world")];
    // md5(md5("hello ") + md5("world")).
    let etag = complete(&store, &upload, &parts).unwrap().etag;
    assert_eq!(
        etag.to_string(),
        "1b8e4b6a1e5d5d6f7a-2".replace("1b8e4b6a1e5d5d6f7a", &md5_of_md5s())
    );
}

fn md5_of_md5s() -> String {
    use md5::{Digest, Md5};
    let mut both = Md5::digest(b"hello ").to_vec();
    both.extend_from_slice(&Md5::digest(b"world"));
    Md5::digest(both).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn copy_of_an_object_in_parts_can_be_in_one_piece() {
    use md5::{Digest, Md5};
    let (dir, store) = new_store();
    let upload = start(&store);
    let parts =
        [put_part(&store, KEY, &upload, 1, b"hello "), put_part(&store, KEY, &upload, 2, b"world")];
    complete(&store, &upload, &parts).unwrap();
    let mut object = store.get(BUCKET, KEY).unwrap();
    assert_eq!(object.part_bytes(), [6, 5]);
    let etag = Etag { md5: Md5::digest(b"hello world").into(), parts: 0 };
    object.info.etag = etag;
    store.copy_object(&object, BUCKET, "copy", None, &Precondition::None).unwrap();
    assert_eq!(big_files(dir.path()).len(), 2, "both objects have the same files");
    let store = reopen_after(dir.path());
    let copied = store.get(BUCKET, "copy").unwrap();
    assert_eq!((copied.info.etag, copied.part_bytes()), (etag, vec![11]));
    assert_eq!(crate::get(&store, "copy"), b"hello world");
}

#[test]
fn part_can_be_replaced() {
    let (dir, store) = new_store();
    let upload = start(&store);
    let first = put_part(&store, KEY, &upload, 1, b"first");
    let second = put_part(&store, KEY, &upload, 1, b"second");
    assert_eq!(big_files(dir.path()).len(), 1, "the file of the first part is removed");
    let wrong = complete(&store, &upload, &[first]);
    assert!(matches!(wrong, Err(Error::InvalidPart { number: 1, .. })));
    complete(&store, &upload, &[second]).unwrap();
    assert_eq!(crate::get(&store, KEY), b"second");
}

#[test]
fn invalid_lists_of_parts_are_refused_without_effect() {
    let (_dir, store) = new_store();
    let upload = start(&store);
    let one = put_part(&store, KEY, &upload, 1, b"one");
    let three = put_part(&store, KEY, &upload, 3, b"three");
    let refused = |parts: &[(u16, Etag)]| {
        matches!(complete(&store, &upload, parts), Err(Error::InvalidPart { .. }))
    };
    assert!(refused(&[]), "no parts");
    assert!(refused(&[three, one]), "out of order");
    assert!(refused(&[one, one]), "twice");
    assert!(refused(&[one, (2, one.1)]), "a missing part");
    assert!(refused(&[(1, three.1)]), "another ETag");
    for number in [0, 10_001] {
        let mut writer = store.part_writer(BUCKET, None).unwrap();
        writer.write(b"x").unwrap();
        let written = writer.finish().unwrap();
        let put = store.put_part(BUCKET, KEY, &upload, number, written, &Attributes::new());
        assert!(matches!(put, Err(Error::InvalidPart { .. })));
    }
    let elsewhere = store.upload(BUCKET, "another key", &upload);
    assert!(matches!(elsewhere, Err(Error::NoSuchUpload { .. })));
    for id in ["", "x", &upload.to_uppercase(), &format!("+{}", &upload[1..])] {
        let unknown = store.upload(BUCKET, KEY, id);
        assert!(id == upload || matches!(unknown, Err(Error::NoSuchUpload { .. })), "{id}");
    }
    complete(&store, &upload, &[one, three]).unwrap();
    assert_eq!(crate::get(&store, KEY), b"onethree", "gaps are allowed");
}

#[test]
fn completion_removes_unlisted_parts_and_abortion_all() {
    let (dir, store) = new_store();
    let upload = start(&store);
    let parts: Vec<_> = (1..=5).map(|n| put_part(&store, KEY, &upload, n, &part(n))).collect();
    let another = start(&store);
    put_part(&store, KEY, &another, 1, b"another");
    assert_eq!((big_files(dir.path()).len(), store.stats().uploads), (6, 2));
    complete(&store, &upload, &parts[1..3]).unwrap();
    assert_eq!((big_files(dir.path()).len(), store.stats().uploads), (3, 1));
    store.abort_upload(BUCKET, KEY, &another).unwrap();
    assert_eq!((big_files(dir.path()).len(), store.stats().uploads), (2, 0));
    let gone = store.abort_upload(BUCKET, KEY, &another);
    assert!(matches!(gone, Err(Error::NoSuchUpload { .. })));
    store.delete(BUCKET, KEY).unwrap();
    assert!(big_files(dir.path()).is_empty());
}

#[test]
fn uploads_to_a_key_are_listed_in_the_order_of_their_starts() {
    let (dir, store) = new_store();
    let mut started: Vec<String> = (0..20).map(|_| start(&store)).collect();
    for reopened in [false, true] {
        let store = if reopened { &reopen_after(dir.path()) } else { &store };
        // The pages of this listing begin after an upload to the same key.
        let listed = uploads_of(store, BUCKET).unwrap();
        assert_eq!(listed.iter().map(|upload| &*upload.id).collect::<Vec<_>>(), started);
        assert!(listed.is_sorted_by_key(|upload| upload.started));
    }
    store.abort_upload(BUCKET, KEY, &started.remove(10)).unwrap();
    let listed = uploads_of(&store, BUCKET).unwrap();
    assert_eq!(listed.into_iter().map(|upload| upload.id).collect::<Vec<_>>(), started);
}

#[test]
fn precondition_is_tested_at_completion() {
    let (_dir, store) = new_store();
    let upload = start(&store);
    let one = put_part(&store, KEY, &upload, 1, b"one");
    put(&store, KEY, b"meanwhile");
    let none = Attributes::new();
    let attempt = |precondition: &Precondition| {
        store.complete_upload(BUCKET, KEY, &upload, &[one], &none, precondition)
    };
    assert!(matches!(attempt(&Precondition::Absent), Err(Error::PreconditionFailed)));
    attempt(&Precondition::Present).unwrap();
}

#[test]
fn upload_continues_after_a_restart_and_after_compaction() {
    let (dir, store) = new_store();
    let upload = start(&store);
    let mut parts = vec![put_part(&store, KEY, &upload, 1, &part(1))];
    let mut store = store;
    for number in 2..8 {
        // Fills volumes, so that the needles of the upload are moved.
        for round in 0..100 {
            put(&store, "filler", &random_bytes(round, 60_000));
        }
        store.compact().unwrap();
        parts.push(put_part(&store, KEY, &upload, number, &part(number)));
        if number % 2 == 0 {
            store.close().unwrap();
        } else {
            drop(store);
        }
        store = reopen(dir.path()).0;
        let uploads = uploads_of(&store, BUCKET).unwrap();
        assert_eq!((uploads.len(), &uploads[0].id, uploads[0].key.as_str()), (1, &upload, KEY));
    }
    assert!(store.stats().volumes_compacted > 0 || store.stats().volumes < 4);
    complete(&store, &upload, &parts).unwrap();
    let expected: Vec<u8> = (1..8).flat_map(part).collect();
    store.compact().unwrap();
    let before = dump(&store);
    assert!(before[BUCKET][KEY].0 == expected);
    drop(store);
    let (store, recovered) = reopen(dir.path());
    assert_eq!((recovered.orphans_removed, store.stats().uploads), (0, 0));
    assert!(dump(&store) == before);
}

#[test]
fn object_may_have_very_many_parts() {
    const PARTS: u16 = 600;
    let (dir, store) = new_store();
    let upload = start(&store);
    let parts: Vec<(u16, Etag)> = std::thread::scope(|scope| {
        let uploading: Vec<_> = (0..8)
            .map(|thread| {
                let (store, upload) = (&store, &upload);
                let mine = (1..=PARTS).filter(move |number| number % 8 == thread);
                let put = move |n: u16| put_part(store, KEY, upload, n, &n.to_le_bytes());
                scope.spawn(move || mine.map(put).collect::<Vec<_>>())
            })
            .collect();
        let mut parts: Vec<_> =
            uploading.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        parts.sort_unstable_by_key(|(number, _)| *number);
        parts
    });
    complete(&store, &upload, &parts).unwrap();
    store.copy((BUCKET, KEY), (BUCKET, "copy"), None, &Precondition::None).unwrap();
    store.delete(BUCKET, KEY).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    let expected: Vec<u8> = (1..=PARTS).flat_map(u16::to_le_bytes).collect();
    assert_eq!(crate::get(&store, "copy"), expected);
    assert_eq!(big_files(dir.path()).len(), usize::from(PARTS));
    assert_eq!(store.stats().big_files, u64::from(PARTS));
}

#[test]
fn mark_of_encoded_content_survives_copies_and_reopening() {
    let (dir, store) = new_store();
    let none = (Attributes::new(), Precondition::None);
    let written = |bytes: &[u8]| {
        let mut writer = store.part_writer(BUCKET, None).unwrap();
        writer.write(bytes).unwrap();
        writer.finish().unwrap().encoded([7; 16])
    };
    let stored = store.put_written(BUCKET, "one", written(b"encoded"), &none.0, &none.1).unwrap();
    assert_eq!((stored.bytes, stored.etag.md5), (7, [7; 16]));
    assert!(stored.etag.is_encoded() && stored.etag.part_count() == 0);
    let upload = start(&store);
    let part = store.put_part(BUCKET, KEY, &upload, 3, written(b"part"), &none.0).unwrap();
    assert!(part.etag.is_encoded());
    let listed = part.etag.to_string().parse().unwrap();
    complete(&store, &upload, &[(3, listed)]).unwrap();
    store.copy((BUCKET, KEY), (BUCKET, "copy"), None, &none.1).unwrap();
    // A condition has the text of an ETag, without the mark.
    let condition = Precondition::Matches(stored.etag.to_string().parse().unwrap());
    store.copy((BUCKET, "one"), (BUCKET, "one"), Some(&none.0), &condition).unwrap();
    put(&store, "plain", b"as it is");
    for reopened in [false, true] {
        let store = if reopened { &reopen_after(dir.path()) } else { &store };
        for (key, parts, is_encoded) in
            [("one", 0, true), (KEY, 1, true), ("copy", 1, true), ("plain", 0, false)]
        {
            let etag = store.stat(BUCKET, key).unwrap().etag;
            assert_eq!((etag.part_count(), etag.is_encoded()), (parts, is_encoded), "{key}");
        }
        assert_eq!(content(&store.get(BUCKET, "copy").unwrap()).unwrap(), b"part");
    }
}
