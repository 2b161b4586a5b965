//! The places of the products: codes, and names in both languages.

use crate::service::catalogue::Product;

/// A place where a product has its addresses.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) country_code: &'static str,
    pub(super) country_en: &'static str,
    pub(super) country_zh: &'static str,
    pub(super) state: &'static str,
    pub(super) city_code: &'static str,
    pub(super) city_en: &'static str,
    pub(super) city_zh: &'static str,
}

#[rustfmt::skip]
const PLACES: &[Place] = &[
    place(["US", "United States", "美国", "New York", "NYC", "New York", "纽约"]),
    place(["DE", "Germany", "德国", "Hesse", "FRA", "Frankfurt", "法兰克福"]),
    place(["GB", "United Kingdom", "英国", "England", "LON", "London", "伦敦"]),
    place(["JP", "Japan", "日本", "Tokyo", "TYO", "Tokyo", "东京"]),
    place(["FR", "France", "法国", "Ile-de-France", "PAR", "Paris", "巴黎"]),
    place(["BR", "Brazil", "巴西", "Sao Paulo", "SAO", "Sao Paulo", "圣保罗"]),
    place(["CA", "Canada", "加拿大", "Ontario", "YTO", "Toronto", "多伦多"]),
    place(["AU", "Australia", "澳大利亚", "New South Wales", "SYD", "Sydney", "悉尼"]),
    place(["IN", "India", "印度", "Maharashtra", "BOM", "Mumbai", "孟买"]),
    place(["SG", "Singapore", "新加坡", "Singapore", "SIN", "Singapore", "新加坡"]),
];

const fn place([country_code, country_en, country_zh, state, city_code, city_en, city_zh]: [&'static str; 7]) -> Place {
    Place { country_code, country_en, country_zh, state, city_code, city_en, city_zh }
}

/// Where a product has its addresses; a worldwide one has no place.
pub(super) fn of(product: &Product) -> Option<&'static Place> {
    let country = product.country()?;
    PLACES.iter().find(|place| place.country_code == country)
}

impl Place {
    /// True if a code names this place: its country, its city, or the two with a hyphen.
    pub(super) fn is_named(&self, code: &str) -> bool {
        [self.country_code, self.city_code, &self.region()].iter().any(|own| own.eq_ignore_ascii_case(code))
    }

    pub(super) fn region(&self) -> String {
        format!("{}-{}", self.country_code, self.city_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::catalogue::products;

    #[test]
    fn every_product_with_a_place_has_names_for_it() {
        for product in products() {
            let (own, named) = (product.place.map(|(_, city)| city), of(&product).map(|place| place.city_en));
            assert_eq!(own, named, "{}", product.number);
        }
    }
}
