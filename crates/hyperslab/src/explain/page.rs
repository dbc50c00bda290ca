//! Plans as pictures: a page for a browser, or a part of one for a notebook. No scripts from elsewhere.
//!
//! Two drawings: the grid of chunks, coloured by how each is fetched (the paper's figure 8), and all
//! plans in the plane of time and cost (its figure 9). Both are SVG with titles, so a pointer over a
//! chunk or a plan tells its numbers.

use std::fmt::Write;

use hyperslab_plan::{Estimate, Method};

use super::{ChunkPlan, Explanation};
use crate::text::escape;

/// Grids with more chunks are drawn by the part that the query touches, and then cut off.
const MAX_CELLS: u64 = 20_000;

impl Explanation {
    /// A page with both drawings, complete in itself. `grid` is the shape of the grid of chunks.
    pub fn page(&self, title: &str, grid: &[u64]) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>Plan of {title}</title>\n\
             <style>{STYLE}{COLOURS}</style></head><body>\n<h1>Plan of <code>{title}</code></h1>\n{content}\n</body></html>\n",
            title = escape(title),
            content = content(grid, self),
        )
    }

    /// The same as a part of another page.
    pub fn page_part(&self, title: &str, grid: &[u64]) -> String {
        format!(
            "<div class=\"hyperslab-plan\"><style>.hyperslab-plan{{{COLOURS}}}</style>\
             <p>Plan of <code>{title}</code></p>\n{content}</div>",
            title = escape(title),
            content = content(grid, self),
        )
    }
}

fn content(grid: &[u64], explained: &Explanation) -> String {
    let estimate = &explained.estimate;
    format!(
        "<p>Planner <b>{mode}</b>: {requests} requests, {calls} calls, {bytes} bytes for {useful} wanted, \
         {seconds:.4} s, ${dollars:.3e}.</p>\n<h2>Chunks by method</h2>\n{legend}\n{chunks}\n\
         <h2>Plans by time and cost</h2>\n{plans}",
        mode = explained.mode,
        requests = estimate.requests,
        calls = estimate.calls,
        bytes = estimate.bytes,
        useful = explained.useful,
        seconds = estimate.seconds,
        dollars = estimate.dollars,
        legend = LEGEND,
        chunks = draw_chunks(grid, &explained.chunks),
        plans = draw_plans(explained),
    )
}

const STYLE: &str = "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:60em;\
    background:#fff;color:#222}@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}}";

/// Nested in the class of a part where the page is another's.
const COLOURS: &str = "svg{max-width:100%;height:auto}.get{fill:#8da0cb}\
    .range{fill:#66c2a5}.function{fill:#fc8d62}.cached{fill:#e5c494}.none{fill:#eee}.untouched{fill:#f7f7f7}\
    rect{stroke:#fff;stroke-width:.5}text{font:11px system-ui,sans-serif;fill:currentColor}\
    .axis{stroke:currentColor;stroke-width:1}.key{padding:.1em .7em;margin-right:.6em}\
    @media(prefers-color-scheme:dark){.untouched{fill:#262626}.none{fill:#333}rect{stroke:#1b1b1b}}";

const LEGEND: &str = "<p><span class=\"key\" style=\"background:#8da0cb\">get</span>\
    <span class=\"key\" style=\"background:#66c2a5\">range</span>\
    <span class=\"key\" style=\"background:#fc8d62\">function</span>\
    <span class=\"key\" style=\"background:#e5c494\">cached</span> \
    the darker, the more requests</p>";

fn class_of(chunk: &ChunkPlan) -> (&'static str, usize) {
    match &chunk.method {
        Method::Get => ("get", 1),
        Method::Ranges(ranges) if ranges.is_empty() && chunk.cached > 0 => ("cached", 0),
        Method::Ranges(ranges) if ranges.is_empty() => ("none", 0),
        Method::Ranges(ranges) => ("range", ranges.len()),
        Method::Function(calls) => ("function", calls.len()),
    }
}

/// The last two dimensions of the grid; the others are folded, one tile after another.
fn draw_chunks(grid: &[u64], chunks: &[ChunkPlan]) -> String {
    let columns = grid.last().copied().unwrap_or(1).max(1);
    let rows = grid.iter().rev().nth(1).copied().unwrap_or(1).max(1);
    // Only what the query touches is drawn: a grid may have billions of chunks.
    let place = |chunk: &ChunkPlan| -> (Vec<u64>, u64, u64) {
        let rank = chunk.chunk.len();
        let x = chunk.chunk.last().copied().unwrap_or(0);
        let y = if rank > 1 { chunk.chunk[rank - 2] } else { 0 };
        (chunk.chunk[..rank.saturating_sub(2)].to_vec(), y, x)
    };
    let mut tiles: Vec<Vec<u64>> = chunks.iter().map(|chunk| place(chunk).0).collect();
    tiles.sort();
    tiles.dedup();
    let span = |values: Vec<u64>, all: u64| -> (u64, u64) {
        if all <= 256 {
            return (0, all);
        }
        let low = values.iter().copied().min().unwrap_or(0);
        let high = values.iter().copied().max().unwrap_or(0);
        (low, high + 1 - low)
    };
    let (x0, width) = span(chunks.iter().map(|c| place(c).2).collect(), columns);
    let (y0, height) = span(chunks.iter().map(|c| place(c).1).collect(), rows);
    let side = (720.0 / width as f64).clamp(2.0, 24.0);
    let tile_height = height as f64 * side + 12.0;
    let total = tile_height * tiles.len().max(1) as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {:.0} {total:.0}\" width=\"{:.0}\" role=\"img\">",
        width as f64 * side,
        width as f64 * side
    );
    for t in 0..tiles.len().max(1) {
        let _ = write!(
            svg,
            "<rect class=\"untouched\" x=\"0\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            t as f64 * tile_height,
            width as f64 * side,
            height as f64 * side
        );
    }
    for chunk in chunks.iter().take(MAX_CELLS as usize) {
        let (tile, y, x) = place(chunk);
        let t = tiles.binary_search(&tile).unwrap_or(0);
        let (class, requests) = class_of(chunk);
        let shade = (requests.max(1) as f64).log2().min(6.0) / 10.0;
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{side:.1}\" height=\"{side:.1}\" \
             fill-opacity=\"{:.2}\"><title>chunk {:?}: {class}, {requests} requests, {} bytes for {} wanted</title></rect>",
            (x - x0) as f64 * side,
            t as f64 * tile_height + (y - y0) as f64 * side,
            0.4 + shade,
            chunk.chunk,
            chunk.bytes,
            chunk.useful
        );
    }
    svg.push_str("</svg>");
    if chunks.len() as u64 > MAX_CELLS {
        let _ = write!(
            svg,
            "<p>The first {MAX_CELLS} of {} chunks are drawn.</p>",
            chunks.len()
        );
    }
    svg
}

fn draw_plans(explained: &Explanation) -> String {
    let mut plans: Vec<(String, &Estimate, bool)> =
        vec![(explained.mode.to_string(), &explained.estimate, true)];
    for (mode, estimate) in &explained.alternatives {
        plans.push((mode.to_string(), estimate, false));
    }
    let (width, height, margin) = (640.0, 320.0, 50.0);
    let scale = |values: Vec<f64>| -> (f64, f64) {
        let logs = values.into_iter().filter(|v| *v > 0.0).map(f64::log10);
        let (low, high) = logs.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            (0.0, 1.0)
        } else {
            (low - 0.1, high + 0.1)
        }
    };
    let times = scale(plans.iter().map(|(_, e, _)| e.seconds).collect());
    let fees = scale(plans.iter().map(|(_, e, _)| e.dollars).collect());
    let at = |value: f64, (low, high): (f64, f64)| {
        if value > 0.0 {
            (value.log10() - low) / (high - low)
        } else {
            0.0
        }
    };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\
         <line class=\"axis\" x1=\"{margin}\" y1=\"{b}\" x2=\"{width}\" y2=\"{b}\"/>\
         <line class=\"axis\" x1=\"{margin}\" y1=\"0\" x2=\"{margin}\" y2=\"{b}\"/>\
         <text x=\"{m}\" y=\"{t}\">seconds (logarithmic): {:.4} to {:.4}</text>\
         <text x=\"4\" y=\"12\">dollars</text>",
        10f64.powf(times.0),
        10f64.powf(times.1),
        b = height - margin,
        m = width / 2.0 - 80.0,
        t = height - margin / 2.0,
    );
    for (name, estimate, chosen) in &plans {
        let x = margin + at(estimate.seconds, times) * (width - 2.0 * margin);
        let y = (height - margin) - at(estimate.dollars, fees) * (height - 1.5 * margin);
        let ring = if *chosen {
            " stroke=\"#d33\" stroke-width=\"3\""
        } else {
            ""
        };
        let _ = write!(
            svg,
            "<circle class=\"range\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\"{ring}><title>{name}: {:.4} s, ${:.3e}, {} requests, {} bytes</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            estimate.seconds,
            estimate.dollars,
            estimate.requests + estimate.calls,
            estimate.bytes,
            x + 9.0,
            y + 4.0
        );
    }
    svg.push_str("</svg>");
    svg
}
