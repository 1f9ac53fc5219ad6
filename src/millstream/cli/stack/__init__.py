"""The commands `up`, `down`, `ps`, `logs` and `traffic` of the local stack."""
