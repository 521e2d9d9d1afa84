//! The known word that a mistyped one is nearest to, for messages.

/// The candidate nearest to `word`, if one is near enough to be meant: a third of its letters may
/// differ, and case does not count.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let longest = word.chars().count();
    // Longer words are no typing mistakes, and the distance is quadratic.
    if longest > 64 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(far, candidate)| *far <= longest.max(candidate.chars().count()).div_ceil(3))
        .min_by_key(|(far, _)| *far)
        .map(|(_, candidate)| candidate)
}

/// How many letters must be added, dropped or changed to make `a` into `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_mistake_finds_its_word_and_another_word_finds_none() {
        let known = ["new", "in_progress", "blocked", "done"];
        assert_eq!(nearest("inprogress", known), Some("in_progress"));
        assert_eq!(nearest("DONE", known), Some("done"));
        assert_eq!(nearest("blokced", known), Some("blocked"));
        assert_eq!(nearest("completed", known), None);
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
    }

    #[test]
    fn the_distance_counts_single_changes() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
