"""Streets to instances: maps, the scenes cut from them, and the paper's Task sets."""

from arcfleet.streets.street_map import OSM_CREDIT, Street, StreetMap

__all__ = ["OSM_CREDIT", "Street", "StreetMap"]
