//! Limits on settings. Pure.

use crate::error::{Error, Result};
use crate::lifecycle::format::is_rule;

/// The maximum length of a setting, with its name.
const SETTING_BYTES_MAX: usize = 64 * 1024;

/// Returns an error if a bucket cannot have a setting.
pub(crate) fn check_setting(name: &str, value: &str) -> Result<()> {
    let bytes = name.len() + value.len();
    let what = if bytes > SETTING_BYTES_MAX {
        format!(
            "the setting {name} of {bytes} bytes exceeds the limit of {SETTING_BYTES_MAX} bytes"
        )
    } else if is_rule(name) {
        format!("the setting {name} has the name of a lifecycle rule")
    } else {
        return Ok(());
    };
    Err(Error::Invalid { what })
}
