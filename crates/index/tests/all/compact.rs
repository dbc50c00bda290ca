//! Few records for many cells: copies and runs are as long as they can be.

use hyperslab_index::{
    CellOrder, ChunkGrid, Hyperslab, Region, Selection, Shape, StridedCopy, Target,
};

fn grid(array: &[u64], chunk: &[u64]) -> ChunkGrid {
    let shape = |sides: &[u64]| Shape::try_from(sides).unwrap();
    ChunkGrid::new(&shape(array), &shape(chunk)).unwrap()
}

fn copies(grid: &ChunkGrid, selection: &Selection, order: &[usize]) -> Vec<StridedCopy> {
    let target = Target::packed(selection.result_shape(grid.array_shape()));
    let order = CellOrder::new(order).unwrap();
    grid.parts(selection)
        .unwrap()
        .flat_map(|part| part.copies(&order, &target))
        .collect()
}

#[test]
fn a_whole_chunk_is_one_copy() {
    let grid = grid(&[20, 30, 40], &[20, 30, 40]);
    let all = [StridedCopy {
        count: 1,
        len: 24_000,
        ..StridedCopy::default()
    }];
    assert_eq!(copies(&grid, &Selection::All, &[0, 1, 2]), all);
}

#[test]
fn a_chunk_in_a_larger_result_is_one_copy_per_plane() {
    let grid = grid(&[4, 6, 8], &[2, 3, 4]);
    let found = copies(&grid, &Selection::All, &[0, 1, 2]);
    assert_eq!(found.len(), 8 * 2);
    let expected = StridedCopy {
        src: 12,
        dst: 48,
        count: 3,
        src_step: 4,
        dst_step: 8,
        len: 4,
    };
    assert_eq!(found[1], expected);
}

#[test]
fn rows_fold_where_the_inner_dimensions_are_whole() {
    let grid = grid(&[40, 6, 8], &[10, 6, 8]);
    let found = copies(&grid, &Selection::All, &[0, 1, 2]);
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|copy| (copy.count, copy.len) == (1, 480)));
}

#[test]
fn a_strided_row_is_one_copy() {
    let grid = grid(&[1000], &[1000]);
    let every_third = Hyperslab::new(&[1], &[3], &[333], &[1]).unwrap().into();
    let expected = StridedCopy {
        src: 1,
        dst: 0,
        count: 333,
        src_step: 3,
        dst_step: 1,
        len: 1,
    };
    assert_eq!(copies(&grid, &every_third, &[0]), [expected]);
}

#[test]
fn a_transposed_chunk_is_one_copy_per_column() {
    let grid = grid(&[30, 50], &[30, 50]);
    let found = copies(&grid, &Selection::All, &[1, 0]);
    assert_eq!(found.len(), 50);
    assert!(
        found
            .iter()
            .all(|copy| copy.count == 30 && copy.src_step == 1 && copy.dst_step == 50)
    );
}

#[test]
fn a_union_in_one_chunk_has_a_copy_per_box() {
    let grid = grid(&[100, 100], &[100, 100]);
    let slab = |start: [u64; 2], shape: [u64; 2]| {
        Hyperslab::from_region(&Region::new(start, shape).unwrap())
    };
    let selection =
        Selection::from_hyperslabs(vec![slab([0, 0], [50, 100]), slab([60, 10], [40, 20])])
            .unwrap();
    let found = copies(&grid, &selection, &[0, 1]);
    let whole = StridedCopy {
        count: 1,
        len: 5000,
        ..StridedCopy::default()
    };
    let rows = StridedCopy {
        src: 6010,
        dst: 5000,
        count: 40,
        src_step: 100,
        dst_step: 20,
        len: 20,
    };
    assert_eq!(found, [whole, rows]);
    let part = grid.parts(&selection).unwrap().next().unwrap();
    assert_eq!(part.runs(&CellOrder::row_major(2), 4).count(), 41);
}

#[test]
fn neighbouring_points_are_one_copy() {
    let grid = grid(&[10, 10], &[5, 10]);
    let selection = Selection::points(2, vec![1, 2, 1, 3, 1, 4, 9, 9]).unwrap();
    let found = copies(&grid, &selection, &[0, 1]);
    let three = StridedCopy {
        src: 12,
        dst: 0,
        count: 1,
        len: 3,
        ..StridedCopy::default()
    };
    let one = StridedCopy {
        src: 49,
        dst: 3,
        count: 1,
        len: 1,
        ..StridedCopy::default()
    };
    assert_eq!(found, [three, one]);
}
