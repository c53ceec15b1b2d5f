"""Groups diluted by a registration list (Wong et al., section 8): `method: group` with `lifetime.registered`."""
