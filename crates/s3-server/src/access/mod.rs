//! Keys and rights: which client may execute which operation.
//!
//! `rights` is the model; `keys` has the users' keys and the file that stores them. `action` maps
//! each operation to the right that it needs, `authorize` compares the grants, `decision` decides
//! from the rights and all policies, and `caller` applies the decision to a request. `lists` adds
//! bucket ACLs and object ACLs. `check` authorizes a request.

pub(crate) mod action;
pub(crate) mod authorize;
pub(crate) mod bucket_policy;
pub(crate) mod caller;
pub(crate) mod check;
pub(crate) mod chosen_encryption;
pub(crate) mod decision;
mod expected_owner;
pub(crate) mod facts;
pub(crate) mod keys;
mod lists;
#[cfg(test)]
mod random_decisions;
pub(crate) mod rights;
mod stored_facts;
