// Calls whose arguments need neither conversion nor a closer look, all the way without Python: a
// detour costs as much as a row of 32,000 tokens or, with the caches full of rows, as three.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "call_binding.hpp"
#include "numpy_arrays.hpp"

namespace draftproof {

// A Python function of one dtype and one size, asked again only when either changes.
class Tolerance {
   public:
    double operator()(nb::handle function, nb::handle array, Dtype dtype, std::int64_t columns) {
        if (columns != columns_ || dtype != dtype_) {
            value_ = nb::cast<double>(function(array.attr("dtype"), columns));
            columns_ = columns;
            dtype_ = dtype;
        }
        return value_;
    }

   private:
    Dtype dtype_ = Dtype::float64;
    std::int64_t columns_ = -1;
    double value_ = 0;
};

// What a short way needs of Python; borrowed for ever.
struct Surroundings {
    nb::handle result_type, generator_type, mass_tolerance, available_threads;
    nb::handle rules, levels;  // names, in the order of the enums

    void keep() const {
        for (nb::handle object :
             {result_type, generator_type, mass_tolerance, available_threads, rules, levels}) {
            object.inc_ref();
        }
    }
};

inline bool is_text(nb::handle object, const char* text) {
    return PyUnicode_CheckExact(object.ptr()) &&
           PyUnicode_CompareWithASCIIString(object.ptr(), text) == 0;
}

inline bool is_member(nb::handle tuple, nb::handle object) {
    const Py_ssize_t count = PyTuple_GET_SIZE(tuple.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PyTuple_GET_ITEM(tuple.ptr(), i) == object.ptr()) return true;
    }
    return false;
}

// The place of a string among a tuple's; -1 if it is none of them. Options are mostly the defaults,
// the same objects.
inline int place(nb::handle names, nb::handle name) {
    const int count = static_cast<int>(PyTuple_GET_SIZE(names.ptr()));
    for (int i = 0; i < count; ++i) {
        if (PyTuple_GET_ITEM(names.ptr(), i) == name.ptr()) return i;
    }
    for (int i = 0; PyUnicode_CheckExact(name.ptr()) && i < count; ++i) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(names.ptr(), i), name.ptr()) == 0) return i;
    }
    return -1;
}

// The options of a call, if it draws from a generator and they are common ones.
struct Options {
    int rule, level;
    bool raises;

    static std::optional<Options> read(const Surroundings& surroundings, nb::handle generator,
                                       nb::handle rule, nb::handle validate, nb::handle on_bad_row,
                                       nb::handle backend, nb::handle most_threads) {
        const PyObject* generator_type = surroundings.generator_type.ptr();
        if (reinterpret_cast<PyObject*>(Py_TYPE(generator.ptr())) != generator_type) return {};
        const Options options{place(surroundings.rules, rule), place(surroundings.levels, validate),
                              is_text(on_bad_row, "raise")};
        if (options.rule < 0 || options.level < 0 ||
            (!options.raises && !is_text(on_bad_row, "status")) ||
            (!is_text(backend, "auto") && !is_text(backend, "native")) ||
            !(most_threads.is_none() ||
              (PyLong_CheckExact(most_threads.ptr()) && clamped(most_threads) > 0))) {
            return {};
        }
        return options;
    }
};

template <typename... Handles, std::size_t... I>
nb::object call_with(nb::object (*function)(Handles...), PyObject* const* arguments,
                     std::index_sequence<I...>) {
    return function(nb::handle(arguments[I])...);
}

template <typename... Handles>
constexpr std::size_t arity(nb::object (*)(Handles...)) {
    return sizeof...(Handles);
}

// A function of handles as CPython calls it, without nanobind's dispatch.
template <auto kFunction>
PyObject* vectorcall(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    constexpr std::size_t kArguments = arity(kFunction);
    if (count != static_cast<Py_ssize_t>(kArguments)) {
        PyErr_Format(PyExc_TypeError, "a short way takes %zu arguments", kArguments);
        return nullptr;
    }
    try {
        return call_with(kFunction, arguments, std::make_index_sequence<kArguments>{})
            .release()
            .ptr();
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

}  // namespace draftproof
