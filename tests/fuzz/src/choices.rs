//! Choices from bytes, in their order; when the bytes have run out, every choice is the first one.

/// The bytes that are left.
#[derive(Debug)]
pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Choices from the beginning of the bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices { rest: bytes }
    }

    /// True if nothing is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// A number below `limit`, of one or two bytes.
    pub fn number(&mut self, limit: u32) -> u32 {
        let mut byte = || match self.rest {
            [first, rest @ ..] => {
                self.rest = rest;
                u32::from(*first)
            }
            [] => 0,
        };
        let drawn = if limit > 256 { byte() << 8 | byte() } else { byte() };
        drawn % limit.max(1)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
