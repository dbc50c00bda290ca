//! The naive model: an array of bytes with two dimensions, cell by cell.

use rand::Rng;
use rand::rngs::StdRng;

pub(super) struct Plane {
    pub(super) sides: [u64; 2],
    cells: Vec<u8>,
}

impl Plane {
    pub(super) fn new(sides: [u64; 2], cells: Vec<u8>) -> Self {
        assert_eq!(cells.len() as u64, sides[0] * sides[1]);
        Plane { sides, cells }
    }

    fn place(&self, row: u64, column: u64) -> usize {
        (row * self.sides[1] + column) as usize
    }

    /// A part of it: rows, columns and boxes.
    pub(super) fn part(&self, rng: &mut StdRng) -> ([u64; 2], [u64; 2]) {
        let mut start = [0; 2];
        let mut shape = self.sides;
        let whole = rng.random_range(0..3);
        for dim in 0..2 {
            if dim != whole {
                start[dim] = rng.random_range(0..self.sides[dim]);
                shape[dim] = rng.random_range(1..=(self.sides[dim] - start[dim]).min(4));
            }
        }
        (start, shape)
    }

    pub(super) fn read(&self, start: [u64; 2], shape: [u64; 2]) -> Vec<u8> {
        let mut out = Vec::new();
        for row in start[0]..start[0] + shape[0] {
            for column in start[1]..start[1] + shape[1] {
                out.push(self.cells[self.place(row, column)]);
            }
        }
        out
    }

    pub(super) fn write(&mut self, start: [u64; 2], shape: [u64; 2], values: &[u8]) {
        let mut values = values.iter();
        for row in start[0]..start[0] + shape[0] {
            for column in start[1]..start[1] + shape[1] {
                let place = self.place(row, column);
                self.cells[place] = *values.next().unwrap();
            }
        }
    }

    /// The same with other sides; new cells are 0.
    pub(super) fn resized(&self, sides: [u64; 2]) -> Self {
        let mut next = Plane::new(sides, vec![0; (sides[0] * sides[1]) as usize]);
        for row in 0..sides[0].min(self.sides[0]) {
            for column in 0..sides[1].min(self.sides[1]) {
                let place = next.place(row, column);
                next.cells[place] = self.cells[self.place(row, column)];
            }
        }
        next
    }
}
