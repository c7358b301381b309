//! Stores an object durably, and reads it, a range of it, and the list of all keys.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_file_store::{Attributes, Options, Precondition, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let small = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default() };
    let (store, _recovered) = Store::open(dir.path(), small.clone())?;
    store.create_bucket("photos")?;
    let attributes = Attributes::from_iter([("content-type", "text/plain")]);
    store.put("photos", "a/greeting", b"hello", &attributes, &Precondition::None)?;
    // The object now survives a power cut. This one is stored only if the key is absent:
    let put = store.put("photos", "a/greeting", b"other", &attributes, &Precondition::Absent);
    assert!(put.is_err());
    store.close()?;

    let (store, recovered) = Store::open(dir.path(), small)?;
    assert!(recovered.damage.is_empty());
    let object = store.get("photos", "a/greeting")?;
    assert_eq!(&object.read(0, 100)?[..], b"hello");
    assert_eq!(&store.get_range("photos", "a/greeting", 1, 3)?[..], b"ell");
    println!("{} bytes of {:?}", object.info.bytes, object.attributes.get("content-type"));
    Ok(store.close()?)
}
