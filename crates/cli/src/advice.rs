//! Adds advice to failures that an error of the object store caused.

use std::error::Error;

use haul_file_store::Error as StoreError;

use crate::report::Result;

/// Adds advice to a failure that the store caused, unless the failure already has advice.
pub(crate) fn with_advice<T>(result: Result<T>) -> Result<T> {
    result.map_err(|failure| {
        let advice = failure.cause().and_then(advice).filter(|_| !failure.has_advice());
        match advice {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    })
}

/// Returns advice for an error of the store, or `None` if there is no advice for the error.
fn advice(error: &(dyn Error + 'static)) -> Option<&'static str> {
    Some(match error.downcast_ref::<StoreError>()? {
        StoreError::NoSuchBucket { .. } => {
            "\"haul store ls\" lists the buckets, \"haul store mb\" creates one"
        }
        StoreError::BucketNotEmpty { .. } => "\"haul store rm --recursive\" empties it",
        StoreError::Full { .. } => {
            "delete objects (\"haul store rm\"), then \"haul store compact\", or enlarge the disk"
        }
        StoreError::Damaged { .. } => "\"haul store verify\" lists all damage",
        StoreError::InUse { .. } => "wait until it exits; if it is \"haul serve\", use S3 requests",
        StoreError::NotAStore { .. } => {
            "set --data to a store, or to an empty directory to create one"
        }
        StoreError::Log(_) => "acknowledged writes are safe; check the disk, then restart",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Failure;

    #[test]
    fn store_errors_have_advice() {
        let error = StoreError::NoSuchBucket { bucket: "b".into() };
        let text = with_advice::<()>(Err(Failure::new("cannot list").because(error)))
            .unwrap_err()
            .text()
            .unwrap();
        assert!(text.starts_with("cannot list: bucket \"b\" does not exist\n  "), "{text}");
        assert!(text.contains("haul store mb"), "{text}");
    }
}
