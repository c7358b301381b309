//! Which of several equal files count as one. Pure.

use std::collections::HashMap;
use std::hash::Hash;

/// The indices of equal keys together, in the order in which each key came first.
pub(crate) fn replicas<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> Vec<Vec<usize>> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut replicas: Vec<Vec<usize>> = Vec::new();
    for (index, key) in keys.enumerate() {
        let place = *places.entry(key).or_insert(replicas.len());
        match replicas.get_mut(place) {
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
    fn equal_keys_count_as_one() {
        assert_eq!(replicas("abcab".chars()), [vec![0, 3], vec![1, 4], vec![2]]);
        assert!(replicas("".chars()).is_empty());
    }
}
