//! The choices of one path, and the next path after it: a depth-first walk by running the same story again and again.

/// What was chosen so far, of how many.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    made: Vec<(u8, u8)>,
    next: usize,
}

impl Choices {
    /// One of `of`, from 0: as planned, or the first one where the plan ends.
    pub fn choose(&mut self, of: u8) -> u8 {
        let at = self.next;
        self.next += 1;
        match self.made.get(at) {
            Some((chosen, planned)) => {
                assert_eq!(*planned, of, "the same choices must lead to the same question");
                *chosen
            }
            None => {
                self.made.push((0, of));
                0
            }
        }
    }

    /// Plans the same path once more.
    pub fn again(&mut self) {
        self.next = 0;
    }

    /// Plans the next path. False when there is none.
    pub fn advance(&mut self) -> bool {
        self.made.truncate(self.next);
        self.next = 0;
        while let Some((chosen, of)) = self.made.pop() {
            if chosen + 1 < of {
                self.made.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Choices;

    #[test]
    fn every_sequence_is_walked_once() {
        let mut choices = Choices::default();
        let mut seen = Vec::new();
        loop {
            let first = choices.choose(2);
            // A second question only after one of the answers.
            let second = if first == 1 { Some(choices.choose(3)) } else { None };
            seen.push((first, second));
            if !choices.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, None), (1, Some(0)), (1, Some(1)), (1, Some(2))]);
    }
}
