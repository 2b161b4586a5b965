//! The plot: which part of a dead rack's sessions others have, over the time since it died.

use std::fmt::Write as _;

use hopline::client::Millis;

use super::store::CLAIM_TTL;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 624.0;
const BOTTOM: f64 = 250.0;
const COLOURS: [&str; 3] = ["#1b9e77", "#d95f02", "#7570b3"];
/// Points of a curve.
const POINTS: usize = 200;

/// An SVG with a curve of each fleet: its name, and milliseconds from the death of the rack to each takeover, the first one first.
pub fn plot(curves: &[(String, &[Millis])]) -> String {
    let last = curves.iter().filter_map(|(_, takeovers)| takeovers.last()).max().copied().unwrap_or_default().max(CLAIM_TTL);
    let seconds = (last as f64 / 10_000.0).ceil() * 10.0;
    let x = |at: f64| LEFT + at / seconds * (RIGHT - LEFT);
    let y = |part: f64| BOTTOM - part * (BOTTOM - TOP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#444\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    let mut line = |line: std::fmt::Arguments<'_>| writeln!(svg, "{line}").unwrap_or_default();
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        line(format_args!("<path d=\"M{LEFT} {0}H{RIGHT}\" stroke=\"#ddd\"/>", y(part)));
        line(format_args!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}%</text>", LEFT - 6.0, y(part) + 4.0, part * 100.0));
    }
    let step = if seconds > 150.0 { 30.0 } else { 10.0 };
    for at in (0..).map(|tick| f64::from(tick) * step).take_while(|at| *at <= seconds) {
        line(format_args!("<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{at}</text>", x(at), BOTTOM + 18.0));
    }
    line(format_args!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">seconds since a tenth of the workers died</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 38.0
    ));
    let claims = x(CLAIM_TTL as f64 / 1000.0);
    line(format_args!("<path d=\"M{claims:.1} {TOP}V{BOTTOM}\" stroke=\"#888\" stroke-dasharray=\"4 4\"/>"));
    line(format_args!("<text x=\"{:.1}\" y=\"{}\" text-anchor=\"end\">claims end</text>", claims - 6.0, TOP + 14.0));
    for (at, ((name, takeovers), colour)) in curves.iter().zip(COLOURS).enumerate() {
        line(format_args!("<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", curve(takeovers, x, y)));
        let row = TOP + 40.0 + 18.0 * at as f64;
        line(format_args!("<path d=\"M{} {row}h20\" stroke=\"{colour}\" stroke-width=\"2\"/>", LEFT + 12.0));
        line(format_args!("<text x=\"{}\" y=\"{}\">{name}</text>", LEFT + 38.0, row + 4.0));
    }
    svg + "</svg>\n"
}

fn curve(takeovers: &[Millis], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let first = takeovers.first().map_or(0.0, |at| *at as f64 / 1000.0);
    let mut path = format!("M{:.1} {:.1}H{:.1}", x(0.0), y(0.0), x(first));
    for point in 0..=POINTS.min(takeovers.len().saturating_sub(1)) {
        let place = point * takeovers.len().saturating_sub(1) / POINTS.min(takeovers.len().saturating_sub(1)).max(1);
        let part = (place + 1) as f64 / takeovers.len() as f64;
        if let Some(at) = takeovers.get(place) {
            write!(path, "L{:.1} {:.1}", x(*at as f64 / 1000.0), y(part)).unwrap_or_default();
        }
    }
    path
}
