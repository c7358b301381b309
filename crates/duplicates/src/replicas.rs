//! Groups the equal files that count as one replica, such as the hard links of an inode.

use std::collections::HashMap;
use std::hash::Hash;

/// Groups the indexes of equal keys. The groups are in the order in which their keys first occur.
pub(crate) fn replicas<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> Vec<Vec<usize>> {
    let mut slots: HashMap<K, usize> = HashMap::new();
    let mut replicas: Vec<Vec<usize>> = Vec::new();
    for (index, key) in keys.enumerate() {
        let slot = *slots.entry(key).or_insert(replicas.len());
        match replicas.get_mut(slot) {
            Some(members) => members.push(index),
            None => replicas.push(vec![index]),
        }
    }
    replicas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_form_one_replica() {
        assert_eq!(replicas("abcab".chars()), [vec![0, 3], vec![1, 4], vec![2]]);
        assert!(replicas("".chars()).is_empty());
    }
}
