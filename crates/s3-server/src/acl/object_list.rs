//! An object's ACL and owner, which are attributes of the object. An object without these
//! attributes belongs to the bucket owner, and its ACL is private.

use haul_file_store::Attributes;

use crate::acl::list::Acl;
use crate::acl::stored::{decode, encode};

const LIST: &str = "x-haul-acl";
const OWNER: &str = "x-haul-owner";

/// An object's ACL and owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ObjectAcl {
    pub(crate) owner: String,
    pub(crate) list: Acl,
}

impl ObjectAcl {
    /// Returns the ACL for a new object whose request has none.
    pub(crate) fn private(owner: &str) -> Self {
        Self { owner: owner.to_owned(), list: Acl::private(owner) }
    }

    /// Returns the ACL in an object's attributes. A malformed ACL allows nothing.
    pub(crate) fn of(attributes: &Attributes, bucket_owner: &str) -> Self {
        let owner = owner(attributes).unwrap_or(bucket_owner);
        let list = attributes.get(LIST).map(|text| decode(text).unwrap_or_default());
        let list = list.unwrap_or_else(|| Acl::private(owner));
        Self { owner: owner.to_owned(), list }
    }

    /// Stores the ACL in an object's attributes, and replaces an existing one.
    pub(crate) fn set(&self, attributes: &mut Attributes, bucket_owner: &str) {
        remove(attributes);
        if self.owner != bucket_owner {
            attributes.set(OWNER, self.owner.as_str());
        }
        if self.list != Acl::private(&self.owner) {
            attributes.set(LIST, encode(&self.list));
        }
    }
}

/// Removes ACL and owner from an object's attributes.
pub(crate) fn remove(attributes: &mut Attributes) {
    attributes.remove(LIST);
    attributes.remove(OWNER);
}

/// Returns the owner in an object's attributes; `None` if the bucket owner owns the object.
pub(crate) fn owner(attributes: &Attributes) -> Option<&str> {
    attributes.get(OWNER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::canned::canned;

    #[test]
    fn list_round_trips_through_the_attributes() {
        for owner in ["ann", "ben"] {
            for name in ["private", "public-read", "bucket-owner-full-control"] {
                let list = canned(name, owner, "ben").unwrap();
                let object = ObjectAcl { owner: owner.to_owned(), list };
                let mut attributes = Attributes::from_iter([(LIST, "x"), (OWNER, "y"), ("z", "z")]);
                object.set(&mut attributes, "ben");
                assert_eq!(ObjectAcl::of(&attributes, "ben"), object);
                let is_default = object == ObjectAcl::private("ben");
                assert_eq!(attributes.iter().count() == 1, is_default, "{owner} {name}");
            }
        }
    }

    #[test]
    fn malformed_list_allows_nothing() {
        let attributes = Attributes::from_iter([(LIST, "READ none")]);
        let object = ObjectAcl::of(&attributes, "ben");
        assert_eq!((object.owner.as_str(), object.list), ("ben", Acl::default()));
    }
}
