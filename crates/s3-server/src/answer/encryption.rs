//! The headers that describe an object's encryption.

use crate::answer::Answer;
use crate::encryption::customer::{AES256, OBJECT_KEY};
use crate::encryption::master::Master;
use crate::encryption::request::{ENCRYPTION, KEY_NAME, KMS};

/// Returns the response with the headers that describe an object encrypted with this key.
pub(crate) fn described(answer: Answer, master: Option<&Master>) -> Answer {
    match master {
        None => answer,
        Some(Master::Operator(_)) => answer.with(ENCRYPTION, AES256),
        Some(Master::Named(key)) => {
            answer.with(ENCRYPTION, KMS).with(KEY_NAME, key.name().unwrap_or(key.id()))
        }
        Some(Master::Customer(key)) => {
            answer.with(OBJECT_KEY.algorithm, AES256).with(OBJECT_KEY.md5, &key.md5)
        }
    }
}
