"""Generate events: the model of `traffic.yml`, field values, order, and sending."""
