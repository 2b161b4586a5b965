//! The collections that the standard library lacks, each with the reason why it is no dependency on its first line.

mod free_ranges;
mod id_map;
mod map;
mod small_set;
mod thin_vec;

pub(crate) use self::free_ranges::FreeRanges;
pub(crate) use self::id_map::{Id, IdMap};
pub(crate) use self::map::Map;
#[cfg(test)]
pub(crate) use self::map::walked;
pub(crate) use self::small_set::SmallSet;
pub(crate) use self::thin_vec::ThinVec;
