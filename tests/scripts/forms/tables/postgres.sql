CREATE INDEX parcels_by_depot ON parcels (depot);
