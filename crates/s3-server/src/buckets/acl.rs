//! Operations on bucket ACLs.

use crate::acl::document::{AccessControlPolicy, text};
use crate::acl::list::Acl;
use crate::acl::requested::RequestedAcl;
use crate::acl::rules::rules_of;
use crate::acl::stored::encode;
use crate::answer::Answer;
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::errors::S3Result;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::{ACL, set};

pub(crate) async fn get_bucket_acl(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let rules = haul.blocking(move |store| rules_of(store, &bucket)).await?;
    Ok(Answer::xml(text(&rules.owner, &rules.list())))
}

pub(crate) async fn put_bucket_acl(haul: &Haul, request: &Request, body: Body) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let claims = Claims::for_document(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let document = AccessControlPolicy::if_given(&document)?;
    // An invalid ACL is an error only if the bucket takes ACLs, as in S3.
    let fields = &request.head.fields;
    let requested = RequestedAcl::from_request(fields, document, &|name| haul.is_user(name));
    haul.blocking(move |store| {
        let rules = rules_of(store, &bucket)?;
        rules.check_in_effect()?;
        let list = requested?.resolve(&rules.owner, &rules.owner)?;
        rules.check(&list)?;
        let is_private = list == Acl::private(&rules.owner);
        set(store, &bucket, ACL, (!is_private).then(|| encode(&list)).as_deref())
    })
    .await?;
    Ok(Answer::ok())
}
