//! A set that has one member at most most of the time, and takes no memory of its own then.

#[derive(Debug, Clone, Default, Hash)]
#[expect(clippy::box_collection, reason = "a list is larger than all that there is most of the time")]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    /// Two at least, in order.
    Many(Box<Vec<T>>),
}

impl<T: Copy + Ord> Few<T> {
    pub(crate) fn one(member: T) -> Self {
        Few::One(member)
    }

    pub(crate) fn insert(&mut self, member: T) {
        match self {
            Few::None => *self = Few::One(member),
            Few::One(first) if *first == member => {}
            Few::One(first) => *self = Few::Many(Box::new(vec![member.min(*first), member.max(*first)])),
            Few::Many(members) => {
                let _ = members.binary_search(&member).map_err(|at| members.insert(at, member));
            }
        }
    }

    /// Whether it was one of them.
    pub(crate) fn remove(&mut self, member: &T) -> bool {
        let was_there = match self {
            Few::None => false,
            Few::One(first) => first == member,
            Few::Many(members) => members.binary_search(member).map(|at| members.remove(at)).is_ok(),
        };
        match self {
            Few::One(_) if was_there => *self = Few::None,
            Few::Many(members) => {
                if let [last] = members[..] {
                    *self = Few::One(last);
                }
            }
            _ => {}
        }
        was_there
    }

    pub(crate) fn clear(&mut self) {
        *self = Few::None;
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Few::None)
    }

    pub(crate) fn is_many(&self) -> bool {
        matches!(self, Few::Many(_))
    }

    /// The least.
    pub(crate) fn first(&self) -> Option<T> {
        self.iter().next()
    }

    pub(crate) fn contains(&self, member: &T) -> bool {
        match self {
            Few::None => false,
            Few::One(first) => first == member,
            Few::Many(members) => members.binary_search(member).is_ok(),
        }
    }

    /// The least first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let (one, many) = match self {
            Few::None => (None, None),
            Few::One(first) => (Some(*first), None),
            Few::Many(members) => (None, Some(&**members)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_each_member_once_whatever_comes_and_goes() {
        let mut few = Few::default();
        assert!(few.is_empty() && !few.remove(&1));
        for member in [3, 1, 3, 2] {
            few.insert(member);
        }
        assert_eq!((few.iter().collect::<Vec<_>>(), few.contains(&2), few.contains(&4)), (vec![1, 2, 3], true, false));
        assert!(few.remove(&2) && !few.remove(&2) && few.remove(&1) && few.remove(&3) && few.is_empty());
        few.insert(7);
        few.insert(7);
        assert!(!few.is_many());
        assert_eq!(few.iter().collect::<Vec<_>>(), [7]);
        few.clear();
        assert!(few.is_empty());
    }
}
