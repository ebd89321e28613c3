#include "bindings/bindings.h"

NB_MODULE(_core, module) {
    module.doc() =
        "The machinery of arcfleet in C++; called by network and search only.";
    arcfleet::bind_network(module);
    arcfleet::bind_maens(module);
    arcfleet::bind_path_scanning(module);
    arcfleet::bind_ruin_recreate(module);
    arcfleet::bind_split(module);
}
