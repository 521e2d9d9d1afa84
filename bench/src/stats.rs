//! Medians, percentiles and ratios.

/// The median; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// A percentile of nanoseconds, in microseconds; NaN of nothing.
pub fn percentile_us(nanos: &mut [u64], part: f64) -> f64 {
    if nanos.is_empty() {
        return f64::NAN;
    }
    let at = ((nanos.len() - 1) as f64 * part).round() as usize;
    let (_, value, _) = nanos.select_nth_unstable(at);
    *value as f64 / 1000.0
}

/// The largest over the smallest; 1 is perfectly steady.
pub fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    most / least
}

/// The median of the ratios of values that were measured in the same repetition.
pub fn ratio(of: &[f64], to: &[f64]) -> f64 {
    median(&of.iter().zip(to).map(|(of, to)| of / to).collect::<Vec<_>>())
}

/// Numbers that look random and are the same in each run.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    /// `count` of the numbers below `end`, each at most once.
    pub fn some_below(&mut self, count: usize, end: usize) -> Vec<usize> {
        let count = count.min(end);
        let mut seen = std::collections::HashSet::with_capacity(count);
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count {
            let one = self.below(end);
            if seen.insert(one) {
                chosen.push(one);
            }
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        // A repetition in which everything was slow does not count against one of the two.
        assert_eq!(ratio(&[2.0, 20.0, 2.0], &[1.0, 10.0, 1.0]), 2.0);
        assert_eq!(spread(&[2.0, 3.0]), 1.5);
        assert_eq!(percentile_us(&mut [3000, 1000, 2000], 0.5), 2.0);
    }

    #[test]
    fn chosen_numbers_are_distinct() {
        let chosen = Random(7).some_below(50, 60);
        assert_eq!(chosen.iter().collect::<std::collections::HashSet<_>>().len(), 50);
        assert!(chosen.iter().all(|one| *one < 60));
        assert_eq!(Random(7).some_below(9, 4).len(), 4);
    }
}
