#include "search/path_scanning.h"

#include "bindings/engine.h"

namespace arcfleet {

static void bind_path_scanning(nb::module_ &module) {
    nb::enum_<Choice>(module, "Choice")
        .value("rules", Choice::rules)
        .value("random_rule", Choice::random_rule)
        .value("random_arc", Choice::random_arc);
    nb::enum_<Trigger>(module, "Trigger")
        .value("never", Trigger::never)
        .value("everywhere", Trigger::everywhere)
        .value("nearby", Trigger::nearby);
    nb::enum_<Filter>(module, "Filter")
        .value("ellipse", Filter::ellipse)
        .value("efficiency", Filter::efficiency);

    nb::class_<PathScanning> engine(module, "PathScanning",
                                    "Builds plans and keeps the cheapest.");
    engine.def(
        "__init__",
        [](PathScanning *self, const Network &network, Choice choice, Trigger trigger,
           Filter filter, double alpha, uint64_t seed) {
            const nb::gil_scoped_release release;
            new (self) PathScanning(network, {choice, trigger, filter, alpha}, seed);
        },
        nb::arg("network"), nb::arg("choice"), nb::arg("trigger"), nb::arg("filter"),
        nb::arg("alpha"), nb::arg("seed"), nb::keep_alive<1, 2>());
    bind_engine(engine);
}

static const Binding binding{"path_scanning", bind_path_scanning};

} // namespace arcfleet
