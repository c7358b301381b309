//! Encodes and decodes hexadecimal digits, as in checksum files.

/// Encodes bytes as lower-case hexadecimal digits.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Decodes hexadecimal digits of either case; returns `None` if `text` contains another character
/// or an odd number of digits.
#[must_use]
pub fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn invalid_hex_is_rejected() {
        assert_eq!(to_hex(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(from_hex(b"001FfF"), Some(vec![0, 0x1f, 0xff]));
        assert_eq!((from_hex(b""), from_hex(b"0"), from_hex(b"0g")), (Some(vec![]), None, None));
    }

    proptest! {
        #[test]
        fn hex_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(from_hex(to_hex(&bytes).as_bytes()), Some(bytes));
        }
    }
}
