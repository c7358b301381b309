//! Lists the claims of the five texts that a benchmark can show. Performs no I/O.

mod common;
mod page_cache;
mod random_access;
mod small_files;
mod tracing;
mod writing;

use super::claim::Claim;

/// The claims of each text, in the order of the texts.
const TEXTS: [&[Claim]; 5] = [
    writing::CLAIMS,
    tracing::CLAIMS,
    page_cache::CLAIMS,
    random_access::CLAIMS,
    small_files::CLAIMS,
];

/// Returns all claims, in the order of the texts.
pub(crate) fn claims() -> impl Iterator<Item = &'static Claim> {
    TEXTS.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::claim::Text;
    use super::*;

    #[test]
    fn each_claim_is_complete_and_has_a_ratio_of_its_own() {
        let ratios: BTreeSet<_> = claims().map(|it| (it.part.name(), it.ratio)).collect();
        assert_eq!(ratios.len(), claims().count());
        for (claims, text) in TEXTS.into_iter().zip(Text::ALL) {
            assert!(claims.iter().all(|claim| claim.text == text), "{}", text.title());
        }
        for claim in claims() {
            let texts =
                [claim.sentence, claim.label, claim.figure, claim.ratio, claim.if_yes, claim.if_no];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", claim.sentence);
            assert!(claim.sentence.ends_with('.') && claim.holds.0 < claim.holds.1);
        }
    }
}
