//! Quotes: the cost of a purchase, from the price that was read.

use super::error::Error;
use crate::contract::agent::{Product, SessionType};
use crate::contract::{Decimal, host_record};
use crate::json::from_json;

host_record! {
    /// The cost of a purchase. A quote binds the service if the product came from the authenticated list; the public list shows starting
    /// prices.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Quote {
        /// The product.
        pub product_no: String,
        /// GB (dynamic) or addresses (static).
        pub quantity: Decimal,
        /// USD for one `unit`.
        pub unit_price: Decimal,
        /// USD for the quantity. For a static product the total covers one `unit` of time, since the service does not document the unit of
        /// `duration`.
        pub total: Decimal,
        /// The currency of the product, USD.
        pub currency: String,
        /// The unit of the price.
        pub unit: String,
    }
}

/// The members of a product that pricing needs.
#[derive(Default)]
pub(crate) struct Priced {
    product_no: String,
    session_type: String,
    price: Decimal,
    currency: String,
    unit: String,
}
from_json!(Priced { product_no, session_type as "type", price, currency, unit });

/// Prices a quantity of a product. No float takes part; the result is exact up to 28 digits and rounded up beyond that.
pub fn quote(product: &Product, quantity: Decimal) -> Result<Quote, Error> {
    let Product { product_no, r#type, price, currency, unit, .. } = product;
    let (product_no, session_type, price) = (product_no.clone(), r#type.as_str().to_owned(), *price);
    quote_of(Priced { product_no, session_type, price, currency: currency.clone(), unit: unit.clone() }, quantity)
}

pub(crate) fn quote_of(product: Priced, quantity: Decimal) -> Result<Quote, Error> {
    let refuse = |field, rule| Err(Error::invalid("quote", field, rule));
    if quantity <= Decimal::from(0) {
        return refuse("quantity", "must be above 0");
    }
    if product.session_type.eq_ignore_ascii_case(SessionType::Static.as_str()) && !quantity.0.is_integer() {
        return refuse("quantity", "must be a whole number of addresses, since the product is static");
    }
    if product.price < Decimal::from(0) {
        return refuse("price", "of the product is below 0, which is no price");
    }
    if !is_usd(&product.currency) {
        return refuse("currency", "of the product is not USD, so what it costs in USD is not known");
    }
    match times(product.price, quantity) {
        Some(total) => Ok(Quote {
            product_no: product.product_no,
            quantity,
            unit_price: product.price,
            total,
            currency: product.currency,
            unit: product.unit,
        }),
        None => refuse("quantity", "is too large to be priced"),
    }
}

/// Returns true if a currency is USD or missing: the contract knows no other.
pub(crate) fn is_usd(currency: &str) -> bool {
    currency.is_empty() || currency.eq_ignore_ascii_case("USD")
}

/// The product of two numbers, rounded up to 28 digits; `None` if more digits stand before the point.
pub(crate) fn times(one: Decimal, other: Decimal) -> Option<Decimal> {
    let (one, other) = (one.0.normalize(), other.0.normalize());
    let scale = one.scale() + other.scale();
    let sign = if one.is_sign_negative() == other.is_sign_negative() { "" } else { "-" };
    let digits = product(one.mantissa().unsigned_abs(), other.mantissa().unsigned_abs());
    Decimal::rounded_up(&format!("{sign}{digits}e-{scale}")).map(|(number, _)| number)
}

/// The digits of the product of two numbers.
fn product(one: u128, other: u128) -> String {
    let low_first = |number: u128| number.to_string().bytes().rev().map(|digit| u32::from(digit - b'0')).collect::<Vec<_>>();
    let (one, other) = (low_first(one), low_first(other));
    let mut sums = vec![0_u32; one.len() + other.len()];
    for (n, first) in one.iter().enumerate() {
        for (sum, second) in sums.iter_mut().skip(n).zip(&other) {
            *sum += first * second;
        }
    }
    let mut carry = 0;
    let digits = sums.iter().map(|sum| {
        let digit = sum + carry;
        carry = digit / 10;
        char::from_digit(digit % 10, 10).unwrap_or_default()
    });
    let digits: Vec<char> = digits.collect();
    digits.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(session_type: SessionType, price: &str) -> Product {
        let (price, currency) = (price.parse().expect(price), "USD".to_owned());
        Product { product_no: "p-1".into(), r#type: session_type, price, currency, unit: "GB".into(), ..Product::default() }
    }

    fn total(price: &str, quantity: &str) -> Result<String, String> {
        let quantity = quantity.parse().expect(quantity);
        quote(&product(SessionType::Dynamic, price), quantity).map(|quote| quote.total.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_price_is_exact() {
        assert_eq!(total("4.10", "0.3").as_deref(), Ok("1.23"));
        assert_eq!(total("0.1", "3").as_deref(), Ok("0.3"));
        assert_eq!(total("4", "2.50").as_deref(), Ok("10"));
        assert_eq!(total("0", "1").as_deref(), Ok("0"));
    }

    #[test]
    fn a_price_of_too_many_digits_is_rounded_up() {
        assert_eq!(total("0.00000000000001", "0.000000000000000001").as_deref(), Ok("0.0000000000000000000000000001"));
        assert_eq!(total("67.20000000000000284217094304", "0.3").as_deref(), Ok("20.16000000000000085265128292"));
        assert_eq!(total("7.922816251426433759354395033", "1.000000000000000000000000001").as_deref(), Ok("7.922816251426433759354395041"));
    }

    #[test]
    fn what_can_not_be_priced_is_refused() {
        assert!(total("79228162514264337593543950335", "2").is_err_and(|error| error.contains("too large")));
        assert!(total("4", "0").is_err() && total("4", "-1").is_err() && total("-4", "1").is_err());
        let half = quote(&product(SessionType::Static, "10"), "1.5".parse().expect("is a number"));
        let euros = Product { currency: "EUR".into(), ..product(SessionType::Dynamic, "4") };
        assert!(quote(&euros, 1.into()).is_err_and(|error| error.field.as_deref() == Some("currency")));
        assert!(quote(&Product { currency: String::new(), ..product(SessionType::Dynamic, "4") }, 1.into()).is_ok());
        assert!(half.is_err_and(|error| error.field.as_deref() == Some("quantity")));
    }
}
