//! `haul store versioning`: shows or changes the versioning state of a bucket.

use haul_file_store::Versioning;
use haul_store_pool::Pool;
use serde_json::json;

use crate::args::{VersioningArgs, VersioningChange};
use crate::output::print_line;
use crate::report::{OrFail, Result};

pub(super) fn run(store: &Pool, args: &VersioningArgs) -> Result {
    let bucket = &args.bucket;
    if let Some(change) = args.change {
        let (versioning, verb) = match change {
            VersioningChange::Enable => (Versioning::Enabled, "enable"),
            VersioningChange::Suspend => (Versioning::Suspended, "suspend"),
        };
        let cannot = || format!("cannot {verb} versioning in {bucket}");
        store.set_versioning(bucket, versioning).or_fail(cannot)?;
        if !args.json {
            return Ok(());
        }
    }
    let cannot = || format!("cannot read the versioning state of {bucket}");
    let state = match store.versioning(bucket).or_fail(cannot)? {
        Versioning::Off => "off",
        Versioning::Enabled => "enabled",
        Versioning::Suspended => "suspended",
    };
    let has_lock = store.has_object_lock(bucket).or_fail(cannot)?;
    if args.json {
        let json = json!({ "bucket": bucket, "versioning": state, "object_lock": has_lock });
        return print_line(json);
    }
    print_line(format!("{state}{}", if has_lock { ", object lock" } else { "" }))
}
