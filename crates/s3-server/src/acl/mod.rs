//! ACLs of buckets and objects. `list` is the model, `canned` has the canned ACLs of S3, `stored`
//! is the stored text, and `document` converts ACLs from and to S3's headers and XML. `requested`
//! is the ACL in a request, `permission` maps operations to the permissions that they need, and
//! `rules` applies a bucket's settings to ACLs, and decides. `object_list` has an object's ACL and
//! owner, and `owner` has the owner in XML documents.

pub(crate) mod canned;
pub(crate) mod document;
pub(crate) mod list;
pub(crate) mod object_list;
pub(crate) mod owner;
pub(crate) mod permission;
pub(crate) mod requested;
pub(crate) mod rules;
pub(crate) mod stored;
