//! The largest, the smallest and the most numerous.

use hyperslab_index::{
    CellOrder, ChunkGrid, Hyperslab, Part, Region, Selection, Shape, Target, default_chunks,
};

fn shape(sides: &[u64]) -> Shape {
    Shape::try_from(sides).unwrap()
}

#[test]
fn parts_move_between_threads() {
    fn movable<T: Send + Sync + Clone + 'static>() {}
    movable::<Part>();
    fn sendable<T: Send + 'static>() {}
    sendable::<hyperslab_index::Copies>();
    sendable::<hyperslab_index::Runs>();
}

#[test]
fn scalars_have_one_part_of_one_cell() {
    let grid = ChunkGrid::new(&shape(&[]), &shape(&[])).unwrap();
    let parts: Vec<Part> = grid.parts(&Selection::All).unwrap().collect();
    assert_eq!(parts.len(), 1);
    let order = CellOrder::row_major(0);
    assert!(parts[0].is_whole() && parts[0].chunk().is_empty());
    let runs: Vec<_> = parts[0]
        .runs(&order, 8)
        .map(|run| (run.offset, run.len))
        .collect();
    assert_eq!(runs, [(0, 8)]);
    let copies: Vec<_> = parts[0].copies(&order, &Target::packed([])).collect();
    assert_eq!((copies.len(), copies[0].count, copies[0].len), (1, 1, 1));
}

#[test]
fn arrays_without_cells_have_no_parts() {
    let grid = ChunkGrid::new(&shape(&[3, 0, 5]), &shape(&[2, 2, 2])).unwrap();
    assert_eq!(grid.parts(&Selection::All).unwrap().count(), 0);
    let none = Hyperslab::new(&[0; 3], &[1; 3], &[3, 0, 5], &[1; 3]).unwrap();
    assert_eq!(grid.parts(&none.into()).unwrap().count(), 0);
}

#[test]
fn rank_32_works_like_any_other() {
    let mut sides = [1; 32];
    (sides[0], sides[7], sides[31]) = (4, 6, 5);
    let mut chunk = [1; 32];
    (chunk[0], chunk[7], chunk[31]) = (3, 2, 5);
    let grid = ChunkGrid::new(&shape(&sides), &shape(&chunk)).unwrap();
    let mut reversed: Vec<usize> = (0..32).collect();
    reversed.reverse();
    let order = CellOrder::new(&reversed).unwrap();
    let corner = |start: [u64; 2], count: [u64; 2]| {
        let mut region = ([0; 32], [1; 32]);
        (region.0[0], region.0[31]) = (start[0], start[1]);
        (region.1[0], region.1[7], region.1[31]) = (count[0], 6, count[1]);
        Hyperslab::from_region(&Region::new(region.0, region.1).unwrap())
    };
    let union = vec![corner([0, 0], [2, 2]), corner([1, 1], [3, 4])];
    let union = Selection::from_hyperslabs(union).unwrap();
    assert!(matches!(union, Selection::Union(_)));
    for selection in [Selection::All, union] {
        let result = selection.result_shape(grid.array_shape());
        let mut taken = vec![0; result.num_cells() as usize];
        for part in grid.parts(&selection).unwrap() {
            for copy in part.copies(&order, &Target::packed(&result)) {
                for k in 0..copy.count {
                    for j in 0..copy.len {
                        taken[(copy.dst + k * copy.dst_step + j) as usize] += 1;
                    }
                }
            }
            let bytes: u64 = part.runs(&order, 2).map(|run| run.len).sum();
            assert_eq!(bytes, part.num_cells() * 2);
        }
        assert!(taken.iter().all(|&times| times == 1));
    }
}

#[test]
fn huge_regular_selections_cost_nothing_until_they_are_walked() {
    let side = 1 << 31;
    let grid = ChunkGrid::new(&shape(&[side, side]), &shape(&[1000, 1000])).unwrap();
    let mut parts = grid.parts(&Selection::All).unwrap();
    assert_eq!(parts.remaining(), Some(2147484 * 2147484));
    assert_eq!(parts.next().unwrap().chunk(), [0, 0]);
    // Far apart cells: only their chunks are visited.
    let sparse = Hyperslab::new(&[5, 7], &[1 << 30, 1 << 29], &[2, 4], &[1, 1]).unwrap();
    let chunks: Vec<_> = grid
        .parts(&sparse.into())
        .unwrap()
        .map(|part| part.chunk().to_vec())
        .collect();
    assert_eq!(chunks.len(), 8);
    assert_eq!(
        chunks[7],
        [(5 + (1 << 30)) / 1000, (7 + 3 * (1 << 29)) / 1000]
    );
}

#[test]
fn summaries_of_a_thousand_million_cells_are_closed_form() {
    let grid = ChunkGrid::new(&shape(&[1 << 20, 1 << 20]), &shape(&[1 << 20, 1 << 20])).unwrap();
    let strided = Hyperslab::new(&[0, 0], &[2, 3], &[1 << 19, 300_000], &[1, 2]).unwrap();
    let part = grid.parts(&strided.into()).unwrap().next().unwrap();
    let summary = part.run_summary(&CellOrder::row_major(2), 4);
    assert_eq!(summary.runs, (1 << 19) * 300_000);
    assert_eq!(summary.bytes, (1 << 19) * 300_000 * 2 * 4);
    assert_eq!(summary.first, 0);
    assert_eq!(
        summary.end,
        (((1 << 20) - 2) * (1 << 20) + 299_999 * 3 + 2) * 4
    );
}

#[test]
fn the_largest_array_has_chunks() {
    let largest = shape(&[i64::MAX as u64]);
    let chunk = default_chunks(&largest, 8, 1 << 24);
    let grid = ChunkGrid::new(&largest, &chunk).unwrap();
    let last = Region::new([i64::MAX as u64 - 1], [1]).unwrap();
    let parts: Vec<Part> = grid.parts(&Selection::region(&last)).unwrap().collect();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].chunk(), [grid.num_chunks() - 1]);
    let one = ChunkGrid::new(&largest, &largest).unwrap();
    assert!(
        one.parts(&Selection::All)
            .unwrap()
            .next()
            .unwrap()
            .is_whole()
    );
}

#[test]
fn selections_outside_the_array_are_refused() {
    let grid = ChunkGrid::new(&shape(&[4, 4]), &shape(&[2, 2])).unwrap();
    let outside = Region::new([0, 2], [4, 3]).unwrap();
    assert!(grid.parts(&Selection::region(&outside)).is_err());
    assert!(grid.parts(&Selection::points(1, vec![0]).unwrap()).is_err());
}

#[test]
fn many_boxes_make_one_union() {
    // A checkerboard of 500 × 500 fields, given one by one.
    let field = |k: u64| {
        let (row, column) = (k / 500, k % 500 * 2 + k / 500 % 2);
        Hyperslab::from_region(&Region::new([row, column], [1, 1]).unwrap())
    };
    let board = Selection::from_hyperslabs((0..250_000).map(field).collect()).unwrap();
    let Selection::Union(union) = &board else {
        panic!("{board:?}")
    };
    assert_eq!(union.num_cells(), 250_000);
    // Two kinds of rows, shared by all.
    assert_eq!(union.num_spans(), 500 + 2 * 500);
    let grid = ChunkGrid::new(&shape(&[500, 1000]), &shape(&[100, 100])).unwrap();
    let cells: u64 = grid
        .parts(&board)
        .unwrap()
        .map(|part| part.num_cells())
        .sum();
    assert_eq!(cells, 250_000);
}
