//! The profiles of Cargo with which what ships is built.

/// How what ships is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As it ships: small, which takes long.
    Release,
    /// As it is tested: the same without what only makes it smaller.
    Ci,
}

impl Profile {
    /// Its name, which is also that of its folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Ci => "ci",
        }
    }
}
