//! Elements of an SVG picture: axes, lines, dots, bands, whiskers and text.
//!
//! Colours are named once, in a style sheet that knows light and dark; everything else has a class.

use std::fmt::Write;

use super::scale::Scale;

/// Room inside a panel for its title, labels and numbers.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 50.0;
/// Half the width of a whisker's ends, and a dot's radius.
const WHISKER: f64 = 5.0;
const DOT: f64 = 3.5;

const STYLE: &str = "<style>
svg { background: #ffffff; font: 13px system-ui, sans-serif; }
text { fill: #1c1c1c; } .heading { font-size: 16px; font-weight: 600; } .title { font-weight: 600; }
.note, .tick { fill: #555555; } .tick { font-size: 11px; }
.axis { stroke: #1c1c1c; fill: none; } .grid { stroke: #dddddd; fill: none; }
.line { stroke: #0b61a4; stroke-width: 2; fill: none; } .dot { fill: #0b61a4; }
.whisker { stroke: #b04a00; fill: none; } .band { fill: #0b61a4; fill-opacity: 0.12; }
@media (prefers-color-scheme: dark) {
svg { background: #16181c; } text { fill: #ececec; } .note, .tick { fill: #b0b0b0; }
.axis { stroke: #ececec; } .grid { stroke: #3a3d42; } .line { stroke: #6cb8f0; }
.dot { fill: #6cb8f0; } .whisker { stroke: #ffab66; } .band { fill: #6cb8f0; fill-opacity: 0.18; }
}
</style>
";

/// A part of the picture that has axes of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panel {
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Panel {
    fn x(&self, place: f64) -> f64 {
        LEFT + place * (self.width - LEFT - RIGHT)
    }

    fn y(&self, place: f64) -> f64 {
        self.top + self.height - BELOW - place * (self.height - ABOVE - BELOW)
    }
}

/// A picture in the making.
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        let mut svg = Svg { out: String::new() };
        svg.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n{STYLE}"
        ));
        svg
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(element);
    }

    fn text(&mut self, class: &str, at: (f64, f64), anchor: &str, text: &str) {
        let (x, y) = at;
        let text = escaped(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n"
        ));
    }

    fn stroke(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
            from.0, from.1, to.0, to.1
        ));
    }

    /// The line above everything, which is also what a screen reader says.
    pub(crate) fn heading(&mut self, text: &str) {
        let title = escaped(text);
        self.add(format_args!("<title>{title}</title>\n"));
        self.text("heading", (LEFT, 28.0), "start", text);
    }

    /// A panel that has nothing to show, and why.
    pub(crate) fn missing(&mut self, panel: Panel, why: &str) {
        self.text("note", (LEFT, panel.top + ABOVE - 12.0), "start", why);
    }

    /// A remark at the upper right of a panel.
    pub(crate) fn note(&mut self, panel: Panel, text: &str) {
        let at = (panel.x(1.0), panel.top + ABOVE - 12.0);
        self.text("note", at, "end", text);
    }

    /// Title, axes, grid and numbers of a panel; each axis has its unit.
    pub(crate) fn axes(&mut self, panel: Panel, title: &str, x: (&Scale, &str), y: (&Scale, &str)) {
        let (left, right, bottom, top) = (panel.x(0.0), panel.x(1.0), panel.y(0.0), panel.y(1.0));
        self.text("title", (LEFT, panel.top + ABOVE - 12.0), "start", title);
        for tick in &y.0.ticks {
            let at = panel.y(y.0.place(*tick));
            self.stroke("grid", (left, at), (right, at));
            self.text("tick", (left - 8.0, at + 4.0), "end", &y.0.label(*tick));
        }
        for tick in &x.0.ticks {
            let at = panel.x(x.0.place(*tick));
            self.stroke("axis", (at, bottom), (at, bottom + 4.0));
            self.text("tick", (at, bottom + 17.0), "middle", &x.0.label(*tick));
        }
        self.stroke("axis", (left, bottom), (right, bottom));
        self.stroke("axis", (left, bottom), (left, top));
        self.text("note", ((left + right) / 2.0, bottom + 36.0), "middle", x.1);
        let (at, middle) = (left - 52.0, (top + bottom) / 2.0);
        let unit = escaped(y.1);
        self.add(format_args!(
            "<text class=\"note\" text-anchor=\"middle\" \
             transform=\"translate({at:.1} {middle:.1}) rotate(-90)\">{unit}</text>\n"
        ));
    }

    /// Shades what lies between two numbers of the horizontal axis.
    pub(crate) fn band_across(&mut self, panel: Panel, x: &Scale, low: f64, high: f64) {
        let (from, to) = (panel.x(x.place(low)), panel.x(x.place(high)));
        // A single number is still seen.
        let (from, width) = (from.min(to - 4.0), (to - from).max(4.0));
        self.rectangle(from, panel.y(1.0), width, panel.y(0.0) - panel.y(1.0));
    }

    /// Shades what lies between two numbers of the vertical axis.
    pub(crate) fn band_along(&mut self, panel: Panel, y: &Scale, low: f64, high: f64) {
        let (bottom, top) = (panel.y(y.place(low)), panel.y(y.place(high)));
        self.rectangle(panel.x(0.0), top, panel.x(1.0) - panel.x(0.0), bottom - top);
    }

    fn rectangle(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.add(format_args!(
            "<rect class=\"band\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>\n"
        ));
    }

    /// A line through points.
    pub(crate) fn line(&mut self, panel: Panel, axes: (&Scale, &Scale), points: &[(f64, f64)]) {
        let mut places = String::new();
        for (x, y) in points {
            let (x, y) = (panel.x(axes.0.place(*x)), panel.y(axes.1.place(*y)));
            // Writing to a string cannot fail.
            let _ = write!(places, "{x:.1},{y:.1} ");
        }
        let places = places.trim_end();
        self.add(format_args!(
            "<polyline class=\"line\" points=\"{places}\"/>\n"
        ));
    }

    /// A dot.
    pub(crate) fn dot(&mut self, panel: Panel, axes: (&Scale, &Scale), point: (f64, f64)) {
        let x = panel.x(axes.0.place(point.0));
        let y = panel.y(axes.1.place(point.1));
        self.add(format_args!(
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\"/>\n"
        ));
    }

    /// The extent of several values at one place of the horizontal axis.
    pub(crate) fn whisker(
        &mut self,
        panel: Panel,
        axes: (&Scale, &Scale),
        x: f64,
        extent: (f64, f64),
    ) {
        let x = panel.x(axes.0.place(x));
        let (low, high) = (
            panel.y(axes.1.place(extent.0)),
            panel.y(axes.1.place(extent.1)),
        );
        self.stroke("whisker", (x, low), (x, high));
        for y in [low, high] {
            self.stroke("whisker", (x - WHISKER, y), (x + WHISKER, y));
        }
    }

    /// The picture.
    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// Text that cannot be taken for markup; control characters have no place in XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        assert_eq!(
            escaped("<a href=\"x\">&\n"),
            "&lt;a href=&quot;x&quot;&gt;&amp; "
        );
    }
}
