//! Policies of buckets, users and sessions, in the subset of AWS's policy language that
//! `docs/access.md` describes. Pure: `parse` checks a policy's text and rejects parts that this
//! server would not enforce, with `members` and `action_names`. `action` names the operations,
//! `evaluate` decides about a request, `public` finds policies that allow access to everyone, and
//! `fit` finds statements that apply to nothing. `document` decides without a server.

pub(crate) mod action;
mod action_names;
pub(crate) mod condition;
pub(crate) mod document;
pub(crate) mod evaluate;
mod fit;
mod members;
mod operand;
pub(crate) mod parse;
mod public;
pub(crate) mod statement;

#[cfg(test)]
mod tests;
