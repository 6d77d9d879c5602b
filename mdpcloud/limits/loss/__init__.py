"""Limits of loss systems: Erlang's, Kelly's, fixed points, the fluid path of a link."""
