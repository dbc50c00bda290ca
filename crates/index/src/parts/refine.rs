//! Cuts a part along a finer grid: the inner chunks of a shard.

use std::sync::Arc;

use super::points::Groups;
use crate::part::Body;
use crate::union::Window;
use crate::{ChunkGrid, Dims, Part};

impl Part {
    /// The parts of this part on a finer grid of the same array, in row-major order of their
    /// chunks. Chunks of the finer grid must not straddle the border of this part's chunk.
    pub fn refine(&self, grid: &ChunkGrid) -> Vec<Part> {
        match self.body() {
            Body::Regular(slab) => {
                // Per dimension the touched chunks and how many coordinates each has.
                let touched: Vec<Vec<(u64, u64)>> = (0..grid.rank())
                    .map(|dim| {
                        let side = grid.chunk_shape()[dim];
                        let (low, high) = (self.region().start()[dim], self.region().end(dim));
                        let count = |chunk: u64| {
                            let dim = &slab.dims()[dim];
                            dim.cells_below((chunk + 1) * side) - dim.cells_below(chunk * side)
                        };
                        (low / side..high.div_ceil(side))
                            .map(|chunk| (chunk, count(chunk)))
                            .filter(|(_, cells)| *cells > 0)
                            .collect()
                    })
                    .collect();
                let make = |chosen: &[(u64, u64)]| {
                    let chunk: Dims = chosen.iter().map(|(chunk, _)| *chunk).collect();
                    let cells = chosen.iter().map(|(_, cells)| *cells).product();
                    Some(Part::new(
                        chunk,
                        grid,
                        cells,
                        Body::Regular(Arc::clone(slab)),
                    ))
                };
                product(&touched, make)
            }
            Body::Union(union, _) => {
                let all: Vec<Vec<(u64, u64)>> = (0..grid.rank())
                    .map(|dim| {
                        let side = grid.chunk_shape()[dim];
                        let (low, high) = (self.region().start()[dim], self.region().end(dim));
                        (low / side..high.div_ceil(side))
                            .map(|chunk| (chunk, 0))
                            .collect()
                    })
                    .collect();
                product(&all, |chosen| {
                    let chunk: Dims = chosen.iter().map(|(chunk, _)| *chunk).collect();
                    let window = Window::new(&grid.chunk_region(&chunk), grid.chunk_shape());
                    let clipped = window.measure(union.root());
                    let body = Body::Union(union.clone(), clipped);
                    (clipped.cells > 0).then(|| Part::new(chunk, grid, clipped.cells, body))
                })
            }
            Body::Points { list, range, .. } => {
                let indices = list.entries[range.clone()].iter().map(|entry| entry.index);
                let mut groups = Groups::of(grid, &list.points, indices);
                std::iter::from_fn(|| groups.next(grid)).collect()
            }
        }
    }
}

/// Makes something of every combination, the last list turning fastest.
fn product<T>(lists: &[Vec<(u64, u64)>], make: impl Fn(&[(u64, u64)]) -> Option<T>) -> Vec<T> {
    let mut out = Vec::new();
    if lists.iter().any(Vec::is_empty) {
        return out;
    }
    let mut at = vec![0; lists.len()];
    let mut chosen: Vec<(u64, u64)> = lists.iter().map(|list| list[0]).collect();
    loop {
        out.extend(make(&chosen));
        let mut dim = lists.len();
        loop {
            if dim == 0 {
                return out;
            }
            dim -= 1;
            at[dim] += 1;
            if at[dim] < lists[dim].len() {
                chosen[dim] = lists[dim][at[dim]];
                break;
            }
            at[dim] = 0;
            chosen[dim] = lists[dim][0];
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{CellOrder, ChunkGrid, Hyperslab, Selection, Shape, Target};

    /// Refining each part must give the same copies as cutting with the finer grid at once.
    #[test]
    fn refined_parts_are_those_of_the_finer_grid() {
        let array = Shape::new([23, 17]).unwrap();
        let coarse = ChunkGrid::new(&array, &Shape::new([8, 6]).unwrap()).unwrap();
        let fine = ChunkGrid::new(&array, &Shape::new([4, 2]).unwrap()).unwrap();
        let slab = |s: [u64; 2], t: [u64; 2], c: [u64; 2], b: [u64; 2]| {
            Hyperslab::new(&s, &t, &c, &b).unwrap()
        };
        let selections = [
            Selection::All,
            Selection::from_hyperslabs(vec![slab([1, 2], [5, 7], [4, 2], [2, 3])]).unwrap(),
            Selection::from_hyperslabs(vec![
                slab([0, 0], [6, 9], [3, 2], [4, 5]),
                slab([3, 3], [9, 4], [2, 3], [5, 2]),
            ])
            .unwrap(),
            Selection::points(2, vec![22, 16, 0, 0, 9, 9, 9, 8, 0, 0, 13, 2]).unwrap(),
        ];
        let order = CellOrder::row_major(2);
        for selection in selections {
            let target = Target::packed(selection.result_shape(&array));
            let describe = |part: &crate::Part| {
                (
                    part.chunk().to_vec(),
                    part.num_cells(),
                    part.copies(&order, &target).collect::<Vec<_>>(),
                )
            };
            let mut refined: Vec<_> = coarse
                .parts(&selection)
                .unwrap()
                .flat_map(|part| part.refine(&fine))
                .map(|part| describe(&part))
                .collect();
            refined.sort_by(|a, b| a.0.cmp(&b.0));
            let direct: Vec<_> = fine
                .parts(&selection)
                .unwrap()
                .map(|p| describe(&p))
                .collect();
            assert_eq!(refined, direct);
        }
    }
}
