//! The right to deliver records to a bucket, which only the bucket's policy can give.

use std::borrow::Cow;

use crate::access::bucket_policy::policy_of;
use crate::access::chosen_encryption::Chosen;
use crate::bucket_logs::target::{LogTarget, Source};
use crate::errors::S3Result;
use crate::policy::condition::{Facts, Key};
use crate::policy::evaluate::{Access, Client, Verdict};
use haul_store_pool::Pool;

/// The delivery's service principal in policies.
const SERVICE: &str = "logging.s3.amazonaws.com";

/// Returns `true` if the target bucket's policy allows the delivery to store `key` for the source.
/// The policy may allow the key, or the target prefix treated as a key; it must deny neither.
///
/// # Errors
/// If corruption hides the policy, or if another version of the server has set it.
pub(crate) fn may_deliver(
    store: &Pool,
    target: &LogTarget,
    source: &Source,
    key: &str,
) -> S3Result<bool> {
    let Some(found) = policy_of(store, &target.bucket)? else { return Ok(false) };
    // A public access block restricts clients, but not services.
    let verdict = |name: &str| {
        let resource = format!("{}/{name}", target.bucket);
        let client = Client::Service(SERVICE);
        let access = Access { client, action: "s3:PutObject", resource: &resource };
        found.policy.evaluate(&access, &Delivery { store, target, source })
    };
    let verdicts = [verdict(key), verdict(&target.prefix)];
    Ok(verdicts.contains(&Verdict::Allowed) && !verdicts.contains(&Verdict::Denied))
}

/// A delivery's properties for policies. The stored object has the target bucket's default
/// encryption.
struct Delivery<'a> {
    store: &'a Pool,
    target: &'a LogTarget,
    source: &'a Source,
}

impl Facts for Delivery<'_> {
    fn value(&self, key: &Key) -> Option<Cow<'_, str>> {
        let Key::Encryption(part) = key else { return self.source.value(key) };
        Chosen::bucket_default(self.store, &self.target.bucket).part(*part).map(Cow::Owned)
    }
}
