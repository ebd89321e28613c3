"""MCARP, the format of mixed instances: one-way streets and separate service costs.

Belenguer, Benavent, Lacomme & Prins, Computers & Operations Research 33 (2006).
"""

from __future__ import annotations

from arcfleet.instance.formats.keyed_text import Dialect, Section

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
        Section(
            count_key="REQ_EDGES",
            list_key="LIST_REQ_EDGES",
            fields=_REQUIRED_FIELDS,
            required=True,
        ),
        Section(
            count_key="NOREQ_EDGES",
            list_key="LIST_NOREQ_EDGES",
            fields=_OTHER_FIELDS,
            required=False,
        ),
        Section(
            count_key="REQ_ARCS",
            list_key="LIST_REQ_ARCS",
            fields=_REQUIRED_FIELDS,
            required=True,
            one_way=True,
        ),
        Section(
            count_key="NOREQ_ARCS",
            list_key="LIST_NOREQ_ARCS",
            fields=_OTHER_FIELDS,
            required=False,
            one_way=True,
        ),
    ),
    first_node=1,
)
