"""Many instances in one file: made from streets, labelled by a search method."""
