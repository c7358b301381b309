//! Sends an XML document to an S3 server as the setting of a bucket or an object, such as an access
//! list, CORS rules, a lifecycle, a website, or an object lock. What the server accepts, it returns
//! in the same form to each later request, and it accepts its own form.
//!
//! The first byte selects the setting; the rest is the document.

use crate::servers::Reply;
use crate::servers::s3::{OPEN, request};

/// The targets of the settings. The bucket `locked` has object lock.
const SETTINGS: [&str; 15] = [
    "/bucket?acl",
    "/bucket/key?acl",
    "/bucket?cors",
    "/bucket?encryption",
    "/bucket?lifecycle",
    "/bucket?ownershipControls",
    "/bucket?publicAccessBlock",
    "/bucket?tagging",
    "/bucket/key?tagging",
    "/bucket?versioning",
    "/locked?object-lock",
    "/locked/key?retention",
    "/locked/key?legal-hold",
    "/locked?versioning",
    "/bucket?website",
];

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let Some((setting, document)) = data.split_first() else { return };
    let target = SETTINGS[usize::from(*setting) % SETTINGS.len()];
    let (put, get) = (format!("PUT {target}"), format!("GET {target}"));
    let address = OPEN.address();
    let before = request(address, &get, b"");
    let stored = request(address, &put, document);
    let found = request(address, &get, b"");
    let about = || format!("{put} {}", String::from_utf8_lossy(document));
    if stored.status != 200 {
        assert!((400..=501).contains(&stored.status), "{}: {}", stored.status, about());
        // The body of an error has the ID of the request.
        let body = |reply: Reply| (reply.status == 200).then_some(reply.body);
        assert_eq!(found.status, before.status, "{}", about());
        assert_eq!(body(found), body(before), "{}", about());
        return;
    }
    if found.status != 200 {
        // An empty document removes the setting.
        assert_eq!(found.status, 404, "{}", about());
        return;
    }
    let again = request(address, &put, &found.body);
    let text = String::from_utf8_lossy(&again.body);
    assert_eq!(
        again.status,
        200,
        "{} of {}: {text}",
        String::from_utf8_lossy(&found.body),
        about()
    );
    assert_eq!(request(address, &get, b"").body, found.body, "{}", about());
}
