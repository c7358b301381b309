//! Access control lists of buckets and objects. `list` is the model, `canned` has the lists that S3
//! defines by name, `stored` is their text, and `document` converts them from and to the headers
//! and the XML of S3. `requested` is the list in a request, `permission` maps operations to the
//! permissions that they need, and `rules` has the settings of a bucket that apply to lists, and
//! decides. `object_list` has the list and the owner of an object, and `owner` what documents say about
//! owners.

pub(crate) mod canned;
pub(crate) mod document;
pub(crate) mod list;
pub(crate) mod object_list;
pub(crate) mod owner;
pub(crate) mod permission;
pub(crate) mod requested;
pub(crate) mod rules;
pub(crate) mod stored;
