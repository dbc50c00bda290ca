//! The curves of a measured profile as one picture: figure 4 of the ArrayMorph paper.
//!
//! Above the facade's measurements, below the command `profile`; pure. [`scale`] turns numbers into
//! places and ticks, [`svg`] writes elements, and this module says what the three panels show:
//! bandwidth over the number of requests, the time of small requests, and the time of the function
//! over what it reads.
//!
//! Invariant: the picture needs nothing but itself, neither fonts nor scripts, and can be read on a
//! light and on a dark ground.

mod scale;
mod svg;

use hyperslab::profile::{FunctionTimes, Measured};

use scale::Scale;
use svg::{Panel, Svg};

/// Size of the picture, and of each panel in it.
const WIDTH: f64 = 720.0;
const PANEL_HEIGHT: f64 = 260.0;
const TITLE_HEIGHT: f64 = 44.0;

/// The picture of what was measured of the endpoint `name`.
pub(crate) fn draw(measured: &Measured, name: &str, date: &str) -> String {
    let mut svg = Svg::new(WIDTH, TITLE_HEIGHT + 3.0 * PANEL_HEIGHT);
    svg.heading(&format!("{name}, measured {date}"));
    let panel = |number: u8| Panel {
        top: TITLE_HEIGHT + f64::from(number) * PANEL_HEIGHT,
        width: WIDTH,
        height: PANEL_HEIGHT,
    };
    bandwidth(&mut svg, panel(0), measured);
    latency(&mut svg, panel(1), measured);
    match &measured.function {
        Some(times) => function(&mut svg, panel(2), times, measured.network.latency_seconds),
        None => svg.missing(
            panel(2),
            "Function time T_\u{3bb}: not measured, no function was named",
        ),
    }
    svg.finish()
}

/// `BW(N)`, with the numbers of requests that keep 90 % of the peak as a band.
fn bandwidth(svg: &mut Svg, panel: Panel, measured: &Measured) {
    let network = &measured.network;
    let most = network.bandwidth.last().map_or(1, |point| point.requests);
    let x = Scale::doubling(1.0, f64::from(most.max(2)));
    let y = Scale::from_zero(network.peak() / 1e6);
    svg.axes(
        panel,
        "Bandwidth BW(N)",
        (&x, "concurrent requests N"),
        (&y, "MB/s"),
    );
    let (low, high) = network.useful_requests();
    svg.band_across(panel, &x, f64::from(low), f64::from(high));
    let points: Vec<(f64, f64)> = network
        .bandwidth
        .iter()
        .map(|point| (f64::from(point.requests), point.bytes_per_second / 1e6))
        .collect();
    svg.line(panel, (&x, &y), &points);
    points
        .iter()
        .for_each(|point| svg.dot(panel, (&x, &y), *point));
    let note = format!("N_min = {low}, N_max = {high} (shaded: at least 90 % of the peak)");
    svg.note(panel, &note);
}

/// The times of small requests, with their median and its spread.
fn latency(svg: &mut Svg, panel: Panel, measured: &Measured) {
    let millis: Vec<f64> = measured.latencies.iter().map(|s| s * 1e3).collect();
    let (middle, spread) = (
        measured.network.latency_seconds * 1e3,
        measured.network.latency_spread * 1e3,
    );
    let most = millis.iter().copied().fold(middle, f64::max);
    let x = Scale::even(0.0, millis.len().max(1) as f64);
    let y = Scale::from_zero(most);
    svg.axes(
        panel,
        "Request time T_R",
        (&x, "small requests, one at a time"),
        (&y, "ms"),
    );
    svg.band_along(panel, &y, (middle - spread).max(0.0), middle + spread);
    for (at, value) in millis.iter().enumerate() {
        svg.dot(panel, (&x, &y), (at as f64 + 0.5, *value));
    }
    let ends = [(0.0, middle), (millis.len().max(1) as f64, middle)];
    svg.line(panel, (&x, &y), &ends);
    svg.note(
        panel,
        &format!("median {middle:.2} ms, spread {spread:.2} ms (shaded)"),
    );
}

/// The function's times over the bytes that it reads, with whiskers and the fitted line.
fn function(svg: &mut Svg, panel: Panel, times: &FunctionTimes, latency: f64) {
    const MIB: f64 = 1_048_576.0;
    let mut sizes: Vec<u64> = times.calls.iter().map(|(read, _)| *read).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let largest = sizes.last().map_or(1.0, |size| *size as f64 / MIB);
    let slowest = times.calls.iter().map(|(_, s)| s * 1e3).fold(0.0, f64::max);
    let x = Scale::from_zero(largest);
    let y = Scale::from_zero(slowest);
    svg.axes(
        panel,
        "Function time T_\u{3bb}",
        (
            &x,
            "MiB that a call reads; whiskers are the fastest and slowest call",
        ),
        (&y, "ms"),
    );
    let fitted =
        |mib: f64| 1e3 * (latency + times.warm_seconds + times.seconds_per_byte * mib * MIB);
    let ends = [(0.0, fitted(0.0)), (largest, fitted(largest))];
    svg.line(panel, (&x, &y), &ends);
    for size in sizes {
        let mut of_size: Vec<f64> = times
            .calls
            .iter()
            .filter(|(read, _)| *read == size)
            .map(|(_, seconds)| seconds * 1e3)
            .collect();
        of_size.sort_by(f64::total_cmp);
        let mib = size as f64 / MIB;
        if let (Some(least), Some(most)) = (of_size.first(), of_size.last()) {
            svg.whisker(panel, (&x, &y), mib, (*least, *most));
            svg.dot(panel, (&x, &y), (mib, of_size[of_size.len() / 2]));
        }
    }
    svg.note(
        panel,
        &format!(
            "\u{3b1} = {:.2} ms/MiB, \u{3b2} = {:.1} ms warm and {:.1} ms cold",
            times.seconds_per_byte * MIB * 1e3,
            times.warm_seconds * 1e3,
            times.cold_seconds * 1e3
        ),
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyperslab::profile::{BandwidthPoint, NetworkProfile};

    use super::*;

    fn measured(function: Option<FunctionTimes>) -> Measured {
        let point = |requests, mega: f64| BandwidthPoint {
            requests,
            bytes_per_second: mega * 1e6,
        };
        Measured {
            network: NetworkProfile {
                latency_seconds: 0.02,
                latency_spread: 0.001,
                connection_bandwidth: 13e6,
                bandwidth: vec![point(1, 13.0), point(8, 104.0), point(256, 70.0)],
                requests_per_second: None,
                window: 256,
            },
            function,
            latencies: vec![0.019, 0.02, 0.021, 0.2],
            test_bytes: 1,
            took: Duration::from_secs(1),
        }
    }

    /// Every tag that is opened is closed, and no number is missing.
    fn check(svg: &str) {
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(
            !svg.contains("http")
                || svg.matches("http").count() == svg.matches("http://www.w3.org/2000/svg").count()
        );
        for tag in ["g", "text", "style", "title"] {
            let opened =
                svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
            assert_eq!(opened, svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn all_three_panels_are_drawn() {
        let times = FunctionTimes {
            seconds_per_byte: 15e-9,
            warm_seconds: 0.18,
            cold_seconds: 0.6,
            calls: vec![(65_536, 0.2), (65_536, 0.25), (16 << 20, 0.45)],
        };
        let svg = draw(&measured(Some(times)), "a<b & c", "2026-11-16");
        check(&svg);
        assert!(svg.contains("a&lt;b &amp; c"));
        for words in [
            "BW(N)",
            "MB/s",
            "concurrent requests",
            "MiB that a call reads",
            "= 8,",
        ] {
            assert!(svg.contains(words), "{words}");
        }
        assert!(svg.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn no_function_is_said() {
        let svg = draw(&measured(None), "x", "2026-11-16");
        check(&svg);
        assert!(svg.contains("not measured"));
    }

    #[test]
    fn the_least_that_can_be_measured_is_drawn() {
        let mut least = measured(None);
        least.network.bandwidth.truncate(1);
        least.latencies.clear();
        least.network.latency_seconds = 0.0;
        least.network.latency_spread = 0.0;
        check(&draw(&least, "x", "y"));
    }
}
