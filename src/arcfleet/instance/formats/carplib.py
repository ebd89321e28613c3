"""CARPLIB, the format of the classical instances, with Spanish or English keys.

Spanish: University of Valencia; every street is two-way, and serving it costs the same
as driving along it.
"""

from __future__ import annotations

from arcfleet.instance.formats.dialect import Dialect, Section

SPANISH = Dialect(
    file_format="carplib",
    suffixes=(".dat",),
    title="Spanish CARPLIB",
    name="NOMBRE",
    comment="COMENTARIO",
    nodes="VERTICES",
    vehicles="VEHICULOS",
    capacity="CAPACIDAD",
    cost_kind="TIPO_COSTES_ARISTAS",
    total_cost="COSTE_TOTAL_REQ",
    depot="DEPOSITO",
    sections=(
        Section(
            "ARISTAS_REQ",
            "LISTA_ARISTAS_REQ",
            (("coste", "cost"), ("demanda", "demand")),
            required=True,
        ),
        Section(
            "ARISTAS_NOREQ", "LISTA_ARISTAS_NOREQ", (("coste", "cost"),), required=False
        ),
    ),
    first_node=1,
)

ENGLISH = Dialect(
    file_format="carplib-english",
    is_written=False,
    title="English CARP",
    name="NAME",
    upper_bound="UPPER_BOUND",
    nodes="NODES",
    vehicles="VEHICLES",
    capacity="CAPACITY",
    # These two stay Spanish in the files that circulate.
    cost_kind="TIPO_COSTES_ARISTAS",
    total_cost="COSTE_TOTAL_REQ",
    depot="DEPOT",
    sections=(
        Section(
            "EDGES_REQ",
            "EDGE_REQ_LIST",
            (("cost", "cost"), ("demand", "demand")),
            required=True,
        ),
        Section("EDGES_NOREQ", "EDGE_NOREQ_LIST", (("cost", "cost"),), required=False),
    ),
    first_node=0,
)
