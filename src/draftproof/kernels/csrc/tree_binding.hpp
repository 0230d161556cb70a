// Trees by context, the way of Python and the short one.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "call_binding.hpp"
#include "numpy_arrays.hpp"
#include "short_way.hpp"
#include "thread_pool.hpp"
#include "tree.hpp"

namespace draftproof {

// How deep the deepest tree is. A parent that is no earlier node counts as the root.
inline std::int64_t forest_depth(nb::handle num_nodes, nb::handle parents) {
    const Array counts(num_nodes), parent(parents);
    std::vector<std::int64_t> depths(parent.size(1));
    std::int64_t deepest = 0;
    for (std::int64_t b = 0; b < counts.size(0); ++b) {
        const std::int64_t* of = parent.as<const std::int64_t>() + b * parent.size(1);
        const std::int64_t n = std::min(counts.as<const std::int64_t>()[b], parent.size(1));
        for (std::int64_t node = 0; node < n; ++node) {
            const std::int64_t above = of[node];
            depths[node] = 1 + (above >= 0 && above < node ? depths[above] : 0);
            deepest = std::max(deepest, depths[node]);
        }
    }
    return deepest;
}

// token_ids and parents [B, N], the laws [B, N+1, V].
inline void read_trees(Forest& forest, nb::handle num_nodes, nb::handle token_ids,
                       nb::handle parents, nb::handle draw_order, nb::handle draft_probs,
                       nb::handle sparse_ids, nb::handle target_probs) {
    const Array nodes(token_ids), target(target_probs);
    forest.size = nodes.size(0);
    forest.max_nodes = nodes.size(1);
    forest.vocabulary = target.size(2);
    forest.num_nodes = Array(num_nodes).as<const std::int64_t>();
    forest.node_tokens = nodes.as<const std::int64_t>();
    forest.parents = Array(parents).as<const std::int64_t>();
    forest.draw_order = data_or_null<std::int64_t>(optional_array(draw_order));
    forest.target = target.table();
    if (!draft_probs.is_none()) forest.draft = Array(draft_probs).table();
    forest.sparse_ids = data_or_null<std::int64_t>(optional_array(sparse_ids));
}

// path [B, D], emitted [B, D+1], num_emitted and status [B].
inline void read_tree_results(Forest& forest, nb::handle path, nb::handle emitted,
                              nb::handle num_emitted, nb::handle status_bits) {
    forest.max_depth = Array(path).size(1);
    forest.path = Array(path).as<std::int64_t>();
    forest.token_ids = Array(emitted).as<std::int64_t>();
    forest.num_emitted = Array(num_emitted).as<std::int64_t>();
    forest.status = Array(status_bits).as<std::int64_t>();
}

// How trees are judged, and by which uniforms.
inline void read_judging(Forest& forest, int rule, int validate, bool siblings_differ,
                         double target_tolerance, double draft_tolerance, nb::handle greedy,
                         nb::handle accept, nb::handle final) {
    forest.rule = static_cast<TreeRule>(rule);
    forest.validate = static_cast<Validate>(validate);
    forest.target_side = target_side(target_tolerance);
    forest.draft_side = draft_side(draft_tolerance);
    forest.siblings_differ = siblings_differ;
    forest.accept = Array(accept).as<const double>();
    forest.final = Array(final).as<const double>();
    forest.greedy = data_or_null<bool>(optional_array(greedy));
}

inline void run(const Forest& forest, nb::handle most_threads, nb::handle available_threads) {
    // A path reads some rows more than its length.
    const int threads = num_threads(forest.size * (forest.max_depth + 1), forest.vocabulary,
                                    forest.target.dtype, most_threads, available_threads);
    nb::gil_scoped_release release;
    ThreadPool::instance().run(forest.size, 1, threads,
                               [&forest](std::int64_t begin, std::int64_t end) {
                                   const DefaultFloatEnvironment environment;
                                   TreeVerifier verifier(forest, thread_scratch());
                                   for (std::int64_t b = begin; b < end; ++b) verifier.verify(b);
                               });
}

// The results are written.
inline void verify_forest(nb::handle num_nodes, nb::handle token_ids, nb::handle parents,
                          nb::handle draw_order, nb::handle draft_probs, nb::handle sparse_ids,
                          nb::handle target_probs, nb::handle greedy, nb::handle accept,
                          nb::handle final, int rule, int validate, bool siblings_differ,
                          double target_tolerance, double draft_tolerance, nb::handle most_threads,
                          nb::handle available_threads, nb::handle path, nb::handle emitted,
                          nb::handle num_emitted, nb::handle status_bits) {
    Forest forest{};
    read_judging(forest, rule, validate, siblings_differ, target_tolerance, draft_tolerance,
                 greedy, accept, final);
    read_trees(forest, num_nodes, token_ids, parents, draw_order, draft_probs, sparse_ids,
               target_probs);
    read_tree_results(forest, path, emitted, num_emitted, status_bits);
    run(forest, most_threads, available_threads);
}

// What the short way needs of Python besides.
struct TreeSurroundings : Surroundings {
    nb::handle tree_type;
    nb::handle draws;           // for each rule a tuple of those that it is lossless for
    nb::handle distinct_draws;  // those that exclude repeated siblings
};
inline TreeSurroundings tree_surroundings;

inline void set_tree_surroundings(nb::handle result_type, nb::handle generator_type,
                                  nb::handle mass_tolerance, nb::handle available_threads,
                                  nb::handle rules, nb::handle levels, nb::handle tree_type,
                                  nb::handle draws, nb::handle distinct_draws) {
    tree_surroundings = {{result_type, generator_type, mass_tolerance, available_threads, rules,
                          levels},
                         tree_type, draws, distinct_draws};
    tree_surroundings.keep();
    for (nb::handle object : {tree_type, draws, distinct_draws}) object.inc_ref();
}

// draftproof.verify_tree with a generator and common options.
//
// Returns a TreeResult; or None, with the generator as it was, if the long way has to be taken; or
// (status, uniforms), those of all nodes and then those of all last tokens, if a bad row is to be
// raised.
inline nb::object verify_tree_plain(nb::handle tree, nb::handle target_probs,
                                    nb::handle generator, nb::handle uniforms, nb::handle seeds,
                                    nb::handle positions, nb::handle rule, nb::handle greedy,
                                    nb::handle validate, nb::handle on_bad_row,
                                    nb::handle backend, nb::handle most_threads) {
    const TreeSurroundings& known = tree_surroundings;
    const PyObject* tree_type = known.tree_type.ptr();
    if (reinterpret_cast<PyObject*>(Py_TYPE(tree.ptr())) != tree_type ||
        !uniforms.is_none() || !seeds.is_none() || !positions.is_none() || !greedy.is_none()) {
        return nb::none();
    }
    const auto options =
        Options::read(known, generator, rule, validate, on_bad_row, backend, most_threads);
    if (!options) return nb::none();
    const nb::object draws = tree.attr("draws"), ids = tree.attr("token_ids"),
                     parents = tree.attr("parents"), counts = tree.attr("num_nodes"),
                     order = tree.attr("draw_order");
    nb::object laws = tree.attr("draft_probs");
    if (!is_member(PyTuple_GET_ITEM(known.draws.ptr(), options->rule), draws) ||
        !Array::is_one(target_probs) || !Array::is_one(ids) || !Array(ids).is_int64(2)) {
        return nb::none();
    }
    const Array nodes(ids), target(target_probs);
    const std::int64_t size = nodes.size(0), longest = nodes.size(1);
    const auto are_laws = [size, longest](nb::handle object) {
        if (!Array::is_one(object)) return false;
        const Array law(object);
        return law.rank() == 3 && law.is_float() && law.size(0) == size &&
               law.size(1) == longest + 1 && law.size(2) > 0;
    };
    if (!are_laws(target_probs)) return nb::none();
    Forest forest{};
    forest.rule = static_cast<TreeRule>(options->rule);
    forest.validate = static_cast<Validate>(options->level);
    static thread_local Tolerance target_tolerance, draft_tolerance;
    forest.target_side = target_side(target_tolerance(known.mass_tolerance, target_probs,
                                                      target.dtype(), target.size(2)));
    forest.draft_side = draft_side(0);
    if (!laws.is_none() && !(are_laws(laws) && Array(laws).size(2) == target.size(2))) {
        return nb::none();
    }
    if (!forest.reads_draft()) {
        laws = nb::none();
    } else if (laws.is_none()) {
        return nb::none();
    } else {
        forest.draft_side = draft_side(draft_tolerance(known.mass_tolerance, laws,
                                                       Array(laws).dtype(), target.size(2)));
    }
    forest.siblings_differ = is_member(known.distinct_draws, draws);
    read_trees(forest, counts, ids, parents, order, laws, nb::none(), target_probs);
    static thread_local std::vector<double> drawn;
    drawn.resize(size * (longest + 1));
    draw_uniforms(generator, drawn.data(), size * (longest + 1));
    forest.accept = drawn.data();
    forest.final = forest.accept + size * longest;
    const std::int64_t depth = forest_depth(counts, parents);
    const nb::object path = new_array(NPY_INT64, {size, depth}),
                     emitted = new_array(NPY_INT64, {size, depth + 1}),
                     num_emitted = new_array(NPY_INT64, {size}),
                     status_bits = new_array(NPY_INT64, {size});
    read_tree_results(forest, path, emitted, num_emitted, status_bits);
    run(forest, most_threads, known.available_threads);
    const bool bad = std::any_of(forest.status, forest.status + size, [](std::int64_t bits) {
        return bits > status::zero_residual;
    });
    if (options->raises && bad) {
        const nb::object read = new_array(NPY_DOUBLE, {size * (longest + 1)});
        std::copy(drawn.begin(), drawn.end(), Array(read).as<double>());
        return nb::make_tuple(status_bits, read);
    }
    const nb::tuple fields =
        nb::make_tuple(nb::make_tuple(path, emitted, num_emitted, status_bits, "native"));
    auto* type = reinterpret_cast<PyTypeObject*>(known.result_type.ptr());
    PyObject* result = PyTuple_Type.tp_new(type, fields.ptr(), nullptr);
    if (!result) throw nb::python_error();
    return nb::steal(result);
}

}  // namespace draftproof
