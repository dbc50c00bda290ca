//! The naive model of an array: all its cells in one vector, handled one by one.

use crate::Wanted;

/// An array in memory, with cells of a fixed size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    sides: Vec<u64>,
    fill: Vec<u8>,
    cells: Vec<u8>,
}

impl Model {
    /// An array full of `fill`, the bytes of one cell.
    pub fn new(sides: &[u64], fill: &[u8]) -> Self {
        let count = sides.iter().product::<u64>() as usize;
        Model {
            sides: sides.to_vec(),
            fill: fill.to_vec(),
            cells: fill.repeat(count),
        }
    }

    /// Its shape.
    pub fn sides(&self) -> &[u64] {
        &self.sides
    }

    /// Its cells in row-major order.
    pub fn cells(&self) -> &[u8] {
        &self.cells
    }

    fn place(&self, cell: &[u64]) -> std::ops::Range<usize> {
        let at = cell
            .iter()
            .zip(&self.sides)
            .fold(0, |at, (x, side)| at * side + x) as usize;
        at * self.fill.len()..(at + 1) * self.fill.len()
    }

    /// The bytes of the wanted cells, one after another.
    pub fn read(&self, wanted: &Wanted) -> Vec<u8> {
        let cells = wanted.cells(&self.sides);
        cells
            .iter()
            .flat_map(|cell| &self.cells[self.place(cell)])
            .copied()
            .collect()
    }

    /// Writes the wanted cells, in order; of duplicates the last stays.
    pub fn write(&mut self, wanted: &Wanted, bytes: &[u8]) {
        let cells = wanted.cells(&self.sides);
        for (cell, value) in cells.iter().zip(bytes.chunks(self.fill.len())) {
            let place = self.place(cell);
            self.cells[place].copy_from_slice(value);
        }
    }

    /// The same array with other sides: cells that are in both stay, new ones hold the fill.
    #[must_use]
    pub fn resized(&self, sides: &[u64]) -> Self {
        let mut next = Model::new(sides, &self.fill);
        for cell in coords(sides) {
            if cell.iter().zip(&self.sides).all(|(x, side)| x < side) {
                let place = next.place(&cell);
                next.cells[place].copy_from_slice(&self.cells[self.place(&cell)]);
            }
        }
        next
    }
}

/// Every coordinate of an array in row-major order.
pub(crate) fn coords(sides: &[u64]) -> impl Iterator<Item = Vec<u64>> + use<> {
    let sides = sides.to_vec();
    (0..sides.iter().product::<u64>()).map(move |mut offset| {
        let mut cell = vec![0; sides.len()];
        for (x, side) in cell.iter_mut().zip(&sides).rev() {
            *x = offset % side;
            offset /= side;
        }
        cell
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stay_where_they_are() {
        let mut model = Model::new(&[2, 3], &[9]);
        model.write(&Wanted::All, &[0, 1, 2, 3, 4, 5]);
        assert_eq!(model.resized(&[3, 2]).cells(), [0, 1, 3, 4, 9, 9]);
        let points = Wanted::Points(vec![vec![1, 2], vec![0, 0], vec![1, 2]]);
        assert_eq!(model.read(&points), [5, 0, 5]);
        model.write(&points, &[7, 8, 6]);
        assert_eq!(model.cells(), [8, 1, 2, 3, 4, 6]);
        assert_eq!(model.read(&Wanted::region(&[0, 1], &[2, 2])), [1, 2, 4, 6]);
        assert_eq!(coords(&[]).collect::<Vec<_>>(), [Vec::<u64>::new()]);
        assert_eq!(coords(&[2, 0]).count(), 0);
    }
}
