//! A set that mostly has at most one member and takes no memory of its own then. A crate (`smallvec`) does not fit, because it keeps a list
//! of three words for each session where two are enough, and has no order.

#[derive(Debug, Clone, Default, Hash)]
#[expect(clippy::box_collection, reason = "a list is larger than all that there is most of the time")]
pub(crate) enum SmallSet<T> {
    #[default]
    None,
    One(T),
    /// At least two members, in order.
    Many(Box<Vec<T>>),
}

impl<T: Copy + Ord> SmallSet<T> {
    pub(crate) fn one(member: T) -> Self {
        SmallSet::One(member)
    }

    pub(crate) fn insert(&mut self, member: T) {
        match self {
            SmallSet::None => *self = SmallSet::One(member),
            SmallSet::One(first) if *first == member => {}
            SmallSet::One(first) => *self = SmallSet::Many(Box::new(vec![member.min(*first), member.max(*first)])),
            SmallSet::Many(members) => {
                let _ = members.binary_search(&member).map_err(|at| members.insert(at, member));
            }
        }
    }

    /// Removes a member, and returns true if it was there.
    pub(crate) fn remove(&mut self, member: &T) -> bool {
        let was_there = match self {
            SmallSet::None => false,
            SmallSet::One(first) => first == member,
            SmallSet::Many(members) => members.binary_search(member).map(|at| members.remove(at)).is_ok(),
        };
        match self {
            SmallSet::One(_) if was_there => *self = SmallSet::None,
            SmallSet::Many(members) => {
                if let [last] = members[..] {
                    *self = SmallSet::One(last);
                }
            }
            _ => {}
        }
        was_there
    }

    pub(crate) fn clear(&mut self) {
        *self = SmallSet::None;
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, SmallSet::None)
    }

    pub(crate) fn is_many(&self) -> bool {
        matches!(self, SmallSet::Many(_))
    }

    /// The smallest member.
    pub(crate) fn first(&self) -> Option<T> {
        self.iter().next()
    }

    pub(crate) fn contains(&self, member: &T) -> bool {
        match self {
            SmallSet::None => false,
            SmallSet::One(first) => first == member,
            SmallSet::Many(members) => members.binary_search(member).is_ok(),
        }
    }

    /// The members, the smallest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        let (one, many) = match self {
            SmallSet::None => (None, None),
            SmallSet::One(first) => (Some(*first), None),
            SmallSet::Many(members) => (None, Some(&**members)),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_each_member_once_whatever_comes_and_goes() {
        let mut set = SmallSet::default();
        assert!(set.is_empty() && !set.remove(&1));
        for member in [3, 1, 3, 2] {
            set.insert(member);
        }
        assert_eq!((set.iter().collect::<Vec<_>>(), set.contains(&2), set.contains(&4)), (vec![1, 2, 3], true, false));
        assert!(set.remove(&2) && !set.remove(&2) && set.remove(&1) && set.remove(&3) && set.is_empty());
        set.insert(7);
        set.insert(7);
        assert!(!set.is_many());
        assert_eq!(set.iter().collect::<Vec<_>>(), [7]);
        set.clear();
        assert!(set.is_empty());
    }
}
