//! The curves of a measured profile as one picture: figure 4 of the ArrayMorph paper.
//!
//! Above the facade's measurements, below the command `profile`; pure. [`scale`] turns numbers into
//! places and ticks, [`picture`] places into shapes, [`svg`] and [`raster`] shapes into a file, and
//! this module says what the three panels show: bandwidth over the number of requests, the time of
//! small requests, and the time of the function over what it reads.

mod font;
mod picture;
mod raster;
mod scale;
mod svg;

use std::path::Path;

use hyperslab::profile::{FunctionTimes, Measured};
use hyperslab::{Error, Result};

use picture::{Panel, Picture};
use scale::Scale;

/// Size of the picture, and of each panel in it.
const WIDTH: f64 = 720.0;
const PANEL_HEIGHT: f64 = 260.0;
const TITLE_HEIGHT: f64 = 44.0;

/// The file formats that curves are drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Svg,
    Png,
}

impl Format {
    /// The format that a file's name asks for.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            _ => Err(
                Error::invalid(format!("{} is not the name of a picture", path.display()))
                    .with_hint("end the name with .svg or .png"),
            ),
        }
    }
}

/// The file that shows what was measured of the endpoint `name`.
pub(crate) fn draw(measured: &Measured, name: &str, date: &str, format: Format) -> Result<Vec<u8>> {
    let picture = panels(measured, name, date);
    match format {
        Format::Svg => Ok(svg::render(&picture).into_bytes()),
        Format::Png => raster::render(&picture),
    }
}

fn panels(measured: &Measured, name: &str, date: &str) -> Picture {
    let heading = format!("{name}, measured {date}");
    let mut picture = Picture::new(WIDTH, TITLE_HEIGHT + 3.0 * PANEL_HEIGHT, &heading);
    let panel = |number: u8| Panel {
        top: TITLE_HEIGHT + f64::from(number) * PANEL_HEIGHT,
        width: WIDTH,
        height: PANEL_HEIGHT,
    };
    bandwidth(&mut picture, panel(0), measured);
    latency(&mut picture, panel(1), measured);
    match &measured.function {
        Some(times) => function(&mut picture, panel(2), times, measured.alone_seconds),
        None => picture.missing(
            panel(2),
            "Function time T_\u{3bb}: not measured, no function was named",
        ),
    }
    picture
}

/// `BW(N)`, with the numbers of requests that keep 90 % of the peak as a band.
fn bandwidth(picture: &mut Picture, panel: Panel, measured: &Measured) {
    let network = &measured.network;
    let most = network.bandwidth.last().map_or(1, |point| point.requests);
    let x = Scale::doubling(1.0, f64::from(most.max(2)));
    let y = Scale::from_zero(network.peak() / 1e6);
    picture.axes(
        panel,
        "Bandwidth BW(N)",
        (&x, "concurrent requests N"),
        (&y, "MB/s"),
    );
    let (low, high) = network.useful_requests();
    picture.band_across(panel, &x, f64::from(low), f64::from(high));
    let points: Vec<(f64, f64)> = network
        .bandwidth
        .iter()
        .map(|point| (f64::from(point.requests), point.bytes_per_second / 1e6))
        .collect();
    picture.line(panel, (&x, &y), &points);
    points
        .iter()
        .for_each(|point| picture.dot(panel, (&x, &y), *point));
    let note = format!("N_min = {low}, N_max = {high} (shaded: at least 90 % of the peak)");
    picture.note(panel, &note);
}

/// The times of small requests, with their median (network and own work) and its spread.
fn latency(picture: &mut Picture, panel: Panel, measured: &Measured) {
    let millis: Vec<f64> = measured.latencies.iter().map(|s| s * 1e3).collect();
    let network = &measured.network;
    let (middle, spread) = (measured.alone_seconds * 1e3, network.latency_spread * 1e3);
    let most = millis.iter().copied().fold(middle, f64::max);
    let x = Scale::even(0.0, millis.len().max(1) as f64);
    let y = Scale::from_zero(most);
    picture.axes(
        panel,
        "Request time T_R",
        (&x, "small requests, one at a time"),
        (&y, "ms"),
    );
    picture.band_along(panel, &y, (middle - spread).max(0.0), middle + spread);
    for (at, value) in millis.iter().enumerate() {
        picture.dot(panel, (&x, &y), (at as f64 + 0.5, *value));
    }
    let ends = [(0.0, middle), (millis.len().max(1) as f64, middle)];
    picture.line(panel, (&x, &y), &ends);
    picture.note(
        panel,
        &format!(
            "T_R = {:.2} ms, own work {:.2} ms, spread {spread:.2} ms (shaded)",
            network.latency_seconds * 1e3,
            network.request_seconds * 1e3
        ),
    );
}

/// The function's times over the bytes that it reads, with whiskers and the fitted line.
fn function(picture: &mut Picture, panel: Panel, times: &FunctionTimes, way: f64) {
    const MIB: f64 = 1_048_576.0;
    let mut sizes: Vec<u64> = times.calls.iter().map(|(read, _)| *read).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let largest = sizes.last().map_or(1.0, |size| *size as f64 / MIB);
    let slowest = times.calls.iter().map(|(_, s)| s * 1e3).fold(0.0, f64::max);
    let x = Scale::from_zero(largest);
    let y = Scale::from_zero(slowest);
    picture.axes(
        panel,
        "Function time T_\u{3bb}",
        (
            &x,
            "MiB that a call reads; whiskers are the fastest and slowest call",
        ),
        (&y, "ms"),
    );
    let fitted = |mib: f64| 1e3 * (way + times.warm_seconds + times.seconds_per_byte * mib * MIB);
    let ends = [(0.0, fitted(0.0)), (largest, fitted(largest))];
    picture.line(panel, (&x, &y), &ends);
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
            picture.whisker(panel, (&x, &y), mib, (*least, *most));
            picture.dot(panel, (&x, &y), (mib, of_size[of_size.len() / 2]));
        }
    }
    picture.note(
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
                latency_spread: 0.004,
                request_seconds: 0.0005,
                connection_bandwidth: 13e6,
                bandwidth: vec![point(1, 13.0), point(8, 104.0), point(256, 70.0)],
                requests_per_second: None,
                window: 256,
            },
            function,
            alone_seconds: 0.0205,
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

    fn as_svg(measured: &Measured, name: &str) -> String {
        let file = draw(measured, name, "2026-11-16", Format::Svg).unwrap();
        String::from_utf8(file).unwrap()
    }

    fn times() -> FunctionTimes {
        FunctionTimes {
            seconds_per_byte: 15e-9,
            warm_seconds: 0.18,
            cold_seconds: 0.6,
            calls: vec![(65_536, 0.2), (65_536, 0.25), (16 << 20, 0.45)],
        }
    }

    #[test]
    fn all_three_panels_are_drawn() {
        let svg = as_svg(&measured(Some(times())), "a<b & c");
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
        let svg = as_svg(&measured(None), "x");
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
        least.alone_seconds = 0.0;
        check(&as_svg(&least, "x"));
        draw(&least, "x", "y", Format::Png).unwrap();
    }

    /// Pixels of a PNG, row by row.
    fn decode(png: &[u8]) -> (usize, Vec<[u8; 3]>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png))
            .read_info()
            .unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixels = bytes.chunks_exact(3).map(|p| [p[0], p[1], p[2]]);
        (info.width as usize, pixels.collect())
    }

    #[test]
    fn pixels_show_the_same_as_the_drawing() {
        let name = "https://storage.example:8443/bucket".repeat(3);
        let png = draw(&measured(Some(times())), &name, "2026-11-16", Format::Png).unwrap();
        let (width, pixels) = decode(&png);
        assert_eq!((width, pixels.len() / width), (1440, 1648));
        let count = |colour: [u8; 3], rows: std::ops::Range<usize>| {
            let part = &pixels[rows.start * width..rows.end * width];
            part.iter().filter(|pixel| **pixel == colour).count()
        };
        let (ink, blue, tint) = ([0x1c; 3], [0x0b, 0x61, 0xa4], [0xe2, 0xec, 0xf4]);
        // The heading, and a curve with its axes in every panel; shades in the first two.
        assert!(count(ink, 0..88) > 500);
        for (panel, shaded) in [(0, true), (1, true), (2, false)] {
            let rows = 88 + panel * 520..88 + (panel + 1) * 520;
            assert!(count(blue, rows.clone()) > 1000, "panel {panel}");
            assert!(count(ink, rows.clone()) > 1000, "panel {panel}");
            assert_eq!(count(tint, rows) > 100, shaded, "panel {panel}");
        }
    }

    #[test]
    fn the_name_of_a_file_tells_its_format() {
        for (name, format) in [("a.svg", Format::Svg), ("b/c.png", Format::Png)] {
            assert_eq!(Format::of(Path::new(name)).unwrap(), format);
        }
        for name in ["a", "a.pdf", ".svg"] {
            assert!(Format::of(Path::new(name)).is_err(), "{name}");
        }
    }
}
