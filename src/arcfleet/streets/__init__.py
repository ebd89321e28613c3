"""Streets to instances: maps, the scenes cut from them, and the paper's Task sets."""

from arcfleet.streets.street_map import OSM_ATTRIBUTION, Street, StreetMap, StreetTurn

__all__ = ["OSM_ATTRIBUTION", "Street", "StreetMap", "StreetTurn"]
