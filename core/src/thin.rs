//! A list that is empty most of the time, and takes one word then: of some of them, each waiting session has one.

use std::ops::Deref;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::box_collection, reason = "a list is three words, also where it is empty")]
pub(crate) struct Thin<T>(Option<Box<Vec<T>>>);

impl<T> Thin<T> {
    pub(crate) const EMPTY: Self = Thin(None);

    pub(crate) fn push(&mut self, one: T) {
        self.0.get_or_insert_default().push(one);
    }
}

impl<T> Default for Thin<T> {
    fn default() -> Self {
        Thin::EMPTY
    }
}

impl<T> From<Vec<T>> for Thin<T> {
    fn from(list: Vec<T>) -> Self {
        Thin((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T> Deref for Thin<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_one_word_and_a_list_is_what_it_was_made_of() {
        assert_eq!(size_of::<Thin<String>>(), size_of::<usize>());
        assert_eq!(Thin::from(Vec::<u8>::new()), Thin::EMPTY);
        let mut list = Thin::from(vec![1]);
        list.push(2);
        assert_eq!((list[..].to_vec(), Thin::<u8>::EMPTY.len()), (vec![1, 2], 0));
    }
}
