//! Clients against the sandbox's service, on a virtual clock.
//!
//! [`walk`] goes through every sequence of outcomes and crashes within a [`Scope`] and checks, at the end of each path,
//! that nothing was bought twice, that nothing accepted was lost without a word, and that "nothing happened" was true.

mod choices;
mod crowd;
mod invariants;
mod path;
mod world;

pub use choices::Choices;
pub use crowd::{Ran, crowd};
pub use path::{Scope, Story, Walked, walk};
