// Arrays and generators as NumPy holds them, reached without a detour through Python.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/random/bitgen.h>

#include <cstdint>
#include <optional>

#include "laws.hpp"

namespace draftproof {

namespace nb = nanobind;

// An ndarray that its owner keeps alive for the duration of a call.
class Array {
   public:
    explicit Array(nb::handle array) : array_(reinterpret_cast<PyArrayObject*>(array.ptr())) {}

    static bool is_one(nb::handle object) { return PyArray_CheckExact(object.ptr()); }

    template <typename T>
    T* as() const {
        return static_cast<T*>(PyArray_DATA(array_));
    }
    int rank() const { return PyArray_NDIM(array_); }
    std::int64_t size(int axis) const { return PyArray_DIM(array_, axis); }
    std::int64_t stride(int axis) const { return PyArray_STRIDE(array_, axis); }

    std::int64_t itemsize() const { return PyArray_ITEMSIZE(array_); }

    Dtype dtype() const {
        switch (PyArray_TYPE(array_)) {
            case NPY_DOUBLE: return Dtype::float64;
            case NPY_FLOAT: return Dtype::float32;
            case NPY_HALF: return Dtype::float16;
            default: return Dtype::bfloat16;  // uint16 words
        }
    }
    bool is_float() const {
        const int type = PyArray_TYPE(array_);
        return (type == NPY_DOUBLE || type == NPY_FLOAT || type == NPY_HALF) &&
               PyArray_ISNOTSWAPPED(array_);
    }
    // Contiguous and aligned int64, whatever this platform calls it.
    bool is_int64(int rank) const {
        const int type = PyArray_TYPE(array_);
        return PyArray_NDIM(array_) == rank && (type == NPY_LONG || type == NPY_LONGLONG) &&
               PyArray_ITEMSIZE(array_) == 8 && PyArray_ISCARRAY_RO(array_);
    }

    // The rows of [B, R, W] or, packed, of [N, W].
    RowTable table() const {
        const int last = rank() - 1;
        return {as<const char>(), last == 2 ? stride(0) : 0, stride(last - 1),
                stride(last),     size(last),                dtype()};
    }

   private:
    PyArrayObject* array_;
};

inline std::optional<Array> optional_array(nb::handle array) {
    if (array.is_none()) return std::nullopt;
    return Array(array);
}

template <typename T>
const T* data_or_null(const std::optional<Array>& array) {
    return array ? array->as<const T>() : nullptr;
}

// A new, uninitialised array of one or two axes.
inline nb::object new_array(int type, std::initializer_list<npy_intp> shape) {
    PyObject* array = PyArray_EMPTY(static_cast<int>(shape.size()), shape.begin(), type, 0);
    if (!array) throw nb::python_error();
    return nb::steal(array);
}

inline nb::object copy_of(nb::handle array) {
    PyObject* copy =
        PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(array.ptr()), NPY_CORDER);
    if (!copy) throw nb::python_error();
    return nb::steal(copy);
}

// What `numpy.random.Generator.random` would hand out, `count` numbers of it.
inline void draw_uniforms(nb::handle generator, double* out, std::int64_t count) {
    static PyObject *const bit_generator_name = PyUnicode_InternFromString("bit_generator"),
                    *const lock_name = PyUnicode_InternFromString("lock"),
                    *const capsule_name = PyUnicode_InternFromString("capsule"),
                    *const acquire_name = PyUnicode_InternFromString("acquire"),
                    *const release_name = PyUnicode_InternFromString("release");
    const nb::object source = generator.attr(bit_generator_name), lock = source.attr(lock_name),
                     capsule = source.attr(capsule_name);
    auto* bits = static_cast<bitgen_t*>(PyCapsule_GetPointer(capsule.ptr(), "BitGenerator"));
    if (!bits) throw nb::python_error();
    const auto call = [&lock](PyObject* name) {
        PyObject* result = PyObject_CallMethodNoArgs(lock.ptr(), name);
        if (!result) throw nb::python_error();
        Py_DECREF(result);
    };
    call(acquire_name);
    {
        nb::gil_scoped_release release;
        for (std::int64_t n = 0; n < count; ++n) out[n] = bits->next_double(bits->state);
    }
    call(release_name);
}

}  // namespace draftproof
