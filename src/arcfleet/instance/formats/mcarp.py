"""MCARP, the format of mixed instances: one-way streets and separate service costs.

Belenguer, Benavent, Lacomme & Prins, Computers & Operations Research 33 (2006). MCARPTIF
adds a longest route and facilities: Willemse & Joubert, Data in Brief 8 (2016).
"""

from __future__ import annotations

from dataclasses import replace

from arcfleet.instance.formats.dialect import Dialect, Section

_REQUIRED_FIELDS = (
    ("serv_cost", "service_cost"),
    ("trav_cost", "cost"),
    ("demand", "demand"),
)
_OTHER_FIELDS = (("cost", "cost"),)

MCARP = Dialect(
    file_format="mcarp",
    suffixes=(".txt",),
    title="MCARP",
    name="NAME",
    upper_bound="UPPER_BOUND",
    nodes="NODES",
    vehicles="VEHICLES",
    capacity="CAPACITY",
    route_cost="DUMPING_COST",
    depot="DEPOT",
    sections=(
        Section("REQ_EDGES", "LIST_REQ_EDGES", _REQUIRED_FIELDS, required=True),
        Section("NOREQ_EDGES", "LIST_NOREQ_EDGES", _OTHER_FIELDS, required=False),
        Section("REQ_ARCS", "LIST_REQ_ARCS", _REQUIRED_FIELDS, required=True, one_way=True),
        Section(
            "NOREQ_ARCS", "LIST_NOREQ_ARCS", _OTHER_FIELDS, required=False, one_way=True
        ),
    ),
    first_node=1,
)

#: The dumping cost is that of a facility visit here, not of a route.
MCARPTIF = replace(
    MCARP,
    file_format="mcarptif",
    title="MCARPTIF",
    route_cost=None,
    facility_cost="DUMPING_COST",
    max_route_cost="MAX_TRIP",
    facilities="DUMPING_SITES",
    any_nodes=True,
    by_position=True,
)
