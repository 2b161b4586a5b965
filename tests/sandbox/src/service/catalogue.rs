//! The products of the sandbox, in the order in which they are listed.

use rust_decimal::Decimal;

/// One product with its exact price; the public list shows the starting price of its type instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) number: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) sharing: &'static str,
    pub(crate) price: Decimal,
    /// Addresses in stock to begin with; traffic has none.
    pub(crate) stock: Option<u32>,
    /// Country code and city; a worldwide product has none.
    pub(crate) place: Option<(&'static str, &'static str)>,
    pub(crate) protocols: &'static [&'static str],
    /// The project codes a shared product may be bought for; where there are any, one is required.
    pub(crate) projects: &'static [&'static str],
}

pub(crate) const DYNAMIC: &str = "dynamic";
pub(crate) const STATIC: &str = "static";
pub(crate) const PROTOCOLS: &[&str] = &["socks5", "http", "https"];

const PLACES: &[(&str, &str)] = &[
    ("US", "New York"),
    ("DE", "Frankfurt"),
    ("GB", "London"),
    ("JP", "Tokyo"),
    ("FR", "Paris"),
    ("BR", "Sao Paulo"),
    ("CA", "Toronto"),
    ("AU", "Sydney"),
    ("IN", "Mumbai"),
    ("SG", "Singapore"),
];

impl Product {
    pub(crate) fn country(&self) -> Option<&'static str> {
        self.place.map(|(country, _)| country)
    }

    pub(crate) fn is_in(&self, country: &str) -> bool {
        self.country().is_some_and(|own| own.eq_ignore_ascii_case(country))
    }
}

/// The unit that a price of the type is for.
pub(crate) fn unit(kind: &str) -> &'static str {
    if kind == DYNAMIC { "GB" } else { "month" }
}

/// The lowest price of a product of a type.
pub(crate) fn starting_price(kind: &str) -> Decimal {
    Decimal::from(if kind == DYNAMIC { 4 } else { 10 })
}

/// Twenty-three products: more than one page of the default size, with every special case among them.
pub(crate) fn products() -> Vec<Product> {
    let dynamic = |number: String, name: String, cents: i64, place| Product {
        number,
        name,
        kind: DYNAMIC,
        sharing: "exclusive",
        price: Decimal::new(cents, 2),
        stock: None,
        place,
        protocols: PROTOCOLS,
        projects: &[],
    };
    let fixed = |number: String, name: String, cents: i64, stock, place| Product {
        kind: STATIC,
        stock: Some(stock),
        ..dynamic(number, name, cents, Some(place))
    };

    let mut products = vec![dynamic("dynamic-world".into(), "Dynamic, worldwide".into(), 400, None)];
    for (place, cents) in PLACES.iter().zip((425..).step_by(25)) {
        let (country, city) = *place;
        products.push(dynamic(slug(DYNAMIC, country), format!("Dynamic, {city}"), cents, Some(*place)));
    }
    for (place, cents) in PLACES.iter().zip((1000..).step_by(50)) {
        let (country, city) = *place;
        products.push(fixed(slug(STATIC, country), format!("Static, {city}"), cents, 40, *place));
    }
    products.push(Product {
        sharing: "shared",
        projects: &["shop", "travel"],
        ..fixed("static-shared-us".into(), "Static, shared, New York".into(), 1000, 25, PLACES[0])
    });
    products.push(fixed("static-soldout".into(), "Static, sold out, Tokyo".into(), 1100, 0, PLACES[3]));
    if let Some(product) = products.iter_mut().find(|product| product.number == "static-gb") {
        product.protocols = &["socks5"];
    }
    products
}

fn slug(kind: &str, country: &str) -> String {
    format!("{kind}-{}", country.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_begin_at_the_starting_price_of_each_type() {
        for kind in [DYNAMIC, STATIC] {
            let of_kind = products().into_iter().filter(|product| product.kind == kind);
            let cheapest = of_kind.min_by_key(|product| product.price).unwrap();
            assert_eq!(cheapest.price, starting_price(kind));
        }
    }

    #[test]
    fn every_existing_resource_is_of_a_static_product() {
        for (_, number) in crate::service::account::RESOURCES {
            assert!(products().iter().any(|product| product.number == *number && product.kind == STATIC));
        }
    }
}
