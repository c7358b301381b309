//! A simple matcher of globs, to compare with that of `haul-duplicates`.

/// Matches a name against a glob with no special characters but `*`, `**` and `?`; `None` if the
/// glob has others, or either is not ASCII.
#[must_use]
pub(crate) fn matches_simply(glob: &[u8], name: &[u8]) -> Option<bool> {
    let is_simple = |byte: &u8| byte.is_ascii_alphanumeric() || b"*?/._-".contains(byte);
    let is_known = glob.iter().all(is_simple) && name.is_ascii();
    // Between slashes, `**` has a meaning of its own.
    let has_slashes =
        glob.windows(3).any(|three| three.starts_with(b"**") || three.ends_with(b"**"))
            && glob.contains(&b'/');
    (is_known && !has_slashes).then(|| matches(glob, name))
}

fn matches(glob: &[u8], name: &[u8]) -> bool {
    // Element n is true if the glob so far matches the first n bytes of the name.
    let mut row = vec![false; name.len() + 1];
    row[0] = true;
    let mut rest = glob;
    while let Some((first, after)) = rest.split_first() {
        let stars = rest.iter().take_while(|byte| **byte == b'*').count();
        let mut next = vec![false; row.len()];
        if stars > 0 {
            next[0] = row[0];
            for at in 0..name.len() {
                next[at + 1] = row[at + 1] || next[at] && (stars > 1 || name[at] != b'/');
            }
        } else {
            for at in 0..name.len() {
                let is_equal = *first == name[at] || *first == b'?' && name[at] != b'/';
                next[at + 1] = row[at] && is_equal;
            }
        }
        row = next;
        rest = if stars > 0 { &rest[stars..] } else { after };
    }
    row[name.len()]
}
