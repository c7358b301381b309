use proptest::prelude::*;

use super::*;

fn head() -> Head {
    Head {
        kind: Kind::Object,
        version: Version(0x0102_0304_0506_0708),
        bucket: "photos".to_owned(),
        key: "cat.jpg".to_owned(),
        bytes: 5,
        etag: Etag { md5: *b"0123456789abcdef", parts: 0 },
        part: 0,
        upload: 0,
        is_versioned: false,
        files: Vec::new(),
        blocks: Box::default(),
    }
}

/// Returns the head of an object with two block checksums.
fn head_with_blocks() -> Head {
    let blocks = block_checksums(&[7; BLOCK_BYTES + 1]);
    Head { bytes: BLOCK_BYTES as u64 + 1, blocks, ..head() }
}

/// Updates the checksum of a changed head.
fn seal(head: &mut [u8]) {
    let checksum = haul_crc::crc32c(&head[4..]);
    head[..4].copy_from_slice(&checksum.to_le_bytes());
}

fn malformed(bytes: &[u8]) -> Option<&'static str> {
    match Needle::decode(bytes) {
        Err(NeedleError::Malformed(what)) => Some(what),
        _ => None,
    }
}

#[test]
fn worked_example_of_the_format_page_is_correct() {
    let page = include_str!("../../FORMAT.md");
    let attributes = Attributes::from_iter([("content-type", "image/jpeg")]);
    let mut needle = head().encode(&attributes);
    needle.extend_from_slice(b"meow!");
    let example = haul_testing::docs::hex_example(page);
    assert_eq!(example, needle, "got {needle:02x?}");
}

#[test]
fn small_object_has_a_head_of_34_bytes_and_its_names() {
    let head = head();
    assert_eq!(head.head_bytes(), 34 + "photoscat.jpg".len());
    assert_eq!(Head { bytes: 10_000, ..head }.head_bytes(), 35 + "photoscat.jpg".len());
    let (bytes, etag) = (0, Etag { md5: [0; 16], parts: 0 });
    let tombstone = Head { kind: Kind::Tombstone, bytes, etag, ..self::head() };
    assert_eq!(tombstone.head_bytes(), 17 + "photoscat.jpg".len());
}

#[test]
fn every_field_present_fits_the_length() {
    let etag = Etag { md5: [1; 16], parts: u16::MAX };
    let files = vec![FilePart { id: u128::MAX, bytes: u64::MAX }; 200];
    let full = Head { etag, files, bytes: u64::MAX, part: u16::MAX, upload: u128::MAX, ..head() };
    let long = Head { bucket: "b".repeat(255), key: "k".repeat(65_535), ..full.clone() };
    for head in [full, long, head_with_blocks()] {
        let bytes = head.encode(&Attributes::new());
        assert_eq!(bytes.len(), head.head_bytes());
        assert_eq!(Needle::decode(&bytes).unwrap().head, head);
    }
}

#[test]
fn prefix_of_a_head_needs_more_bytes() {
    let attributes = Attributes::from_iter([("a", ""), ("name", "wert \u{e4}")]);
    let files = vec![FilePart { id: 7, bytes: 1 }, FilePart { id: u128::MAX, bytes: 2 }];
    let many = Head { files, bytes: 1 << 40, part: 300, upload: 9, ..head() };
    for head in [head(), many, head_with_blocks()] {
        let bytes = head.encode(&attributes);
        for cut in 0..bytes.len() {
            let needs = Needle::decode(&bytes[..cut]).unwrap_err();
            let is_more = |n| (cut + 1..=bytes.len()).contains(&n);
            assert!(matches!(needs, NeedleError::Needs(n) if is_more(n)), "{cut}: {needs:?}");
        }
    }
}

#[test]
fn index_entry_has_no_block_checksums() {
    let entry = head_with_blocks().encode_for_index();
    let found = Needle::decode(&entry).unwrap().head;
    assert_eq!(found, Head { blocks: Box::default(), ..head_with_blocks() });
    assert_eq!(head_with_blocks().head_bytes(), entry.len() + 8);
}

#[test]
fn flipped_bit_of_a_head_is_detected() {
    let whole = head_with_blocks().encode(&Attributes::from_iter([("name", "value")]));
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Needle::decode(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn head_with_another_encoding_is_malformed() {
    // The length of the object is the only varint. Its bytes start at 33.
    let whole = head().encode(&Attributes::new());
    assert_eq!(whole[33], 5);
    let with_length = |length: &[u8]| {
        let mut bytes = whole.clone();
        bytes.splice(33..34, length.iter().copied());
        seal(&mut bytes);
        bytes
    };
    assert!(Needle::decode(&with_length(&[0x85, 1])).is_ok());
    let overflow = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
    let endless = [0xff; 11];
    let unending = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x80];
    for length in [&[0x85, 0][..], &[0x85, 0x80, 0], &overflow, &endless, &unending] {
        assert!(malformed(&with_length(length)).is_some(), "{length:02x?}");
    }
    for (at, byte, expected) in [
        (4, 0x80, "kind is not known"),
        (4, 0x88, "kind is not known"),
        (4, 0x01, "kind is not known"),
        (5, 0x41, "block checksums"),
    ] {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        seal(&mut bytes);
        assert!(malformed(&bytes).is_some_and(|what| what.contains(expected)), "{at}: {byte:#x}");
    }
    // Only an object can have a version ID.
    let tombstone = Head { kind: Kind::Tombstone, is_versioned: true, ..head() };
    assert!(
        malformed(&tombstone.encode(&Attributes::new())).is_some_and(|it| it.contains("flags"))
    );
    // An announced field that is zero: the number of a part.
    let mut bytes = whole.clone();
    bytes[5] |= 0x10;
    bytes.insert(34, 0);
    seal(&mut bytes);
    assert!(malformed(&bytes).is_some_and(|what| what.contains("flags")));
    // The number of a part is at most 65,535.
    bytes.splice(34..35, [0x80, 0x80, 4]);
    seal(&mut bytes);
    assert!(malformed(&bytes).is_some_and(|what| what.contains("too great")));
}

#[test]
fn malformed_names_and_attributes_are_detected() {
    let attributes = Attributes::from_iter([("name", "value")]);
    let good = head().encode(&attributes);
    // The length of the name, the name, the length of the value, the value.
    let from = good.len() - (4 + 4 + 4 + 5);
    let key = good.windows(7).position(|bytes| bytes == b"cat.jpg").unwrap();
    for (at, byte, expected) in [
        (from, 5, "attributes"),
        (from, 200, "attributes"),
        (from + 4, 0xff, "attributes"),
        (from + 8, 4, "attributes"),
        (from + 8, 6, "attributes"),
        (from + 12, 0xff, "attributes"),
        (key, 0xff, "UTF-8"),
    ] {
        let mut bad = good.clone();
        bad[at] = byte;
        seal(&mut bad);
        assert!(malformed(&bad).is_some_and(|what| what.contains(expected)), "{at}: {byte}");
    }
}

#[test]
fn needles_of_a_record_end_at_the_first_malformed_one() {
    let needle = [&head().encode(&Attributes::new())[..], b"meow!"].concat();
    let read = |record: &[u8]| -> Vec<Result<usize, NeedleError>> {
        needles(record).map(|found| found.map(|(_, bytes)| bytes.len())).collect()
    };
    let two = [&needle[..], &needle].concat();
    assert_eq!(read(&two), [Ok(needle.len()); 2]);
    assert_eq!(read(&two[..two.len() - 1]), [Ok(needle.len()), Err(NeedleError::Needs(5))]);
    let mut damaged = [&two[..], &needle].concat();
    damaged[needle.len()] ^= 1;
    assert_eq!(read(&damaged), [Ok(needle.len()), Err(CHECKSUM)]);
}

fn any_head() -> impl Strategy<Value = Head> {
    let small_or_any = |max: u64| prop_oneof![0..=1_u64, 0..=max];
    let parts = any::<(u16, u16)>();
    let numbers = (small_or_any(u64::MAX), small_or_any(300_000), any::<u64>(), parts);
    let id = prop_oneof![Just(0), any::<u128>()];
    let files = prop::collection::vec((any::<u128>(), any::<u64>()), 0..4);
    let names = ("[a-z]{0,9}", ".{0,40}");
    let bits = (any::<bool>(), any::<bool>());
    (0..7_usize, bits, numbers, id, files, names, any::<[u8; 16]>()).prop_map(
        |(kind, (is_inline, has_id), numbers, upload, files, (bucket, key), md5)| {
            let (bytes, inline, version, (parts, part)) = numbers;
            let data = vec![0; if is_inline { usize::try_from(inline).unwrap() } else { 0 }];
            let files = files.into_iter().map(|(id, bytes)| FilePart { id, bytes }).collect();
            let head = Head {
                kind: Kind::ALL[kind],
                version: Version(version),
                etag: Etag { md5: if upload == 1 { [0; 16] } else { md5 }, parts },
                ..head()
            };
            let is_versioned = has_id && head.kind == Kind::Object;
            let head = Head { bucket, key, part, upload, is_versioned, ..head };
            if is_inline {
                let blocks = block_checksums(&data);
                let is_versioned = has_id;
                return Head { kind: Kind::Object, bytes: inline, blocks, is_versioned, ..head };
            }
            Head { bytes, files, ..head }
        },
    )
}

proptest! {
    #[test]
    fn head_reads_back(
        head in any_head(),
        attributes in prop::collection::btree_map(".{0,9}", ".{0,200}", 0..4),
        data in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let attributes = Attributes::from_iter(attributes);
        prop_assert_eq!(head.encode(&Attributes::new()).len(), head.head_bytes());
        let mut bytes = head.encode(&attributes);
        bytes.extend_from_slice(&data);
        let found = Needle::decode(&bytes).unwrap();
        prop_assert_eq!(&found.head, &head);
        prop_assert_eq!(&found.attributes, &attributes);
        prop_assert_eq!(found.rest, &data[..]);
    }

    #[test]
    fn no_bytes_make_the_decoders_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        kind in any::<u8>(),
    ) {
        let check = |bytes: &[u8]| match Needle::decode(bytes) {
            Err(NeedleError::Needs(needed)) => assert!(needed > bytes.len()),
            Ok(needle) => {
                let head = &needle.head;
                let whole = bytes.len() - needle.rest.len();
                // A head has one encoding, unless its attributes are out of order.
                assert!(head.encode(&needle.attributes).len() <= whole);
            }
            Err(NeedleError::Malformed(_)) => {}
        };
        check(&bytes);
        // With a matching checksum, the input reaches the rest of the decoder.
        if bytes.len() >= layout::FIXED_BYTES + 60 {
            bytes[4] = layout::KIND_BIT | (kind % 9);
            bytes[5] &= !0x02;
            (bytes[6], bytes[7], bytes[8]) = (kind % 5, kind % 7, 0);
            for end in layout::FIXED_BYTES..bytes.len() {
                let mut bytes = bytes[..end].to_vec();
                seal(&mut bytes);
                check(&bytes);
            }
        }
    }
}
