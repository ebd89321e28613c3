#include "bindings/bindings.h"

NB_MODULE(_core, module) {
    module.doc() = "The machinery of arcfleet in C++; for network, search, bounds and "
                   "neural only.";
    arcfleet::bind_network(module);
    for (const auto &[name, bind] : arcfleet::Binding::all()) {
        bind(module);
    }
}
