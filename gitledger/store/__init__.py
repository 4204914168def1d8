"""WHERE it is kept: git back ends behind one small contract, notes trees, union, sync."""
