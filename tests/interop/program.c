/* A program that knows HDF5 and nothing else: makes a file, changes it, and reads two datasets in one call. */
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#define CHECK(call)                                                    \
    do {                                                               \
        if ((call) < 0) {                                              \
            fprintf(stderr, "line %d: %s\n", __LINE__, #call);         \
            return 1;                                                  \
        }                                                              \
    } while (0)

int main(int argc, char **argv) {
    hsize_t dims[2] = {6, 8}, most[2] = {H5S_UNLIMITED, 8}, chunk[2] = {4, 3};
    int cells[48], row[8], seen[48];
    double numbers[5] = {0.5, 1.5, 2.5, 3.5, 4.5}, again[5];
    for (int i = 0; i < 48; i++) cells[i] = i;

    hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(file);
    hid_t space = H5Screate_simple(2, dims, most);
    hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    CHECK(H5Pset_chunk(how, 2, chunk));
    CHECK(H5Pset_deflate(how, 4));
    hid_t table = H5Dcreate2(file, "table", H5T_STD_I16BE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    CHECK(table);
    CHECK(H5Dwrite(table, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells));

    /* Every second row from the second on becomes -1. */
    hsize_t start[2] = {1, 0}, stride[2] = {2, 1}, count[2] = {3, 8};
    hid_t selected = H5Dget_space(table);
    CHECK(H5Sselect_hyperslab(selected, H5S_SELECT_SET, start, stride, count, NULL));
    hsize_t many[1] = {24};
    hid_t memory = H5Screate_simple(1, many, NULL);
    int ones[24];
    for (int i = 0; i < 24; i++) ones[i] = -1;
    CHECK(H5Dwrite(table, H5T_NATIVE_INT, memory, selected, H5P_DEFAULT, ones));

    hsize_t five[1] = {5};
    hid_t line = H5Screate_simple(1, five, NULL);
    hid_t list = H5Dcreate2(file, "list", H5T_IEEE_F64LE, line, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(list);
    CHECK(H5Dwrite(list, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers));
    hid_t scalar = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(list, "answer", H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
    int answer = 42;
    CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &answer));
    CHECK(H5Aclose(attribute));
    /* The file first, and what is in it afterwards. */
    CHECK(H5Fclose(file));
    CHECK(H5Dclose(list));
    CHECK(H5Dclose(table));

    file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file);
    hid_t datasets[2] = {H5Dopen2(file, "table", H5P_DEFAULT), H5Dopen2(file, "list", H5P_DEFAULT)};
    hid_t types[2] = {H5T_NATIVE_INT, H5T_NATIVE_DOUBLE}, all[2] = {H5S_ALL, H5S_ALL};
    void *buffers[2] = {seen, again};
    CHECK(H5Dread_multi(2, datasets, types, all, all, H5P_DEFAULT, buffers));
    long sum = 0;
    for (int i = 0; i < 48; i++) sum += seen[i];
    memcpy(row, seen + 8, sizeof row);
    printf("%ld %d %d %.1f %.1f\n", sum, row[0], seen[16], again[0], again[4]);
    attribute = H5Aopen_by_name(file, "list", "answer", H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Aread(attribute, H5T_NATIVE_INT, &answer));
    printf("%d %llu\n", answer, (unsigned long long)(H5Dget_storage_size(datasets[0]) > 0));
    CHECK(H5Aclose(attribute));
    CHECK(H5Dclose(datasets[0]));
    CHECK(H5Dclose(datasets[1]));
    CHECK(H5Fclose(file));
    return 0;
}
