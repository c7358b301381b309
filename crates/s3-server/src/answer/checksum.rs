//! The checksum headers in a response.

use crate::answer::Answer;
use crate::body::checksum::{Checksum, TYPE_ATTRIBUTE};

/// Returns the response with a checksum header, and with the checksum type.
pub(crate) fn with_checksum(answer: Answer, checksum: Option<&Checksum>, kind: &str) -> Answer {
    match checksum {
        Some(Checksum { algorithm, value }) => {
            answer.with(algorithm.header(), value).with(TYPE_ATTRIBUTE, kind)
        }
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::checksum::{Algorithm, COMPOSITE};

    #[test]
    fn answer_has_the_checksum_and_its_type() {
        let crc = Checksum { algorithm: Algorithm::Crc32, value: "y/Q5Jg==".to_owned() };
        let answer = with_checksum(Answer::ok(), Some(&crc), COMPOSITE);
        assert_eq!(answer.headers["x-amz-checksum-crc32"], "y/Q5Jg==");
        assert_eq!(answer.headers[TYPE_ATTRIBUTE], COMPOSITE);
        assert!(with_checksum(Answer::ok(), None, COMPOSITE).headers.is_empty());
    }
}
