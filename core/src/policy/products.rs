//! The needs of a reseller's product, and the addresses of a range (parts "Product query item" and "IP range item" of the contract).

use std::net::IpAddr;

use ipnet::IpNet;

use crate::contract::reseller::{ProductRanges, StaticProduct};
use crate::contract::{Shaped, host_record};
use crate::json::{items, pick, text_of};

/// Returns true if a product is shared static: its type is 2 or `shared`, or it has projects. `staticType` does not decide this.
fn shared<T>(product_type: Option<&str>, projects: Option<&[T]>) -> bool {
    product_type.is_some_and(|kind| kind == "2" || kind.eq_ignore_ascii_case("shared"))
        || projects.is_some_and(|projects| !projects.is_empty())
}

impl StaticProduct {
    /// Returns true if the product is shared static.
    pub fn is_shared(&self) -> bool {
        shared(self.product_type.as_deref(), self.project_list.as_deref())
    }

    /// Returns true if an order of the product must name a project.
    pub fn needs_project_id(&self) -> bool {
        self.is_shared()
    }
}

impl ProductRanges {
    /// Returns true if the product is shared static.
    pub fn is_shared(&self) -> bool {
        shared(self.product_type.as_deref(), self.project_list.as_deref())
    }
}

/// Returns [`StaticProduct::is_shared`] of a product as JSON, in any of its spellings; false for any other JSON.
pub fn is_shared_text(product: &str) -> bool {
    let seen = crate::wire::view(&<StaticProduct as Shaped>::SHAPE, product);
    let shown = pick(seen.as_deref().unwrap_or(product), ["productType", "projectList"]);
    let Some([kind, projects]) = shown else { return false };
    let projects = projects.and_then(|projects| items(projects).ok());
    shared(kind.and_then(text_of).as_deref(), projects.as_deref())
}

host_record! {
    /// A range of addresses.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct IpRange {
        /// The range as the service wrote it.
        pub text: String,
        /// The first address; `None` if the text is not a range that can be read.
        pub first: Option<IpAddr>,
        /// The last address; `None` if the text is not a range that can be read.
        pub last: Option<IpAddr>,
    }
}

/// Reads a range: a CIDR block, a first and a last address with a hyphen between them, or one address. A text that can't be read is kept as
/// `text`.
pub fn parse_ip_range(text: &str) -> IpRange {
    let ends = || {
        let plain = text.trim();
        if let Ok(net) = plain.parse::<IpNet>() {
            return Some((net.network(), net.broadcast()));
        }
        let (first, last) = plain.split_once(['-', '–', '~']).unwrap_or((plain, plain));
        let (first, last): (IpAddr, IpAddr) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first.is_ipv4() == last.is_ipv4() && first <= last).then_some((first, last))
    };
    let (first, last) = ends().unzip();
    IpRange { text: text.to_owned(), first, last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::json_of;

    #[test]
    fn a_product_is_shared_by_its_type_or_its_projects_and_by_nothing_else() {
        let shared = [
            r#"{"productType":2}"#,
            r#"{"product_type":"2"}"#,
            r#"{"productType":"shared"}"#,
            r#"{"projects":[1]}"#,
            r#"{"product_type":1,"project_list":[{}]}"#,
            r#"{"projectList":[],"projects":[{}]}"#,
            r#"{"product_type":2,"projects":"a,b"}"#,
        ];
        let exclusive = [
            r#"{"productType":1}"#,
            r#"{"productType":"exclusive"}"#,
            r#"{"projectList":[]}"#,
            r#"{"staticType":"shared"}"#,
            "{}",
            "[]",
            "",
        ];
        assert!(shared.iter().all(|product| is_shared_text(product)));
        assert!(!exclusive.iter().any(|product| is_shared_text(product)));
    }

    #[test]
    fn a_range_is_read_as_a_block_as_two_ends_or_as_one_address() {
        let ends = |text: &str| {
            let range = parse_ip_range(text);
            range.first.zip(range.last).map(|(first, last)| format!("{first} {last}"))
        };
        assert_eq!(ends("192.0.2.0/30").as_deref(), Some("192.0.2.0 192.0.2.3"));
        assert_eq!(ends("192.0.2.9/30").as_deref(), Some("192.0.2.8 192.0.2.11"));
        assert_eq!(ends("192.0.2.1 - 192.0.2.9").as_deref(), Some("192.0.2.1 192.0.2.9"));
        assert_eq!(ends("2001:db8::/127").as_deref(), Some("2001:db8:: 2001:db8::1"));
        assert_eq!(ends("192.0.2.1").as_deref(), Some("192.0.2.1 192.0.2.1"));
        for odd in ["", "192.0.2.9-192.0.2.1", "192.0.2.0/33", "192.0.2.1-2001:db8::", "any", "192.0.2.1-5"] {
            assert_eq!((ends(odd), parse_ip_range(odd).text.as_str()), (None, odd));
        }
        assert_eq!(json_of(&parse_ip_range("odd")), r#"{"text":"odd"}"#);
    }

    #[test]
    fn a_product_as_a_type_says_the_same() {
        let shown = |product: &str| {
            let product: StaticProduct = serde_json::from_str(product).expect(product);
            (product.is_shared(), product.needs_project_id())
        };
        assert_eq!([r#"{"productType":"2"}"#, r#"{"productType":"1"}"#].map(shown), [(true, true), (false, false)]);
        let shared = |ranges: &str| serde_json::from_str::<ProductRanges>(ranges).expect(ranges).is_shared();
        assert_eq!([r#"{"productType":"shared"}"#, "{}"].map(shared), [true, false]);
    }
}
