//! Clients against the sandbox's service, on a virtual clock.
//!
//! [`walk`] goes through every sequence of outcomes and crashes within a [`Scope`] and checks, at the end of each path,
//! that nothing was bought twice, that nothing accepted was lost without a word, and that "nothing happened" was true.
//! [`logins`] does so with the logins of several calls at once, and [`spending`] with purchases under a daily cap.

mod choices;
mod crowd;
mod doubt;
mod fate;
mod invariants;
mod logins;
mod path;
mod spending;
mod story;
mod world;

pub use choices::Choices;
pub use crowd::{Ran, crowd};
pub use logins::logins;
pub use path::{Scope, Walked, walk};
pub use spending::spending;
pub use story::Story;
