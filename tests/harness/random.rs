//! Random numbers for tests.

/// A small generator (xorshift): a run is told by
/// its seed, which must not be 0.
pub struct Random(pub u64);

impl Random {
    /// The next number, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
