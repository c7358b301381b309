//! Creates a temporary key for the client that signed an STS request.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use haul_http_engine::RequestBody;
use http_body_util::{BodyExt, Limited};
use time::OffsetDateTime;
use tokio::time::timeout;

use crate::access::keys::key_ring::ActiveKey;
use crate::access::keys::session::Claims;
use crate::acl::owner::ADMINISTRATOR;
use crate::answer::Answer;
use crate::audit::Changes;
use crate::auth::verify::verify_body;
use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::request::head::Head;
use crate::service::Haul;
use crate::sts::document::{Names, Session, session_document};
use crate::sts::request::{Action, SessionRequest};

/// The maximum length of a form, in bytes.
const FORM_BYTES_MAX: usize = 64 << 10;

/// Executes an STS request.
///
/// # Errors
/// The STS error for an invalid form or signature.
pub(crate) async fn answer(
    haul: &Haul,
    head: &Head,
    body: RequestBody,
    changes: Option<Changes>,
    id: &str,
) -> S3Result<Answer> {
    if haul.keys.is_empty() {
        let message = "A server without keys has no temporary keys: every client of this machine \
                       has all rights";
        return Err(refuse(S3ErrorCode::AccessDenied, message));
    }
    let form = receive(haul, body).await?;
    let parent = verify_body(&haul.keys, head, &form)?;
    let SessionRequest { action, duration_s, policy } = SessionRequest::parse(&form)?;
    if parent.session.is_some() {
        let message = "A temporary key cannot create temporary keys: use its parent";
        return Err(refuse(S3ErrorCode::AccessDenied, message));
    }
    let expires_s = expiry(&parent, duration_s);
    let key = Claims::new(expires_s, policy, None)
        .and_then(|claims| haul.keys.start_session(&parent, &claims))
        .ok_or_else(|| {
            let message = "The server has no secret for temporary keys, or no random bytes: give \
                           it a key file with a sealing key, or the key pair of an administrator";
            refuse(S3ErrorCode::NotImplemented, message)
        })?;
    if let Some(changes) = &changes {
        changes.set_form(&key.access_key, Some(parent.log_name()));
    }
    let expires =
        OffsetDateTime::from_unix_timestamp(expires_s).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let user = parent.user.as_deref().unwrap_or(ADMINISTRATOR);
    let (names, user) = match action {
        Action::AssumeRole => {
            (Names { response: "AssumeRoleResponse", result: "AssumeRoleResult" }, Some(user))
        }
        Action::GetSessionToken => {
            (Names { response: "GetSessionTokenResponse", result: "GetSessionTokenResult" }, None)
        }
    };
    let document = session_document(&names, &Session { key: &key, expires, user }, id);
    // The document has a secret key.
    Ok(Answer::xml(document).with("cache-control", "no-store"))
}

/// Receives a form, which has no longer than a stalled body.
async fn receive(haul: &Haul, body: RequestBody) -> S3Result<Bytes> {
    let collect = Limited::new(body, FORM_BYTES_MAX).collect();
    match timeout(haul.limits().stall_time_max, collect).await {
        Ok(Ok(form)) => Ok(form.to_bytes()),
        Ok(Err(_)) => {
            let message = format!("The form was cut, or has more than {FORM_BYTES_MAX} bytes");
            Err(refuse(S3ErrorCode::InvalidRequest, message))
        }
        Err(_elapsed) => {
            let message = "The form did not arrive in time";
            Err(refuse(S3ErrorCode::RequestTimeout, message))
        }
    }
}

/// Returns the end of a session, which is not later than that of its parent.
fn expiry(parent: &Arc<ActiveKey>, duration_s: i64) -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let expires_s = i64::try_from(since.as_secs()).unwrap_or(i64::MAX).saturating_add(duration_s);
    parent.expires_s().map_or(expires_s, |end| end.min(expires_s))
}
