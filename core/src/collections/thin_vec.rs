//! A list that is empty most of the time and takes one word then. A crate (`thin-vec`) does not fit, because it needs `unsafe` code: a
//! boxed `Vec` does the same in ten lines. Some jobs have one for each waiting session.

use std::ops::Deref;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::box_collection, reason = "a list is three words, also where it is empty")]
pub(crate) struct ThinVec<T>(Option<Box<Vec<T>>>);

impl<T> ThinVec<T> {
    pub(crate) const EMPTY: Self = ThinVec(None);

    pub(crate) fn push(&mut self, one: T) {
        self.0.get_or_insert_default().push(one);
    }
}

impl<T> Default for ThinVec<T> {
    fn default() -> Self {
        ThinVec::EMPTY
    }
}

impl<T> From<Vec<T>> for ThinVec<T> {
    fn from(list: Vec<T>) -> Self {
        ThinVec((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl<T> Deref for ThinVec<T> {
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
        assert_eq!(size_of::<ThinVec<String>>(), size_of::<usize>());
        assert_eq!(ThinVec::from(Vec::<u8>::new()), ThinVec::EMPTY);
        let mut list = ThinVec::from(vec![1]);
        list.push(2);
        assert_eq!((list[..].to_vec(), ThinVec::<u8>::EMPTY.len()), (vec![1, 2], 0));
    }
}
