//! Creates a temporary key for the client that signed an STS request, or whose token it has.

use bytes::Bytes;
use haul_http_engine::RequestBody;
use http_body_util::{BodyExt, Limited};
use time::OffsetDateTime;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::access::keys::key_ring::ActiveKey;
use crate::access::keys::session::{Claims, TemporaryKey};
use crate::acl::owner::ADMINISTRATOR;
use crate::answer::Answer;
use crate::audit::Changes;
use crate::auth::verify::verify_body;
use crate::errors::{S3Error, S3ErrorCode, S3Result, joined, refuse};
use crate::oidc::provider::Refusal;
use crate::request::head::Head;
use crate::service::Haul;
use crate::sts::document::{Provider, Session, session_document};
use crate::sts::request::{Action, SessionRequest};
use crate::times::now_s;

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
    let request = SessionRequest::parse(&form)?;
    let started = match request.action {
        Action::AssumeRoleWithWebIdentity => Box::pin(start_for_provider(haul, request)).await?,
        Action::AssumeRole | Action::GetSessionToken => {
            let parent = verify_body(&haul.keys, head, &form)?;
            start(haul, &parent, request)?
        }
    };
    let Started { action, key, expires_s, user, provider } = &started;
    if let Some(changes) = &changes {
        changes.set_form(&key.access_key, Some(user.as_str().into()));
    }
    let epoch = OffsetDateTime::UNIX_EPOCH;
    let expires = OffsetDateTime::from_unix_timestamp(*expires_s).unwrap_or(epoch);
    let provider = provider.as_ref();
    let provider = provider.map(|(issuer, audience)| Provider { issuer, audience });
    let named = (*action != Action::GetSessionToken).then_some(user.as_str());
    let session = Session { key, expires, user: named, provider };
    // The document has a secret key.
    let document = session_document(&action.names(), &session, id);
    Ok(Answer::xml(document).with("cache-control", "no-store"))
}

/// A session that has started.
struct Started {
    action: Action,
    key: TemporaryKey,
    expires_s: i64,
    user: String,
    /// The issuer and the audience of a provider's user.
    provider: Option<(String, String)>,
}

/// Starts a session of the key that signed a request.
fn start(haul: &Haul, parent: &ActiveKey, request: SessionRequest) -> S3Result<Started> {
    let SessionRequest { action, duration_s, policy, .. } = request;
    if parent.session.is_some() {
        let message = "A temporary key cannot create temporary keys: use its parent";
        return Err(refuse(S3ErrorCode::AccessDenied, message));
    }
    let end_s = now_s().saturating_add(duration_s);
    // A session is not longer than its parent is valid.
    let expires_s = parent.expires_s().map_or(end_s, |end| end.min(end_s));
    let key = Claims::new(expires_s, policy, None)
        .and_then(|claims| haul.keys.start_session(parent, &claims))
        .ok_or_else(no_secret)?;
    let user = parent.user.as_deref().unwrap_or(ADMINISTRATOR).to_owned();
    Ok(Started { action, key, expires_s, user, provider: None })
}

/// Starts a session of the user whose provider issued a token.
async fn start_for_provider(haul: &Haul, request: SessionRequest) -> S3Result<Started> {
    let SessionRequest { action, duration_s, policy, identity } = request;
    let Some(providers) = haul.providers.clone() else {
        let message = "This server has no OpenID Connect providers: configure them with --oidc";
        return Err(refuse(S3ErrorCode::InvalidIdentityToken, message));
    };
    let keys = haul.keys.clone();
    let call = move || {
        let found = providers.identify(&identity, now_s()).map_err(refused)?;
        let (provider, issuer) = (found.provider.to_owned(), found.issuer.to_owned());
        let (audience, user) = (found.audience.to_owned(), found.user);
        let (name, expires_s) = (user.name.clone(), now_s().saturating_add(duration_s));
        let key = Claims::new(expires_s, policy, Some(user))
            .and_then(|claims| keys.start_provider_session(&provider, &claims))
            .ok_or_else(no_secret)?;
        let provider = Some((issuer, audience));
        Ok(Started { action, key, expires_s, user: name, provider })
    };
    joined(spawn_blocking(call).await)
}

/// Returns the error for a token that a provider's user cannot use.
fn refused(refusal: Refusal) -> S3Error {
    match refusal {
        Refusal::Invalid(why) => {
            let message = format!("The identity token cannot be used: {why}");
            refuse(S3ErrorCode::InvalidIdentityToken, message)
        }
        Refusal::Expired => {
            refuse(S3ErrorCode::ExpiredTokenException, "The identity token has expired")
        }
        Refusal::Unreachable(why) => {
            let message = format!("The keys of the provider cannot be read: {why}");
            refuse(S3ErrorCode::IdpCommunicationError, message)
        }
    }
}

fn no_secret() -> S3Error {
    let message = "The server has no secret for temporary keys, or no random bytes: give it a key \
                   file with a sealing key, or the key pair of an administrator";
    refuse(S3ErrorCode::NotImplemented, message)
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
