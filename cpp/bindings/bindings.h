// Shared by the files that bind the core to Python. Only flat arrays cross the border.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace arcfleet {

namespace nb = nanobind;

template <typename T>
using InArray = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T> using OutArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <typename T> using OutMatrix = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <typename T> std::span<const T> view(const InArray<T> &array) {
    return {array.data(), array.size()};
}

// Hands a vector over to numpy without copying it.
template <typename T> nb::capsule owner_of(std::vector<T> *values) {
    return {values, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); }};
}

template <typename T> OutArray<T> to_array(std::vector<T> &&values) {
    auto *kept = new std::vector<T>(std::move(values));
    return OutArray<T>(kept->data(), {kept->size()}, owner_of(kept));
}

template <typename T>
OutMatrix<T> to_matrix(std::vector<T> &&values, size_t rows, size_t columns) {
    auto *kept = new std::vector<T>(std::move(values));
    return OutMatrix<T>(kept->data(), {rows, columns}, owner_of(kept));
}

// First of all, since the engines take a Network.
void bind_network(nb::module_ &module);

// Adds to the module what a file of this folder binds, by a line at its end:
// `static const Binding binding{"name", bind_name};`. No other file needs to know.
struct Binding {
    using Function = void (*)(nb::module_ &);

    Binding(const char *name, Function bind) { all()[name] = bind; }
    // By name, so that the stub does not depend on the order of linking.
    static std::map<std::string, Function> &all() {
        static std::map<std::string, Function> bindings;
        return bindings;
    }
};

} // namespace arcfleet
