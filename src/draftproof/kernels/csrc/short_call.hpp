// A short call for chains: what it is made of, and its result.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "call.hpp"
#include "numpy_arrays.hpp"
#include "short_way.hpp"
#include "status.hpp"

namespace draftproof {

inline Surroundings surroundings;

inline void set_surroundings(nb::handle result_type, nb::handle generator_type,
                             nb::handle mass_tolerance, nb::handle available_threads,
                             nb::handle rules, nb::handle levels) {
    surroundings = {result_type, generator_type, mass_tolerance, available_threads, rules, levels};
    surroundings.keep();
}

// A named tuple of two fields, and attributes beside them; the others keep their class' defaults.
inline nb::object make_result(nb::handle token_ids, nb::handle num_emitted, nb::handle num_draft,
                              nb::handle status_bits) {
    static PyObject *const num_draft_name = PyUnicode_InternFromString("num_draft"),
                    *const status_name = PyUnicode_InternFromString("status"),
                    *const backend_name = PyUnicode_InternFromString("backend"),
                    *const native = PyUnicode_InternFromString("native");
    auto* type = reinterpret_cast<PyTypeObject*>(surroundings.result_type.ptr());
    const nb::tuple fields = nb::make_tuple(nb::make_tuple(token_ids, num_emitted));
    const nb::object result = nb::steal(PyTuple_Type.tp_new(type, fields.ptr(), nullptr));
    if (!result.is_valid()) throw nb::python_error();
    if (PyObject_SetAttr(result.ptr(), num_draft_name, num_draft.ptr()) ||
        PyObject_SetAttr(result.ptr(), status_name, status_bits.ptr()) ||
        PyObject_SetAttr(result.ptr(), backend_name, native)) {
        throw nb::python_error();
    }
    return result;
}

class ShortCall {
   public:
    explicit ShortCall(Call& call) : call_(call) {}

    // Whether these are common ones.
    bool read_options(nb::handle generator, nb::handle rule, nb::handle validate,
                      nb::handle on_bad_row, nb::handle backend, nb::handle most_threads) {
        const auto options = Options::read(surroundings, generator, rule, validate, on_bad_row,
                                           backend, most_threads);
        if (!options) return false;
        call_.rule = static_cast<Rule>(options->rule);
        call_.validate = static_cast<Validate>(options->level);
        raises_ = options->raises;
        return true;
    }

    // Whether these are padded arrays that need no conversion.
    bool read_arrays(nb::handle draft_token_ids, nb::handle draft_laws, nb::handle target_laws,
                     nb::handle num_draft) {
        const bool has_draft = !draft_laws.is_none(), has_lengths = !num_draft.is_none();
        if (!Array::is_one(draft_token_ids) || !Array::is_one(target_laws) ||
            (has_draft && !Array::is_one(draft_laws)) ||
            (has_lengths && !Array::is_one(num_draft))) {
            return false;
        }
        const Array ids(draft_token_ids), target(target_laws);
        if (!ids.is_int64(2)) return false;
        const std::int64_t size = ids.size(0), longest = ids.size(1);
        const auto are_laws = [size](const Array& laws, std::int64_t rows) {
            return laws.rank() == 3 && laws.is_float() && laws.size(0) == size &&
                   laws.size(1) == rows;
        };
        if (!are_laws(target, longest + 1) || target.size(2) < 1) return false;
        call_.draft_kind = DraftLaw::Kind::point_mass;
        if (has_draft) {
            const Array draft(draft_laws);
            if (!are_laws(draft, longest) || draft.size(2) != target.size(2)) return false;
            call_.draft_kind = DraftLaw::Kind::dense;
            call_.draft = draft.table();
        }
        if (has_lengths) {
            const Array given(num_draft);
            if (!given.is_int64(1) || given.size(0) != size) return false;
            lengths_ = copy_of(num_draft);  // the result keeps it
        } else {
            lengths_ = new_array(NPY_INT64, {size});
            std::fill_n(Array(lengths_).as<std::int64_t>(), size, longest);
        }
        call_.target = target.table();
        call_.size = size;
        call_.max_draft = longest;
        call_.vocabulary = call_.drafter_vocabulary = target.size(2);
        call_.num_draft = Array(lengths_).as<const std::int64_t>();
        call_.draft_token_ids = call_.drafter_token_ids = ids.as<const std::int64_t>();
        return true;
    }

    // Draw the uniforms, and make room for what is emitted.
    void begin(nb::handle generator) {
        const std::int64_t size = call_.size, longest = call_.max_draft;
        static thread_local std::vector<double> drawn;
        drawn.resize(size * (longest + 1));
        draw_uniforms(generator, drawn.data(), size * (longest + 1));
        call_.accept = drawn.data();
        call_.final = call_.accept + size * longest;
        token_ids_ = new_array(NPY_INT64, {size, longest + 1});
        num_emitted_ = new_array(NPY_INT64, {size});
        status_bits_ = new_array(NPY_INT64, {size});
        call_.token_ids = Array(token_ids_).as<std::int64_t>();
        call_.num_emitted = Array(num_emitted_).as<std::int64_t>();
        call_.status = Array(status_bits_).as<std::int64_t>();
    }

    // The result; or (status, uniforms), those of all accept tests and then those of all last
    // tokens, if a bad row is to be raised.
    nb::object end() const {
        const bool bad = std::any_of(call_.status, call_.status + call_.size, [](auto bits) {
            return bits > status::zero_residual;
        });
        if (!bad || !raises_) return make_result(token_ids_, num_emitted_, lengths_, status_bits_);
        const std::int64_t count = call_.size * (call_.max_draft + 1);
        const nb::object read = new_array(NPY_DOUBLE, {count});
        std::copy_n(call_.accept, count, Array(read).as<double>());
        return nb::make_tuple(status_bits_, read);
    }

   private:
    Call& call_;
    bool raises_ = true;
    nb::object lengths_, token_ids_, num_emitted_, status_bits_;
};

}  // namespace draftproof
