//! A picture as a list of shapes, from which both SVG and PNG are made: axes, lines, dots, bands,
//! whiskers and text.
//!
//! Between what the panels show ([`super`]) and the renderers; places are in units of the picture,
//! from its upper left corner.

use super::scale::Scale;

/// Room inside a panel for its title, labels and numbers.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 50.0;
/// Half the width of a whisker's ends.
const WHISKER: f64 = 5.0;
/// A dot's radius.
pub(super) const DOT: f64 = 3.5;

/// A place.
pub(super) type Point = (f64, f64);

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Heading,
    Title,
    Note,
    Tick,
}

/// Where a text stands from its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a straight stroke is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stroke {
    Axis,
    Grid,
    Whisker,
}

/// One thing to draw.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Text {
        words: Words,
        at: Point,
        anchor: Anchor,
        text: String,
    },
    /// A note that runs upwards, centred at its place.
    Upwards {
        at: Point,
        text: String,
    },
    Stroke {
        what: Stroke,
        from: Point,
        to: Point,
    },
    /// A shaded rectangle.
    Band {
        corner: Point,
        size: Point,
    },
    /// The curve itself.
    Line(Vec<Point>),
    Dot(Point),
}

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

    /// Where a point of these axes is.
    fn place(&self, axes: (&Scale, &Scale), (x, y): Point) -> Point {
        (self.x(axes.0.place(x)), self.y(axes.1.place(y)))
    }
}

/// A picture in the making.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    pub(super) width: f64,
    pub(super) height: f64,
    /// What a screen reader says.
    pub(super) title: String,
    pub(super) shapes: Vec<Shape>,
}

impl Picture {
    /// An empty picture with a line above everything.
    pub(crate) fn new(width: f64, height: f64, heading: &str) -> Self {
        let mut picture = Picture {
            width,
            height,
            title: heading.to_owned(),
            shapes: Vec::new(),
        };
        picture.text(Words::Heading, (LEFT, 28.0), Anchor::Start, heading);
        picture
    }

    fn text(&mut self, words: Words, at: Point, anchor: Anchor, text: &str) {
        self.shapes.push(Shape::Text {
            words,
            at,
            anchor,
            text: text.to_owned(),
        });
    }

    fn stroke(&mut self, what: Stroke, from: Point, to: Point) {
        self.shapes.push(Shape::Stroke { what, from, to });
    }

    /// A panel that has nothing to show, and why.
    pub(crate) fn missing(&mut self, panel: Panel, why: &str) {
        let at = (LEFT, panel.top + ABOVE - 12.0);
        self.text(Words::Note, at, Anchor::Start, why);
    }

    /// A remark at the upper right of a panel.
    pub(crate) fn note(&mut self, panel: Panel, text: &str) {
        let at = (panel.x(1.0), panel.top + ABOVE - 12.0);
        self.text(Words::Note, at, Anchor::End, text);
    }

    /// Title, axes, grid and numbers of a panel; each axis has its unit.
    pub(crate) fn axes(&mut self, panel: Panel, title: &str, x: (&Scale, &str), y: (&Scale, &str)) {
        let (left, right, bottom, top) = (panel.x(0.0), panel.x(1.0), panel.y(0.0), panel.y(1.0));
        let above = (LEFT, panel.top + ABOVE - 12.0);
        self.text(Words::Title, above, Anchor::Start, title);
        for tick in &y.0.ticks {
            let at = panel.y(y.0.place(*tick));
            self.stroke(Stroke::Grid, (left, at), (right, at));
            let beside = (left - 8.0, at + 4.0);
            self.text(Words::Tick, beside, Anchor::End, &y.0.label(*tick));
        }
        for tick in &x.0.ticks {
            let at = panel.x(x.0.place(*tick));
            self.stroke(Stroke::Axis, (at, bottom), (at, bottom + 4.0));
            let below = (at, bottom + 17.0);
            self.text(Words::Tick, below, Anchor::Middle, &x.0.label(*tick));
        }
        self.stroke(Stroke::Axis, (left, bottom), (right, bottom));
        self.stroke(Stroke::Axis, (left, bottom), (left, top));
        let below = ((left + right) / 2.0, bottom + 36.0);
        self.text(Words::Note, below, Anchor::Middle, x.1);
        self.shapes.push(Shape::Upwards {
            at: (left - 52.0, (top + bottom) / 2.0),
            text: y.1.to_owned(),
        });
    }

    /// Shades what lies between two numbers of the horizontal axis.
    pub(crate) fn band_across(&mut self, panel: Panel, x: &Scale, low: f64, high: f64) {
        let (from, to) = (panel.x(x.place(low)), panel.x(x.place(high)));
        // A single number is still seen.
        let (from, width) = (from.min(to - 4.0), (to - from).max(4.0));
        let top = panel.y(1.0);
        self.shapes.push(Shape::Band {
            corner: (from, top),
            size: (width, panel.y(0.0) - top),
        });
    }

    /// Shades what lies between two numbers of the vertical axis.
    pub(crate) fn band_along(&mut self, panel: Panel, y: &Scale, low: f64, high: f64) {
        let (bottom, top) = (panel.y(y.place(low)), panel.y(y.place(high)));
        let left = panel.x(0.0);
        self.shapes.push(Shape::Band {
            corner: (left, top),
            size: (panel.x(1.0) - left, bottom - top),
        });
    }

    /// A line through points.
    pub(crate) fn line(&mut self, panel: Panel, axes: (&Scale, &Scale), points: &[Point]) {
        let places = points.iter().map(|point| panel.place(axes, *point));
        self.shapes.push(Shape::Line(places.collect()));
    }

    /// A dot.
    pub(crate) fn dot(&mut self, panel: Panel, axes: (&Scale, &Scale), point: Point) {
        self.shapes.push(Shape::Dot(panel.place(axes, point)));
    }

    /// The extent of several values at one place of the horizontal axis.
    pub(crate) fn whisker(
        &mut self,
        panel: Panel,
        axes: (&Scale, &Scale),
        x: f64,
        extent: (f64, f64),
    ) {
        let (low, high) = (
            panel.place(axes, (x, extent.0)),
            panel.place(axes, (x, extent.1)),
        );
        self.stroke(Stroke::Whisker, low, high);
        for (x, y) in [low, high] {
            self.stroke(Stroke::Whisker, (x - WHISKER, y), (x + WHISKER, y));
        }
    }
}
