//! A store that is opened for reading only.

use haul_file_store::{Attributes, Error, Options, Precondition, Store};

use crate::{BIG, BUCKET, file_names, get, new_store, put, random_bytes, small};

#[test]
fn changes_are_refused_and_reads_work() {
    let (dir, store) = new_store();
    let big = random_bytes(1, BIG + 1);
    put(&store, "small", b"content");
    put(&store, "big", &big);
    let upload = store.start_upload(BUCKET, "upload", &Attributes::new()).unwrap();
    store.close().unwrap();

    let options = Options { is_read_only: true, ..small() };
    let (store, _) = Store::open(dir.path(), options.clone()).unwrap();
    let none = Attributes::new();
    let always = Precondition::None;
    let copy = (BUCKET, "small");
    let outcomes = [
        ("put", store.put(BUCKET, "new", b"", &none, &always).map(drop)),
        ("big put", store.put(BUCKET, "new", &big, &none, &always).map(drop)),
        ("start_put", store.start_put(BUCKET, "new", b"", &none, &always).map(drop)),
        ("copy", store.copy(copy, (BUCKET, "new"), None, &always).map(drop)),
        ("delete", store.delete(BUCKET, "small").map(drop)),
        ("create_bucket", store.create_bucket("another-bucket")),
        ("start_upload", store.start_upload(BUCKET, "new", &none).map(drop)),
        ("abort_upload", store.abort_upload(BUCKET, "upload", &upload)),
        ("compact", store.compact().map(drop)),
        ("accept_damage", store.accept_damage().map(drop)),
    ];
    for (call, outcome) in outcomes {
        assert!(matches!(outcome, Err(Error::ReadOnly)), "{call}: {outcome:?}");
    }
    assert_eq!(get(&store, "small"), b"content");
    assert_eq!(get(&store, "big"), big);
    assert_eq!(store.stats().objects, 2);
    store.close().unwrap();

    // The files of refused big objects were removed, and the store can be written again.
    let files = || file_names(&dir.path().join("objects")).len();
    assert_eq!(files(), 1);
    let (store, report) = Store::open(dir.path(), small()).unwrap();
    assert!(report.damage.is_empty() && !report.after_crash);
    put(&store, "new", b"more");
    assert_eq!(store.stats().objects, 3);
}
