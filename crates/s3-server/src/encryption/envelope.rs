//! The attribute of an encrypted object or upload: its sealed data key, and the key's recipient.
//! Pure, except for random salts.
//!
//! The seal also authenticates the bucket and object names, the length of the stored content, and
//! the part numbers. The content of another object, a part of the content, or other parts are
//! therefore not accepted instead.

use base64_simd::STANDARD as BASE64;
use haul_file_store::{Attributes, PART_NUMBER_MAX};

use crate::encryption::data_key::{DataKey, SEALED_BYTES, failed};
use crate::encryption::master::{Master, Recipient};
use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};

pub(crate) const ATTRIBUTE: &str = "x-haul-encryption";

/// The format version, the first word in the attribute.
const VERSION: &str = "1";

const CUSTOMER: &str = "customer";
const OPERATOR: &str = "operator:";
const NAMED: &str = "named:";

/// The texts for [`Structure`].
const UPLOAD: &str = "upload";
const ONE_PIECE: &str = "one-piece";
const PARTS: &str = "parts:";

/// The content's structure, to which the sealed data key is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Structure {
    /// An unfinished upload, whose parts are not known yet.
    Upload,
    /// An object that was not uploaded in parts.
    OnePiece,
    /// The part numbers, in ascending order.
    Parts(Vec<u16>),
}

/// An object's or upload's sealed data key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) recipient: Recipient,
    sealed: [u8; SEALED_BYTES],
    pub(crate) structure: Structure,
}

impl Envelope {
    /// Seals a data key for the object or upload with these names. `stored_bytes` is the length of
    /// the encrypted content, 0 for an upload.
    pub(crate) fn seal(
        master: &Master,
        key: &DataKey,
        names: (&str, &str),
        structure: Structure,
        stored_bytes: u64,
    ) -> S3Result<Self> {
        let context = context(names, &structure, stored_bytes);
        let sealed = key.seal(master.bytes(), &context).map_err(failed)?;
        Ok(Self { recipient: master.recipient(), sealed, structure })
    }

    /// Returns the data key; `None` if the envelope was sealed by another master key, or for other
    /// names or other content.
    pub(crate) fn open(
        &self,
        master: &Master,
        names: (&str, &str),
        stored_bytes: u64,
    ) -> Option<DataKey> {
        let context = context(names, &self.structure, stored_bytes);
        DataKey::open(&self.sealed, master.bytes(), &context)
    }

    /// Returns the envelope in the attributes of an object, an upload or a part.
    pub(crate) fn of(attributes: &Attributes) -> S3Result<Option<Self>> {
        attributes.get(ATTRIBUTE).map(|text| Self::parse(text).ok_or_else(malformed)).transpose()
    }

    /// Adds the envelope to the attributes.
    pub(crate) fn set(&self, attributes: &mut Attributes) {
        attributes.set(ATTRIBUTE, self.to_text());
    }

    fn to_text(&self) -> String {
        let recipient = match &self.recipient {
            Recipient::Customer => CUSTOMER.to_owned(),
            Recipient::Operator(id) => format!("{OPERATOR}{id}"),
            Recipient::Named(id) => format!("{NAMED}{id}"),
        };
        let sealed = BASE64.encode_to_string(self.sealed);
        format!("{VERSION} {recipient} {sealed} {}", self.structure.to_text())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut word = || words.next();
        if word()? != VERSION {
            return None;
        }
        let recipient = match word()? {
            CUSTOMER => Recipient::Customer,
            text => match text.strip_prefix(NAMED) {
                Some(id) => Recipient::Named(id.to_owned()),
                None => Recipient::Operator(text.strip_prefix(OPERATOR)?.to_owned()),
            },
        };
        let sealed = BASE64.decode_to_vec(word()?).ok()?.try_into().ok()?;
        let structure = Structure::parse(word()?)?;
        word().is_none().then_some(Self { recipient, sealed, structure })
    }
}

/// Parses an attribute and formats it again; for fuzzing.
#[doc(hidden)]
pub fn reformat_encryption_attribute(text: &str) -> Option<String> {
    Envelope::parse(text).map(|envelope| envelope.to_text())
}

impl Structure {
    fn to_text(&self) -> String {
        match self {
            Self::Upload => UPLOAD.to_owned(),
            Self::OnePiece => ONE_PIECE.to_owned(),
            Self::Parts(numbers) => format!("{PARTS}{}", BASE64.encode_to_string(bits(numbers))),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            UPLOAD => Some(Self::Upload),
            ONE_PIECE => Some(Self::OnePiece),
            text => {
                let bits = BASE64.decode_to_vec(text.strip_prefix(PARTS)?).ok()?;
                numbers(&bits).map(Self::Parts)
            }
        }
    }
}

/// Returns a bit set: bit *n* − 1 is set if the list has the part *n*.
fn bits(numbers: &[u16]) -> Vec<u8> {
    let mut bits = Vec::new();
    for index in numbers.iter().map(|number| usize::from(number.saturating_sub(1))) {
        bits.resize(bits.len().max(index / 8 + 1), 0);
        bits[index / 8] |= 1 << (index % 8);
    }
    bits
}

/// Returns the part numbers in a bit set; `None` if it is empty, or longer than necessary.
fn numbers(bits: &[u8]) -> Option<Vec<u16>> {
    if bits.last().is_none_or(|last| *last == 0) {
        return None;
    }
    let all = 1..=u16::try_from(bits.len() * 8).ok()?;
    let is_set = |number: &u16| {
        let index = usize::from(number - 1);
        bits[index / 8] & (1 << (index % 8)) != 0
    };
    let numbers: Vec<u16> = all.filter(is_set).collect();
    numbers.last().is_some_and(|last| *last <= PART_NUMBER_MAX).then_some(numbers)
}

/// Returns the bytes that the seal authenticates. Names contain no zero bytes.
fn context((bucket, key): (&str, &str), structure: &Structure, stored_bytes: u64) -> Vec<u8> {
    let structure = structure.to_text();
    format!("{bucket}\0{key}\0{structure}\0{stored_bytes}").into_bytes()
}

/// Returns the error for an attribute that this server version cannot read.
pub(crate) fn malformed() -> S3Error {
    let message = "The attribute with the encryption of the object is missing or malformed";
    refuse(S3ErrorCode::InternalError, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encryption::operator::EncryptionKeys;

    const NAMES: (&str, &str) = ("bucket", "key");

    fn master() -> Master {
        let text = crate::EncryptionKey::generate().unwrap().to_text();
        Master::Operator(EncryptionKeys::parse(&text).unwrap().newest(None).unwrap())
    }

    #[test]
    fn envelope_is_opened_for_its_names_and_content_only() {
        let (master, key) = (master(), DataKey::generate().unwrap());
        let structure = Structure::Parts(vec![1, 2, 9]);
        let sealed = Envelope::seal(&master, &key, NAMES, structure, 100).unwrap();
        let mut attributes = Attributes::new();
        assert_eq!(Envelope::of(&attributes).unwrap(), None);
        sealed.set(&mut attributes);
        let read = Envelope::of(&attributes).unwrap().unwrap();
        assert_eq!(read, sealed);
        assert_eq!(read.open(&master, NAMES, 100), Some(key));
        for (master, names, bytes) in [
            (&self::master(), NAMES, 100),
            (&master, ("bucket", "keys"), 100),
            (&master, ("buckets", "key"), 100),
            (&master, NAMES, 99),
        ] {
            assert_eq!(read.open(master, names, bytes), None, "{names:?} {bytes}");
        }
        for structure in [Structure::OnePiece, Structure::Upload, Structure::Parts(vec![1, 2])] {
            let changed = Envelope { structure, ..read.clone() };
            assert_eq!(changed.open(&master, NAMES, 100), None, "{changed:?}");
        }
    }

    #[test]
    fn recipients_are_read_as_they_were_written() {
        let key = DataKey::generate().unwrap();
        let sealed = Envelope::seal(&master(), &key, NAMES, Structure::OnePiece, 1).unwrap();
        for recipient in [
            Recipient::Customer,
            Recipient::Operator("b4f2fdb675b0e2c1".to_owned()),
            Recipient::Named("b4f2fdb675b0e2c1".to_owned()),
        ] {
            let envelope = Envelope { recipient, ..sealed.clone() };
            assert_eq!(Envelope::parse(&envelope.to_text()), Some(envelope));
        }
    }

    #[test]
    fn structures_are_read_as_they_were_written() {
        let all: Vec<u16> = (1..=PART_NUMBER_MAX).collect();
        for structure in [
            Structure::Upload,
            Structure::OnePiece,
            Structure::Parts(vec![1]),
            Structure::Parts(vec![8, 9, 10_000]),
            Structure::Parts(all),
        ] {
            let text = structure.to_text();
            assert!(text.len() < 1700, "{}", text.len());
            assert_eq!(Structure::parse(&text), Some(structure), "{text}");
        }
        assert_eq!(Structure::Parts(vec![1, 2, 3]).to_text(), "parts:Bw==");
    }

    #[test]
    fn malformed_attributes_are_refused() {
        let key = DataKey::generate().unwrap();
        let sealed = Envelope::seal(&master(), &key, NAMES, Structure::OnePiece, 1).unwrap();
        let text = sealed.to_text();
        for changed in [
            "",
            "1",
            &text[1..],
            &text.replacen('1', "2", 1),
            &text.replacen("operator:", "owner:", 1),
            &text.replacen("one-piece", "two-pieces", 1),
            &text.replacen("one-piece", "parts:", 1),
            &text.replacen("one-piece", "parts:AA==", 1),
            &text.replacen("one-piece", "parts:AQA=", 1),
            &format!("{text} "),
            &text.replacen(' ', "  ", 1),
        ] {
            assert_eq!(Envelope::parse(changed), None, "{changed}");
        }
        let mut beyond = vec![0; 1251];
        beyond[1250] = 1;
        assert_eq!(numbers(&beyond), None, "there is no part 10,001");
    }
}
