//! Conditional deletions.

use haul_file_store::{Deleted, Deletion, Error, ObjectInfo, Result};

use crate::{BUCKET, get, new_store, put, reopen};

#[test]
fn deletion_whose_condition_fails_keeps_the_object() {
    let (dir, store) = new_store();
    ["a", "b", "c"].into_iter().for_each(|key| drop(put(&store, key, b"bytes")));
    let (never, has_five_bytes) = (|_: &ObjectInfo| false, |info: &ObjectInfo| info.bytes == 5);
    let deletion = |key, condition| Deletion { condition: Some(condition), ..Deletion::of(key) };
    let outcomes = store.delete_objects(
        BUCKET,
        &[
            deletion("a", &never),
            deletion("b", &has_five_bytes),
            deletion("missing", &never),
            Deletion::of("c"),
            deletion("b", &never),
            deletion("a", &never),
            deletion("a", &has_five_bytes),
        ],
    );
    let refused = |outcome: &Result<Deleted>| matches!(outcome, Err(Error::PreconditionFailed));
    assert_eq!(
        outcomes.iter().map(refused).collect::<Vec<_>>(),
        [true, false, false, false, false, true, false]
    );
    let deleted: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().is_ok_and(|deleted| deleted.existed))
        .collect();
    assert_eq!(deleted, [false, true, false, true, false, false, true]);
    put(&store, "d", b"bytes");
    assert!(store.delete_objects(BUCKET, &[deletion("d", &never)])[0].is_err());
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.bucket(BUCKET).unwrap().objects, 1);
    assert!(get(&store, "d") == b"bytes");
}
