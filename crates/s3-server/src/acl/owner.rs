//! The owners of buckets and objects.

use crate::settings::OWNER;
use crate::xml::writer::Xml;
use haul_store_pool::Pool;

/// The owner that responses name for buckets without an owner: the administrator.
pub(crate) const ADMINISTRATOR: &str = "haul";

/// Returns the owner of a bucket and its objects, for responses. If corruption hides the owner, the
/// response names the administrator.
pub(crate) fn owner_of(store: &Pool, bucket: &str) -> Owner {
    owner_named(store.bucket_settings(bucket).ok().as_deref().and_then(|all| all.get(OWNER)))
}

/// Returns an owner for responses; without a name, the administrator.
pub(crate) fn owner_named(user: Option<&str>) -> Owner {
    Owner { name: user.unwrap_or(ADMINISTRATOR).to_owned() }
}

/// The owner of a bucket or an object, as in XML documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The user name, which is also the owner's ID.
    pub(crate) name: String,
}

impl Owner {
    /// Writes the owner as an element with this name.
    pub(crate) fn write(&self, xml: &mut Xml, element: &'static str) {
        xml.group(element, |xml| {
            xml.element("ID", &self.name);
            xml.element("DisplayName", &self.name);
        });
    }
}
