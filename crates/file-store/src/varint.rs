//! Variable-length numbers: seven bits per byte, the lowest first (LEB128). Pure.

/// Appends a number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            out.push(low & 0x7f);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Decodes a number at the front of `bytes` and removes it; `None` if there is none.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn malformed_numbers_are_refused() {
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(take_varint(&mut &largest[..]), Some(u64::MAX));
        let longer = [&[0x80; 10][..], &[1]].concat();
        let greater = [&largest[..9], &[2]].concat();
        for bytes in [&[][..], &largest[..9], &longer, &greater] {
            assert_eq!(take_varint(&mut &*bytes), None, "{bytes:02x?}");
        }
    }

    proptest! {
        #[test]
        fn varint_reads_back_as_written(number: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            let mut bytes = &out[..];
            prop_assert_eq!((take_varint(&mut bytes), bytes.len()), (Some(number), 0));
        }
    }
}
