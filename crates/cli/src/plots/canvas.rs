//! What all pictures have: a frame with axes, lines, and a legend beneath.
//!
//! Lines and text are drawn in one ink, which a page makes its own text's colour. Series have colours that can be told from white and from
//! black, and markers of their own besides.

use anyhow::anyhow;
use countersink::reader::escape;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A drawn picture.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    text: String,
    width: u32,
    height: u32,
}

/// The ink, as the drawing has it.
const INK: RGBColor = RGBColor(1, 2, 3);
const INK_TEXT: &str = "\"#010203\"";
const WIDTH: u32 = 640;
/// The height of the frame, without title and legend.
const FRAME: u32 = 300;
const LEFT: u32 = 64;
const RIGHT: u32 = 18;
const TOP: u32 = 34;
/// Between the frame and the legend: the axis' labels and its name.
const AXIS: u32 = 46;
const LINE: u32 = 20;
const FONT: &str = "sans-serif";
const SIZE: i32 = 13;
/// What a letter takes, about.
const LETTER: u32 = 7;

impl Svg {
    /// A file of its own, on white.
    pub(crate) fn for_file(&self) -> String {
        let background = format!(
            "<rect width=\"{}\" height=\"{}\" fill=\"#FFFFFF\"/>\n",
            self.width, self.height
        );
        match self.text.split_once(">\n") {
            Some((head, rest)) => format!("{head}>\n{background}{rest}"),
            None => self.text.clone(),
        }
    }

    /// A part of a page: in the page's colours, as wide as there is room.
    pub(crate) fn for_page(&self) -> String {
        let size = format!("width=\"{}\" height=\"{}\" ", self.width, self.height);
        let text = self.text.replacen(&size, "aria-hidden=\"true\" ", 1);
        text.replace(INK_TEXT, "\"currentColor\"")
    }
}

/// Where something is on an axis, and what it is called.
pub(crate) type Tick = (f64, String);

/// An axis.
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) ticks: Vec<Tick>,
}

/// The colour of a series, and its marker.
fn color(number: usize) -> RGBColor {
    const COLORS: [RGBColor; 8] = [
        RGBColor(0x1f, 0x77, 0xd0),
        RGBColor(0xd5, 0x5e, 0x00),
        RGBColor(0x00, 0x90, 0x68),
        RGBColor(0xc0, 0x50, 0xa0),
        RGBColor(0x80, 0x80, 0x80),
        RGBColor(0x9a, 0x78, 0x10),
        RGBColor(0x7a, 0x62, 0xd8),
        RGBColor(0xd0, 0x40, 0x50),
    ];
    COLORS[number % COLORS.len()]
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;

/// A frame that is being drawn into.
pub(crate) struct Canvas<'a, 'b> {
    area: &'a Area<'b>,
    chart: Chart<'a, 'b>,
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("the picture cannot be drawn: {error}")
}

/// Draws a picture: title, axes, what `inside` draws, and the legend of these series.
///
/// # Errors
/// If it cannot be drawn.
pub(crate) fn draw(
    title: &str,
    (x, y): (&Axis, &Axis),
    legend: &[String],
    inside: impl FnOnce(&mut Canvas<'_, '_>) -> anyhow::Result<()>,
) -> anyhow::Result<Svg> {
    draw_with((title, FRAME), (x, y), legend, inside)
}

/// The same with a frame of another height.
pub(crate) fn draw_with(
    (title, frame): (&str, u32),
    (x, y): (&Axis, &Axis),
    legend: &[String],
    inside: impl FnOnce(&mut Canvas<'_, '_>) -> anyhow::Result<()>,
) -> anyhow::Result<Svg> {
    let legend: Vec<String> = legend.iter().map(|name| shorten(name, 60)).collect();
    let rows = rows_of(&legend);
    let left = y
        .ticks
        .iter()
        .map(|(_, label)| label.chars().count() as u32 * LETTER + 30);
    let left = left.max().unwrap_or(LEFT).clamp(LEFT, WIDTH / 3);
    let height = TOP + frame + AXIS + LINE * rows.len() as u32 + 8;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        put(
            &area,
            &shorten(title, 80),
            (WIDTH as i32 / 2, 14),
            HPos::Center,
            SIZE + 2,
        )?;
        let plot = area.margin(TOP, AXIS + LINE * rows.len() as u32 + 8, left, RIGHT);
        let chart = ChartBuilder::on(&plot)
            .build_cartesian_2d(x.from..x.to, y.from..y.to)
            .map_err(failed)?;
        let mut canvas = Canvas { area: &area, chart };
        canvas.axes(x, y)?;
        inside(&mut canvas)?;
        let first = TOP + frame + AXIS + LINE / 2;
        for (row, names) in rows.iter().enumerate() {
            let at = (first + LINE * row as u32) as i32;
            for (number, left) in names {
                let left = *left as i32;
                marker(&area, (left + 8, at), *number)?;
                put(&area, &legend[*number], (left + 20, at), HPos::Left, SIZE)?;
            }
        }
        area.present().map_err(failed)?;
    }
    Ok(Svg {
        text,
        width: WIDTH,
        height,
    })
}

/// The legend in rows: the numbers of the series, and where each begins.
fn rows_of(legend: &[String]) -> Vec<Vec<(usize, u32)>> {
    let mut rows: Vec<Vec<(usize, u32)>> = Vec::new();
    let mut at = WIDTH;
    for (number, name) in legend.iter().enumerate() {
        let width = name.chars().count() as u32 * LETTER + 40;
        if at + width > WIDTH || rows.is_empty() {
            rows.push(Vec::new());
            at = 12;
        }
        if let Some(row) = rows.last_mut() {
            row.push((number, at));
        }
        at += width;
    }
    rows
}

/// What is shown of a name from a file: nothing that is no letter, and not more than there is room for.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let text = escape(text);
    match text.chars().count() > most {
        true => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
        false => text,
    }
}

fn put(area: &Area<'_>, text: &str, at: (i32, i32), across: HPos, size: i32) -> anyhow::Result<()> {
    let style = (FONT, size)
        .into_font()
        .color(&INK)
        .pos(Pos::new(across, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style))
        .map_err(failed)
}

/// The marker of a series: a disc, a square, a triangle, a cross.
fn marker(area: &Area<'_>, (x, y): (i32, i32), number: usize) -> anyhow::Result<()> {
    let color = color(number);
    let drawn = match number % 4 {
        0 => area.draw(&Circle::new((x, y), 4, color.filled())),
        1 => area.draw(&Rectangle::new(
            [(x - 4, y - 4), (x + 4, y + 4)],
            color.filled(),
        )),
        2 => area.draw(&TriangleMarker::new((x, y), 5, color.filled())),
        _ => area.draw(&Cross::new((x, y), 4, color.stroke_width(2))),
    };
    drawn.map_err(failed)
}

impl Canvas<'_, '_> {
    fn axes(&mut self, x: &Axis, y: &Axis) -> anyhow::Result<()> {
        let grid = INK.mix(0.15).stroke_width(1);
        let (left, bottom) = self.pixel((x.from, y.from));
        for (at, label) in &x.ticks {
            self.line(&[(*at, y.from), (*at, y.to)], grid)?;
            let (column, _) = self.pixel((*at, y.from));
            put(
                self.area,
                &shorten(label, 20),
                (column, bottom + 12),
                HPos::Center,
                SIZE,
            )?;
        }
        for (at, label) in &y.ticks {
            self.line(&[(x.from, *at), (x.to, *at)], grid)?;
            let (_, row) = self.pixel((x.from, *at));
            put(
                self.area,
                &shorten(label, 26),
                (left - 6, row),
                HPos::Right,
                SIZE,
            )?;
        }
        let corners = [
            (x.from, y.from),
            (x.to, y.from),
            (x.to, y.to),
            (x.from, y.to),
            (x.from, y.from),
        ];
        self.line(&corners, INK.mix(0.6).stroke_width(1))?;
        let (right, top) = self.pixel((x.to, y.to));
        put(
            self.area,
            &x.name,
            ((left + right) / 2, bottom + 32),
            HPos::Center,
            SIZE,
        )?;
        let turned = (FONT, SIZE)
            .into_font()
            .transform(FontTransform::Rotate270)
            .color(&INK)
            .pos(Pos::new(HPos::Center, VPos::Center));
        let name = Text::new(y.name.clone(), (12, (top + bottom) / 2), turned);
        self.area.draw(&name).map_err(failed)
    }

    fn pixel(&self, at: (f64, f64)) -> (i32, i32) {
        self.chart.plotting_area().map_coordinate(&at)
    }

    fn line(&mut self, points: &[(f64, f64)], style: ShapeStyle) -> anyhow::Result<()> {
        let path = PathElement::new(points.to_vec(), style);
        self.chart.plotting_area().draw(&path).map_err(failed)
    }

    /// A thin line in ink, with a word beside its upper end if there is one.
    pub(crate) fn mark(&mut self, points: [(f64, f64); 2], word: &str) -> anyhow::Result<()> {
        self.line(&points, INK.mix(0.7).stroke_width(1))?;
        if word.is_empty() {
            return Ok(());
        }
        let (x, y) = self.pixel(points[1]);
        put(self.area, word, (x - 4, y + 10), HPos::Right, SIZE - 1)
    }

    /// The line of a series, with its markers.
    pub(crate) fn series(&mut self, number: usize, points: &[(f64, f64)]) -> anyhow::Result<()> {
        self.line(points, color(number).stroke_width(2))?;
        for point in points {
            marker(self.area, self.pixel(*point), number)?;
        }
        Ok(())
    }

    /// From the lowest to the highest: x, low, high.
    pub(crate) fn band(&mut self, number: usize, ends: &[(f64, f64, f64)]) -> anyhow::Result<()> {
        let above = ends.iter().map(|(x, _, high)| (*x, *high));
        let below = ends.iter().rev().map(|(x, low, _)| (*x, *low));
        let around: Vec<(f64, f64)> = above.chain(below).collect();
        let band = Polygon::new(around, color(number).mix(0.2));
        self.chart.plotting_area().draw(&band).map_err(failed)?;
        for (x, low, high) in ends {
            self.line(
                &[(*x, *low), (*x, *high)],
                color(number).mix(0.6).stroke_width(1),
            )?;
        }
        Ok(())
    }

    /// Discs, so many above each other.
    pub(crate) fn pile(
        &mut self,
        number: usize,
        at: (f64, f64),
        count: usize,
    ) -> anyhow::Result<()> {
        let (x, y) = self.pixel(at);
        for step in 0..count {
            let disc = Circle::new((x, y - 4 * step as i32), 2, color(number).filled());
            self.area.draw(&disc).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str) -> Axis {
        Axis {
            name: name.to_owned(),
            from: 0.0,
            to: 1.0,
            ticks: vec![(0.5, "half".to_owned())],
        }
    }

    #[test]
    fn names_cannot_break_out() {
        let names = [
            "<script>alert(1)</script>".to_owned(),
            "a\u{1}b\n\u{202e}c".to_owned(),
        ];
        let drawn = draw("\"&'<x>", (&axis("x"), &axis("y")), &names, |canvas| {
            canvas.series(0, &[(0.1, 0.2), (0.9, 0.8)])
        });
        let svg = drawn.expect("a picture");
        for text in [svg.for_file(), svg.for_page()] {
            assert!(!text.contains("<script"), "{text}");
            assert!(text.contains("&lt;script&gt;"), "{text}");
            let is_odd = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
            assert_eq!(text.chars().find(is_odd), None);
        }
        assert!(svg.for_file().contains("fill=\"#FFFFFF\""));
        assert!(svg.for_file().contains("width=\"640\" height="));
        let page = svg.for_page();
        assert!(
            page.contains("\"currentColor\"") && !page.contains(INK_TEXT),
            "{page}"
        );
        assert!(
            page.starts_with("<svg aria-hidden=\"true\" viewBox="),
            "{page}"
        );
    }

    #[test]
    fn legends_take_as_many_rows_as_they_need() {
        let names: Vec<String> = (0..9)
            .map(|n| format!("a name of some length {n}"))
            .collect();
        let rows = rows_of(&names);
        assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), 9);
        assert!(
            rows.len() > 2 && rows.iter().all(|row| !row.is_empty()),
            "{rows:?}"
        );
        assert!(rows_of(&[]).is_empty());
    }
}
