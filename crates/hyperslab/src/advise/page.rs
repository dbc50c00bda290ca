//! Advice as a page: where the array is read, and what each class of reads takes before and after.

use std::fmt::Write;

use super::{Advice, Heat, Objective};
use crate::text::escape;

impl Advice {
    /// A page for a browser, complete in itself.
    pub fn page(&self) -> String {
        let title = escape(&self.url);
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>Advice for {title}</title>\n\
             <style>{STYLE}</style></head><body>\n<h1>Advice for <code>{title}</code></h1>\n<pre>{}</pre>\n",
            escape(&self.text())
        );
        page.push_str("<h2>Where it is read</h2>\n<p>The chunks of today over the last two axes; the redder, the more reads touch them.</p>\n");
        page.push_str(&heat(&self.heat));
        let (title, unit) = match self.objective {
            Objective::Cost => ("Seconds of a read", "s"),
            Objective::Blocks { .. } => ("Blocks that a read touches", ""),
        };
        let _ = write!(
            page,
            "<h2>{title}, before and after</h2>\n{}",
            self.bars(unit)
        );
        page.push_str("<h2>Chunks that a read touches, before and after</h2>\n");
        let blocks = |number: usize| {
            (
                self.today.blocks_by_class[number],
                self.proposed.blocks_by_class[number],
            )
        };
        page.push_str(&self.draw(blocks, ""));
        page.push_str("</body></html>\n");
        page
    }

    fn bars(&self, unit: &str) -> String {
        match self.objective {
            Objective::Cost => {
                let seconds = |number: usize| {
                    let (now, then) = (&self.today, &self.proposed);
                    (now.by_class[number].seconds, then.by_class[number].seconds)
                };
                self.draw(seconds, unit)
            }
            Objective::Blocks { .. } => String::new(),
        }
    }

    /// Two bars for each class.
    fn draw(&self, values: impl Fn(usize) -> (f64, f64), unit: &str) -> String {
        let classes = self.pattern.classes();
        let most = (0..classes.len())
            .map(|number| values(number).0.max(values(number).1))
            .fold(f64::MIN_POSITIVE, f64::max);
        let (label, width, row) = (220.0, 420.0, 34.0);
        let height = row * classes.len() as f64;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {:.0} {height:.0}\" width=\"{:.0}\" role=\"img\">",
            label + width + 90.0,
            label + width + 90.0
        );
        for (number, class) in classes.iter().enumerate() {
            let (now, then) = values(number);
            let top = number as f64 * row;
            let extent: Vec<String> = class.extent.iter().map(u64::to_string).collect();
            let _ = write!(
                svg,
                "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{} ({:.1} %)</text>",
                label - 8.0,
                top + 18.0,
                extent.join(" × "),
                class.weight * 100.0
            );
            for (name, value, at) in [("today", now, 2.0), ("then", then, 16.0)] {
                let long = (value / most * width).max(1.0);
                let _ = write!(
                    svg,
                    "<rect class=\"{name}\" x=\"{label:.0}\" y=\"{:.1}\" width=\"{long:.1}\" height=\"12\"><title>{name}: {value:.4} {unit}</title></rect>\
                     <text x=\"{:.1}\" y=\"{:.1}\">{value:.3} {unit}</text>",
                    top + at,
                    label + long + 4.0,
                    top + at + 10.0,
                );
            }
        }
        svg.push_str("</svg>\n<p><span class=\"key today\">today</span> <span class=\"key then\">proposed</span></p>\n");
        svg
    }
}

const STYLE: &str = "body{font:15px system-ui,sans-serif;margin:2em auto;max-width:70em;background:#fff;color:#222}\
    pre{overflow-x:auto}svg{max-width:100%;height:auto}text{font:11px system-ui,sans-serif;fill:currentColor}\
    rect.today{fill:#8da0cb}rect.then{fill:#66c2a5}.key{padding:.1em .7em}.key.today{background:#8da0cb}\
    .key.then{background:#66c2a5}@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}}";

fn heat(heat: &Heat) -> String {
    let side = (640.0 / heat.columns.max(heat.rows) as f64).clamp(3.0, 24.0);
    let (width, height) = (heat.columns as f64 * side, heat.rows as f64 * side);
    let most = heat
        .shares
        .iter()
        .copied()
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" role=\"img\">\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#f3f3f3\"/>"
    );
    for (place, share) in heat
        .shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0.0)
    {
        let (row, column) = (place / heat.columns, place % heat.columns);
        let _ = write!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{side:.1}\" height=\"{side:.1}\" fill=\"#d7301f\" \
             fill-opacity=\"{:.2}\"><title>{:.2} % of reads</title></rect>",
            column as f64 * side,
            row as f64 * side,
            0.08 + 0.92 * share / most,
            share * 100.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}
