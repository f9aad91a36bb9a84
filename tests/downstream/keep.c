#include <Python.h>
#include <spcacore.h>
#include <stdlib.h>

static const spcacore_table *kernels;

/* keep(row, k): the k entries of largest magnitude of an array of doubles; the others become 0. */
static PyObject *keep(PyObject *self, PyObject *arguments)
{
    Py_buffer row;
    Py_ssize_t k;
    int status;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "w*n", &row, &k)) return NULL;
    double *work = (double *)malloc((size_t)row.len + 1);
    Py_BEGIN_ALLOW_THREADS status =
        kernels->dtruncate(row.len / (Py_ssize_t)sizeof(double), k, (double *)row.buf, work);
    Py_END_ALLOW_THREADS free(work);
    PyBuffer_Release(&row);
    return PyLong_FromLong(status);
}

static PyMethodDef methods[] = {{"keep", keep, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "keep", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_keep(void)
{
    kernels = spcacore_import();
    return kernels ? PyModule_Create(&module) : NULL;
}
