//! How options are declared: `options!` makes of one list the struct, its reader, the checks of single values, and the entries from which
//! hosts print signatures and documentation.

/// An option as hosts know it.
#[derive(Debug, Clone, Copy)]
pub struct OptionEntry {
    /// The option's name in the core. A time says its unit, milliseconds.
    pub name: &'static str,
    /// The option's type; none of those that hosts give in a way of their own.
    pub kind: Option<OptionKind>,
    /// The option's prose, for every host: it says no unit of a time, and no default that is in `default`.
    pub doc: &'static str,
    /// The value of an omitted option, where it is a number or a flag.
    pub default: Option<i64>,
    /// The calls or clients that take it; all that are based on one of them take it too.
    pub takers: &'static [Taker],
}

/// The type of an option. Each host has its own word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// A text.
    Text,
    /// A text that is shown to nobody.
    Secret,
    /// Yes or no.
    Flag,
    /// Yes or no, and yes if omitted.
    FlagOn,
    /// A whole number.
    Count,
    /// A length of time.
    Time,
    /// A decimal number.
    Decimal,
    /// Names of headers, and their values, which may be secret.
    Headers,
    /// The value that a read is repeated for.
    Until,
    /// Texts.
    Texts,
    /// The name of an HTTP client.
    UseWith,
    /// The choice of a product.
    Product,
    /// The behaviour where a session is over, a word.
    IfEnded,
}

/// A kind of call or client, by which options are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// A client of the agent API.
    AgentClient,
    /// A client of the reseller API.
    ResellerClient,
    /// A client of either API.
    Client,
    /// Any call, a page of a walk among them.
    Call,
    /// A call that only reads.
    Read,
    /// A call that writes.
    Write,
    /// A write with an idempotency key.
    Keyed,
    /// A write that can charge money.
    Paid,
    /// A call that lengthens a session.
    Renew,
    /// A call that buys a session.
    Purchase,
    /// A call that waits for an order.
    Watch,
    /// A call that waits for a session.
    Wait,
    /// A call that buys a session and waits for it.
    Open,
    /// A call that places an order and waits for it.
    Place,
    /// A request of the caller's own.
    Request,
}

impl Taker {
    /// The takers whose options this one takes beside its own.
    pub const fn bases(self) -> &'static [Taker] {
        use Taker::*;
        match self {
            Client | Call => &[],
            AgentClient | ResellerClient => &[Client],
            Read | Write | Watch => &[Call],
            Wait => &[Watch],
            Keyed => &[Write],
            Paid => &[Keyed],
            Renew => &[Paid],
            Purchase => &[Renew],
            Open => &[Wait, Purchase],
            Place => &[Watch, Write],
            Request => &[Read, Keyed],
        }
    }
}

/// The options of a struct: `name: Type = default => Kind for [Takers], |value| rule;`. A `rule` is the reason to refuse the value, such as "must be
/// at least 1". Options without a kind are for hosts to give. Members in braces at the end are no options.
macro_rules! options {
    ($(#[doc = $about:literal])* #[derive($($derive:ident),*)] $vis:vis struct $name:ident {
        $($(#[doc = $doc:literal])* $field:ident: $ty:ty $(= $default:literal)? $(=> $kind:ident $(for [$($taker:ident),*])?)? $(, $check:expr)?;)*
        $({ $(#[doc = $other_doc:literal])* #[cfg($cfg:meta)] $other:ident: $other_ty:ty })?
    }) => {
        $(#[doc = $about])*
        #[derive($($derive),*)]
        $vis struct $name {
            $($(#[doc = $doc])* $(#[doc = concat!(" Default: ", stringify!($default), ".")])? pub $field: $ty,)*
            $($(#[doc = $other_doc])* #[cfg($cfg)] pub $other: $other_ty,)?
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $($field: $crate::contract::options!(@default $($default)?),)*
                    $(#[cfg($cfg)] $other: None,)?
                }
            }
        }

        impl $name {
            /// The options, in the order in which hosts take them.
            pub const OPTIONS: &'static [$crate::contract::OptionEntry] = &[$($crate::contract::OptionEntry {
                name: stringify!($field),
                kind: [$($crate::contract::OptionKind::$kind,)?].first().copied(),
                doc: $crate::contract::prose!($($doc)*),
                default: [$($default as i64,)?].first().copied(),
                takers: &[$($($($crate::contract::Taker::$taker),*)?)?],
            },)*];

            /// The first value that can't be, and why.
            pub(crate) fn wrong_value(&self) -> Option<(&'static str, &'static str)> {
                $($(if let Some(rule) = $crate::contract::checked(&self.$field, $check) { return Some((stringify!($field), rule)) })?)*
                None
            }

            /// The first option that is set, of those that only this taker takes.
            #[allow(dead_code, reason = "calls ignore options of others")]
            pub(crate) fn first_set(&self, taker: $crate::contract::Taker) -> Option<&'static str> {
                let default = $name::default();
                $(if const { $crate::contract::only_one(&[$($($($crate::contract::Taker::$taker),*)?)?]) } == Some(taker)
                    && self.$field != default.$field { return Some(stringify!($field)) })*
                None
            }
        }

        $crate::json::from_json!($name or default { $($field),* });
    };
    (@default) => { Default::default() };
    (@default $default:literal) => { $default };
}
pub(crate) use options;

/// The taker, if it is the only one.
pub(crate) const fn only_one(takers: &[Taker]) -> Option<Taker> {
    if let [taker] = takers { Some(*taker) } else { None }
}

/// The reason to refuse a value, if there is one.
pub(crate) fn checked<T>(value: &T, check: impl Fn(&T) -> Option<&'static str>) -> Option<&'static str> {
    check(value)
}

/// The rule of a number that can be 0.
pub(crate) fn at_least_0<T: PartialOrd + Default>(number: T) -> Option<&'static str> {
    (number < T::default()).then_some("must be at least 0")
}

/// The rule of a number that can't be 0.
pub(crate) fn at_least_1(number: impl Into<i64>) -> Option<&'static str> {
    (number.into() < 1).then_some("must be at least 1")
}
