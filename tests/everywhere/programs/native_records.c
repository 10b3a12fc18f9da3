/* A module of Python that takes memory and forgets where. */
#include <Python.h>
#include <stdlib.h>
#include <string.h>

static PyObject* record(PyObject* self, PyObject* argument) {
  const size_t size = PyLong_AsSize_t(argument);
  char* volatile block = malloc(size); /* keeps */
  memset(block, 1, size);
  __asm__ volatile("" : : "r"(block) : "memory"); /* or the compiler does away with both */
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"record", record, METH_O, "Takes memory."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native_records", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_native_records(void) { return PyModule_Create(&module); }
