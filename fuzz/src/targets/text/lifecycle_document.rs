//! Parses a lifecycle configuration in XML or JSON, and the same one after it was written.

use haul_s3_server::{lifecycle_from_document, lifecycle_to_json, lifecycle_to_xml};

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(lifecycle) = lifecycle_from_document(text) else { return };
    let xml = lifecycle_to_xml(&lifecycle);
    let again = lifecycle_from_document(&xml);
    assert_eq!(again.as_ref().ok(), Some(&lifecycle), "{xml}: {again:?}");
    let json = lifecycle_to_json(&lifecycle).to_string();
    let again = lifecycle_from_document(&json);
    assert_eq!(again.as_ref().ok(), Some(&lifecycle), "{json}: {again:?}");
}
